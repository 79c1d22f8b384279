//! From what a server says to the words of a history.

use serde_json::Value;
use tenure_history::{Action, Answer, Grant, Life, Mode, Seen};
use tenure_testkit::Response;

/// One granted lease, or several.
pub fn granted_in(body: &Value) -> Vec<&Value> {
    body["leases"].as_array().map_or_else(|| vec![body], |all| all.iter().collect())
}

/// How a lease is held.
pub fn mode_of(lease: &Value) -> Mode {
    if lease["mode"] == "shared" { Mode::Shared } else { Mode::Exclusive }
}

/// The answer in the words of a history. Nothing: nobody knows whether it happened.
pub fn understood(action: &Action, said: &Response) -> Option<Answer> {
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{action}: {said:?}"));
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let code = said.body["code"].as_str().unwrap_or("");
    Some(match (said.status, action) {
        (200, Action::Show { .. }) => Answer::Seen { leases: vec![seen(&said.body["lease"])] },
        (200, Action::List { .. }) => {
            Answer::Seen { leases: said.body["leases"].as_array().unwrap().iter().map(seen).collect() }
        }
        (200, Action::Renew { .. }) => Answer::Renewed { valid_for_ms: number(&said.body["validForMs"]) },
        (200, Action::Release { .. } | Action::Revoke { .. }) => match said.state() {
            "RELEASED" => Answer::Released,
            _ => Answer::Over,
        },
        (200 | 201, _) => {
            let grant = |granted: &Value| Grant {
                fence: number(&granted["lease"]["fence"]),
                id: text(&granted["lease"]["id"]),
                valid_for_ms: number(&granted["validForMs"]),
                ttl_ms: number(&granted["lease"]["ttlMs"]),
            };
            Answer::Granted { leases: granted_in(&said.body).into_iter().map(grant).collect() }
        }
        _ => match code {
            "HELD" => Answer::Held {
                resource: text(&said.body["resource"]).unwrap_or_default(),
                by: text(&said.body["holder"]),
            },
            "EXPIRED" => Answer::Over,
            "NOT_FOUND" => Answer::Unknown,
            "TOO_LATE" | "OUTCOME_UNKNOWN" => return None,
            "" | "INTERNAL" | "TOKEN_INVALID" | "KEY_REUSED" => panic!("{action}: {said:?}"),
            other => Answer::Refused { code: other.to_owned() },
        },
    })
}

fn seen(lease: &Value) -> Seen {
    Seen {
        fence: lease["fence"].as_u64().unwrap(),
        holder: lease["holder"].as_str().unwrap().to_owned(),
        mode: mode_of(lease),
        state: match lease["state"].as_str() {
            Some("ACTIVE") => Life::Active,
            Some("EXPIRED") => Life::Expired,
            _ => Life::Released,
        },
        remaining_ms: lease["remainingMs"].as_u64().unwrap(),
    }
}
