//! `declare`: what an agent is about to touch, all of it or nothing.

use jiff::Timestamp;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde::Deserialize;
use serde_json::json;
use tenure_api::{Manifest, ManifestVerdict};
use tenure_client::Code;

use super::ToolCall;
use super::arguments::{ResourceArgument, schema, session_property};
use super::response::{ToolError, ToolResponse, format_names, heartbeat_interval, lease_line, seconds};

/// After how long an agent that waits asks again, at the most.
const MAX_RETRY_MS: u64 = 10_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    touch: Vec<ResourceArgument>,
    ttl_seconds: Option<u64>,
    wait_seconds: Option<u64>,
    priority_timestamp: Option<u64>,
    agent_id: Option<String>,
    session_id: Option<String>,
}

pub fn tool(has_agent: bool) -> Tool {
    let properties = json!({
        "touch": {"type": "array", "minItems": 1, "maxItems": 256, "items": ResourceArgument::schema(), "description":
            "Everything that you are about to touch, in one list: it is granted all together or not at all."},
        "ttl_seconds": {"type": "integer", "minimum": 1, "description":
            "How long each lease lasts without a heartbeat. Leave it out unless you will be silent for longer than \
             20 s; at most 300."},
        "wait_seconds": {"type": "integer", "minimum": 1, "description":
            "How long your place in the line is kept if you have to wait."},
        "priority_timestamp": {"type": "integer", "minimum": 0, "description":
            "Leave it out. When your attempt began, in milliseconds; smaller is older, and older goes first."},
        "session_id": session_property(),
    });
    let description = "Call this BEFORE you edit, create, delete or rename files, with the whole list. \
        GRANTED: all of it is yours; work, call `heartbeat` in time, `release` when done. \
        WAIT: touch nothing of it; do something else and call this again with the same list after `askAgainAfterMs`. \
        DIE: touch nothing of it, stop touching what `ended` names, and call this again with the same list after \
        `retryAfterMs`. Calling it again with the same list is always safe; with another list it adds to what you have.";
    Tool::new("declare", description, schema(properties, &["touch"], has_agent)).with_annotations(
        ToolAnnotations::with_title("Declare what you are about to touch")
            .destructive(false)
            .idempotent(true)
            .open_world(false),
    )
}

pub async fn call(call: &ToolCall<'_>, arguments: JsonObject) -> Result<ToolResponse, ToolError> {
    let arguments: Arguments = call.read(arguments)?;
    let intents: Result<_, _> = arguments.touch.iter().map(|touching| touching.intent(call.paths)).collect();
    let milliseconds = |seconds: u64| seconds.saturating_mul(1_000);
    let mut manifest = Manifest {
        session_id: call.session(arguments.session_id),
        agent_id: call.agent(arguments.agent_id)?,
        intents: intents?,
        ttl: arguments.ttl_seconds.map(milliseconds),
        priority_timestamp: arguments.priority_timestamp.or_else(now),
        wait_timeout_ms: arguments.wait_seconds.map(milliseconds),
    };
    let mut answer = send(call, &manifest).await;
    // An attempt that goes on has its age, and the server alone knows it: nothing is remembered here.
    if let Err(refused) = &answer
        && refused.code() == Some(Code::PriorityFixed)
        && arguments.priority_timestamp.is_none()
        && refused.agent_priority().is_some()
    {
        manifest.priority_timestamp = refused.agent_priority();
        answer = send(call, &manifest).await;
    }
    answer.map(|verdict| to_response(&verdict))
}

async fn send(call: &ToolCall<'_>, manifest: &Manifest) -> Result<ManifestVerdict, ToolError> {
    Ok(call.client.declare(manifest).await?)
}

fn now() -> Option<u64> {
    u64::try_from(Timestamp::now().as_millisecond()).ok()
}

fn to_response(verdict: &ManifestVerdict) -> ToolResponse {
    let response = ToolResponse::with_data(verdict);
    match verdict {
        ManifestVerdict::Granted { leases } => {
            let every = heartbeat_interval(leases).unwrap_or_default();
            response.field("heartbeatEveryMs", every)
                .line("GRANTED: all of it is yours.")
                .lines(leases.iter().map(lease_line))
                .line(&format!(
                    "Work on exactly this. Call `heartbeat` at least every {} s, and `release` what is done. After the \
                     time above without a heartbeat it is no longer yours: stop touching it.",
                    (every / 1_000).max(1)
                ))
        }
        ManifestVerdict::Wait { wait_timeout_ms, wait_until, position, blocked_by } => {
            let again = MAX_RETRY_MS.min(wait_timeout_ms / 2).max(1_000);
            response.field("askAgainAfterMs", again)
                .line(&format!("WAIT: not yours yet. In the way: {}.", format_names(blocked_by)))
                .line(&format!("Your place in the line is {position}, and is kept until {wait_until}."))
                .line(&format!(
                    "Do not touch anything of this list. Do something else, or wait {} s, then call `declare` again \
                     with the same list: it says GRANTED as soon as it is your turn.",
                    seconds(again)
                ))
        }
        ManifestVerdict::Die { retry_after_ms, blocked_by, ended, .. } => {
            let response = response.line(&format!(
                "DIE: not yours, and an older one comes first. In the way: {}.",
                format_names(blocked_by)
            ));
            let response = if ended.is_empty() {
                response
            } else {
                response.line(&format!(
                    "These leases of yours were ended, because an older agent waits for them: {}. Stop touching what \
                     they were for, at once.",
                    format_names(ended)
                ))
            };
            response.line(&format!(
                "Do not touch anything of this list. Call `declare` again with the same list after {} s; do not change \
                 your agent_id. You keep your age, so that your turn comes.",
                seconds(*retry_after_ms)
            ))
        }
    }
}
