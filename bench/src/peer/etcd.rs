//! etcd through its JSON gateway: what any HTTP client can use, and what needs no compiler for protobuf.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::launcher::RunningServer;
use super::{LeaseSlot, Step, TTL};
use crate::error::BenchError;
use crate::http::HttpConnection;

pub fn command(program: &Path, folder: &Path, port: u16, peer_port: u16) -> Command {
    let (client, peer) = (format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{peer_port}"));
    let mut command = Command::new(program);
    command.args(["--name", "bench", "--data-dir"]).arg(folder.join("data"));
    command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
    command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
    command.args(["--initial-cluster", &format!("bench={peer}"), "--logger", "zap"]);
    // Debian's etcd reads its settings from the environment too.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("ETCD_") {
            command.env_remove(name);
        }
    }
    command
}

/// Succeeds once a write succeeds: a member that listens may still be electing itself.
pub async fn prepare(server: &RunningServer) -> Result<(), BenchError> {
    let mut etcd = Etcd::connect(server).await?;
    let mut slot = LeaseSlot { resource: "prepare".to_owned(), ..LeaseSlot::default() };
    etcd.grant(&mut slot).await?;
    etcd.perform(Step::Release, &mut slot).await
}

#[derive(Deserialize)]
struct GrantResponse<'a> {
    #[serde(rename = "ID")]
    id: &'a str,
    #[serde(rename = "TTL")]
    ttl: &'a str,
}

#[derive(Deserialize)]
struct TxnResponse {
    #[serde(default)]
    succeeded: bool,
}

#[derive(Deserialize)]
struct KeepAliveResponse<'a> {
    #[serde(borrow)]
    result: GrantResponse<'a>,
}

#[derive(Deserialize)]
struct LockResponse<'a> {
    key: &'a str,
}

#[derive(Deserialize)]
struct HeaderResponse<'a> {
    #[serde(borrow)]
    header: ResponseHeader<'a>,
}

#[derive(Deserialize)]
struct ResponseHeader<'a> {
    revision: &'a str,
}

pub struct Etcd {
    http: HttpConnection,
    body: String,
    key: String,
}

impl Etcd {
    pub async fn connect(server: &RunningServer) -> Result<Self, BenchError> {
        let http = HttpConnection::connect(&server.endpoint(), None).await?;
        Ok(Self { http, body: String::new(), key: String::new() })
    }

    pub async fn perform(&mut self, step: Step, slot: &mut LeaseSlot) -> Result<(), BenchError> {
        match step {
            Step::Acquire => {
                self.grant(slot).await?;
                if self.put_if_absent(slot).await? {
                    return Ok(());
                }
                self.revoke(slot).await?;
                Err(BenchError::Denied("the key exists".to_owned()))
            }
            Step::Renew => self.keep_alive(slot).await,
            Step::Release => self.revoke(slot).await,
        }
    }

    /// Makes a lease that is attached to nothing yet.
    pub async fn grant(&mut self, slot: &mut LeaseSlot) -> Result<(), BenchError> {
        self.body.clear();
        write!(self.body, r#"{{"TTL":{}}}"#, TTL.as_secs()).expect("memory can be written");
        let read = |status: u16, body: &[u8]| match serde_json::from_slice::<GrantResponse<'_>>(body) {
            Ok(response) if status == 200 && response.ttl.parse() == Ok(TTL.as_secs()) => {
                slot.id.clear();
                slot.id.push_str(response.id);
                Ok(())
            }
            _ => Err(BenchError::unexpected("a lease grant", body)),
        };
        self.http.exchange("POST", &["/v3/lease/grant"], self.body.as_bytes(), read).await
    }

    async fn put_if_absent(&mut self, slot: &LeaseSlot) -> Result<bool, BenchError> {
        self.encode_key(slot);
        self.body.clear();
        let (key, id) = (&self.key, &slot.id);
        write!(
            self.body,
            r#"{{"compare":[{{"key":"{key}","result":"EQUAL","target":"CREATE","create_revision":"0"}}],"#
        )
        .and_then(|()| {
            write!(
                self.body,
                r#""success":[{{"request_put":{{"key":"{key}","value":"{key}","lease":"{id}"}}}}]}}"#
            )
        })
        .expect("memory can be written");
        let read = |status: u16, body: &[u8]| match serde_json::from_slice::<TxnResponse>(body) {
            Ok(response) if status == 200 => Ok(response.succeeded),
            _ => Err(BenchError::unexpected("a transaction", body)),
        };
        self.http.exchange("POST", &["/v3/kv/txn"], self.body.as_bytes(), read).await
    }

    async fn keep_alive(&mut self, slot: &LeaseSlot) -> Result<(), BenchError> {
        self.write_id(slot);
        let read = |status: u16, body: &[u8]| match serde_json::from_slice::<KeepAliveResponse<'_>>(body) {
            Ok(KeepAliveResponse { result })
                if status == 200 && result.id == slot.id && result.ttl != "0" =>
            {
                Ok(())
            }
            _ => Err(BenchError::unexpected("a keep-alive", body)),
        };
        self.http.exchange("POST", &["/v3/lease/keepalive"], self.body.as_bytes(), read).await
    }

    async fn revoke(&mut self, slot: &LeaseSlot) -> Result<(), BenchError> {
        self.write_id(slot);
        self.exchange_for_header("/v3/lease/revoke").await
    }

    /// Waits in the queue of etcd's own lock, with a lease that the slot has already. Remembers the key that unlocks it.
    pub async fn lock(&mut self, slot: &mut LeaseSlot) -> Result<(), BenchError> {
        self.encode_key(slot);
        self.body.clear();
        write!(self.body, r#"{{"name":"{}","lease":"{}"}}"#, self.key, slot.id)
            .expect("memory can be written");
        let read = |status: u16, body: &[u8]| match serde_json::from_slice::<LockResponse<'_>>(body) {
            Ok(response) if status == 200 => {
                slot.proof.clear();
                slot.proof.push_str(response.key);
                Ok(())
            }
            _ => Err(BenchError::unexpected("a lock", body)),
        };
        self.http.exchange("POST", &["/v3/lock/lock"], self.body.as_bytes(), read).await
    }

    pub async fn unlock(&mut self, slot: &LeaseSlot) -> Result<(), BenchError> {
        self.body.clear();
        write!(self.body, r#"{{"key":"{}"}}"#, slot.proof).expect("memory can be written");
        self.exchange_for_header("/v3/lock/unlock").await
    }

    async fn exchange_for_header(&mut self, path: &'static str) -> Result<(), BenchError> {
        let read = |status: u16, body: &[u8]| match serde_json::from_slice::<HeaderResponse<'_>>(body) {
            Ok(response) if status == 200 && !response.header.revision.is_empty() => Ok(()),
            _ => Err(BenchError::unexpected(path, body)),
        };
        self.http.exchange("POST", &[path], self.body.as_bytes(), read).await
    }

    fn write_id(&mut self, slot: &LeaseSlot) {
        self.body.clear();
        write!(self.body, r#"{{"ID":"{}"}}"#, slot.id).expect("memory can be written");
    }

    /// The gateway takes and returns bytes in base64.
    fn encode_key(&mut self, slot: &LeaseSlot) {
        self.key.clear();
        STANDARD.encode_string(slot.resource.as_bytes(), &mut self.key);
    }
}
