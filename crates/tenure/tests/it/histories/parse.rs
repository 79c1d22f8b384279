//! From what a server says to the words of a history.

use serde_json::Value;
use tenure_history::{Action, Grant, LeaseMode, ObservedLease, ObservedState, OperationResponse};
use tenure_testkit::Response;

/// One granted lease, or several.
pub fn granted_leases(body: &Value) -> Vec<&Value> {
    body["leases"].as_array().map_or_else(|| vec![body], |all| all.iter().collect())
}

/// How a lease is held.
pub fn mode_of(lease: &Value) -> LeaseMode {
    if lease["mode"] == "shared" { LeaseMode::Shared } else { LeaseMode::Exclusive }
}

/// The answer in the words of a history. Nothing: nobody knows whether it happened.
pub fn parse_answer(action: &Action, response: &Response) -> Option<OperationResponse> {
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{action}: {response:?}"));
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let code = response.body["code"].as_str().unwrap_or("");
    Some(match (response.status, action) {
        (200, Action::Show { .. }) => OperationResponse::Seen { leases: vec![seen(&response.body["lease"])] },
        (200, Action::List { .. }) => OperationResponse::Seen {
            leases: response.body["leases"].as_array().unwrap().iter().map(seen).collect(),
        },
        (200, Action::Renew { .. }) => {
            OperationResponse::Renewed { valid_for_ms: number(&response.body["validForMs"]) }
        }
        (200, Action::Release { .. } | Action::Revoke { .. }) => match response.lease_state() {
            "RELEASED" => OperationResponse::Released,
            _ => OperationResponse::Ended,
        },
        (200 | 201, _) => {
            let grant = |granted: &Value| Grant {
                fence: number(&granted["lease"]["fence"]),
                id: text(&granted["lease"]["id"]),
                valid_for_ms: number(&granted["validForMs"]),
                ttl_ms: number(&granted["lease"]["ttlMs"]),
            };
            OperationResponse::Granted {
                leases: granted_leases(&response.body).into_iter().map(grant).collect(),
            }
        }
        _ => match code {
            "HELD" => OperationResponse::Held {
                resource: text(&response.body["resource"]).unwrap_or_default(),
                by: text(&response.body["holder"]),
            },
            "EXPIRED" => OperationResponse::Ended,
            "NOT_FOUND" => OperationResponse::Unknown,
            "TOO_LATE" | "OUTCOME_UNKNOWN" => return None,
            "" | "INTERNAL" | "TOKEN_INVALID" | "KEY_REUSED" => panic!("{action}: {response:?}"),
            other => OperationResponse::Refused { code: other.to_owned() },
        },
    })
}

fn seen(lease: &Value) -> ObservedLease {
    ObservedLease {
        fence: lease["fence"].as_u64().unwrap(),
        holder: lease["holder"].as_str().unwrap().to_owned(),
        mode: mode_of(lease),
        state: match lease["state"].as_str() {
            Some("ACTIVE") => ObservedState::Active,
            Some("EXPIRED") => ObservedState::Expired,
            _ => ObservedState::Released,
        },
        remaining_ms: lease["remainingMs"].as_u64().unwrap(),
    }
}
