//! Every cell of the matrix, on a running server: every command of the table, from each source that can be spoken to here.

use serde_json::json;
use tenure_control::commands::FRAME;
use tenure_control::{COMMANDS, CommandClass, CommandSource, OwnershipStatus, PermissionVerdict, evaluate};
use tenure_testkit::TestServer;
use tenure_testkit::control::{ControlClient, ControlLeaseCredentials, run_on_each_clock, send_rest_request};

/// What a lease says to who is kept out.
const LEASE_CODES: [&str; 4] = ["CONTROL_LOCKED", "LEASE_REQUIRED", "LEASE_INVALID", "LEASE_EXPIRED"];

/// Commands of the lease itself have stories of their own.
fn is_lifecycle(name: &str) -> bool {
    ["control.acquire", "control.heartbeat", "control.release"].contains(&name)
}

struct Cell<'a> {
    server: &'a TestServer,
    owner: ControlClient,
    other: ControlClient,
    lease: Option<ControlLeaseCredentials>,
}

impl<'a> Cell<'a> {
    /// A device with or without a lease.
    fn new(server: &'a TestServer, standing: OwnershipStatus) -> Self {
        let (mut owner, other) = (ControlClient::open(server), ControlClient::open(server));
        let lease = (standing != OwnershipStatus::Inactive).then(|| owner.acquire("K1 Composer"));
        Self { server, owner, other, lease }
    }

    /// Who speaks.
    fn client(&mut self, standing: OwnershipStatus) -> &mut ControlClient {
        if standing == OwnershipStatus::Other { &mut self.other } else { &mut self.owner }
    }
}

// S0-17, S0-18, S0-20, S0-21, S0-22, S0-73, S0-77, S0-82, S0-85
#[test]
fn every_websocket_command_follows_the_matrix() {
    run_on_each_clock(|server| {
        for standing in OwnershipStatus::ALL {
            let mut cell = Cell::new(server, standing);
            for row in COMMANDS.iter().filter(|row| row.on_websocket && !is_lifecycle(row.name)) {
                let answer = cell.client(standing).request(row.name, &json!({}));
                let code = answer["error"]["code"].as_str().unwrap_or_default();
                let is_lease_error = LEASE_CODES.contains(&code);
                let is_blocked =
                    evaluate(CommandSource::WebSocket, row.class, standing) == PermissionVerdict::Block;
                assert_eq!(is_lease_error, is_blocked, "{} with {standing:?}: {answer}", row.name);
                if is_blocked {
                    let expected = if standing == OwnershipStatus::Inactive {
                        "LEASE_REQUIRED"
                    } else {
                        "CONTROL_LOCKED"
                    };
                    assert_eq!(code, expected, "{}", row.name);
                }
                // It goes on, whatever the command did before.
                if let Some(lease) = cell.lease.clone() {
                    cell.owner.heartbeat(&lease);
                    cell.owner.pending.clear();
                    cell.other.pending.clear();
                }
            }
            drop(cell);
            wait_until_free(server);
        }
    });
}

// S0-6, S0-64, S0-74, S0-77, S0-83, S0-84, O-5
#[test]
fn every_rest_command_follows_the_matrix() {
    run_on_each_clock(|server| {
        for standing in OwnershipStatus::ALL {
            let mut cell = Cell::new(server, standing);
            for row in COMMANDS {
                for address in row.rest {
                    let line = format!("{} {}", address.method, address.path.replace("{id}", "7"));
                    let shown = cell.lease.as_ref().filter(|_| standing == OwnershipStatus::Owner);
                    let token = shown.map(|lease| lease.token.as_str());
                    let answer = send_rest_request(cell.server, &line, token, None, &json!({}));
                    let code = answer.json()["error"]["code"].as_str().unwrap_or_default().to_owned();
                    let is_blocked =
                        evaluate(CommandSource::Rest, row.class, standing) == PermissionVerdict::Block;
                    assert_eq!(
                        LEASE_CODES.contains(&code.as_str()),
                        is_blocked,
                        "{line} with {standing:?}: {answer:?}"
                    );
                    if is_blocked {
                        assert_eq!((answer.status, code.as_str()), (428, "LEASE_REQUIRED"), "{line}");
                    }
                    if let Some(lease) = cell.lease.clone() {
                        cell.owner.heartbeat(&lease);
                        cell.owner.pending.clear();
                    }
                }
            }
            drop(cell);
            wait_until_free(server);
        }
    });
}

// S0-19, S0-20, O-7
#[test]
fn every_frame_follows_the_matrix() {
    run_on_each_clock(|server| {
        for (standing, code) in [
            (OwnershipStatus::Inactive, "LEASE_REQUIRED"),
            (OwnershipStatus::Owner, "STREAM_NOT_ACTIVE"),
            (OwnershipStatus::Other, "CONTROL_LOCKED"),
        ] {
            let mut cell = Cell::new(server, standing);
            assert_eq!(
                evaluate(CommandSource::WebSocket, FRAME, standing) == PermissionVerdict::Allow,
                code == "STREAM_NOT_ACTIVE"
            );
            let client = cell.client(standing);
            client.send_bytes(&[0; 976]);
            let answer = client.receive_where(|message| message["type"] == "error");
            assert_eq!(answer["error"]["code"], code, "{standing:?}");
            drop(cell);
            wait_until_free(server);
        }
        assert_eq!(FRAME, CommandClass::Streams);
    });
}

fn wait_until_free(server: &TestServer) {
    let mut client = ControlClient::open(server);
    while client.status()["active"] == json!(true) {
        client.next_state_change();
    }
}
