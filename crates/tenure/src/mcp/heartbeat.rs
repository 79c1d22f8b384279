//! `heartbeat`: more time for what an agent has.

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde::Deserialize;
use serde_json::json;
use tenure_api::{AgentLease, AgentLeaseIds, HeartbeatResult};

use super::ToolCall;
use super::arguments::{held_leases, leases_property, schema};
use super::response::{ToolError, ToolResponse};
use crate::duration::format_short;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    lease_ids: Option<Vec<String>>,
    agent_id: Option<String>,
}

pub fn tool(has_agent: bool) -> Tool {
    let properties = json!({"lease_ids": leases_property("Leave it out for all that you have.")});
    let description = "Call this while you work, at least every third of the leases' time, to keep them. \
        What is under `renewed` is yours for its time again. What is under `rejected` is NO LONGER yours: stop touching \
        it at once, and `declare` it again.";
    Tool::new("heartbeat", description, schema(properties, &[], has_agent)).with_annotations(
        ToolAnnotations::with_title("Keep your leases").destructive(false).idempotent(true).open_world(false),
    )
}

pub async fn call(call: &ToolCall<'_>, arguments: JsonObject) -> Result<ToolResponse, ToolError> {
    let arguments: Arguments = call.read(arguments)?;
    let agent = call.agent(arguments.agent_id)?;
    // Who names none is told which those are: one that ran out is not among them, and nothing else would say so.
    // An empty list names none: some models fill in every field.
    let (lease_ids, known) = match arguments.lease_ids.filter(|named| !named.is_empty()) {
        Some(named) => (named, Vec::new()),
        None => {
            let held = held_leases(call.client, &agent).await?;
            (held.iter().map(|lease| lease.id.clone()).collect(), held)
        }
    };
    if lease_ids.is_empty() {
        return Ok(ToolResponse::with_data(&HeartbeatResult { renewed: Vec::new(), rejected: Vec::new() }).line(
            "You have no leases: nothing was kept. If you had any, they are over: stop touching what they were for. Before \
             you touch anything, call `declare`.",
        ));
    }
    let answer = call.client.heartbeat(&AgentLeaseIds { agent_id: agent, lease_ids }).await?;
    Ok(to_response(&answer, &known))
}

fn to_response(answer: &HeartbeatResult, known: &[AgentLease]) -> ToolResponse {
    let line = |id: &str| match known.iter().find(|lease| lease.id == id) {
        Some(lease) => format!("- {} ({}): lease {id}", lease.resource, lease.predicate),
        None => format!("- lease {id}"),
    };
    let response = ToolResponse::with_data(answer);
    let response = match answer.renewed.iter().map(|beat| beat.remaining_ms).min() {
        Some(least) => response
            .field("heartbeatEveryMs", least / 3)
            .line("These go on:")
            .lines(answer.renewed.iter().map(|beat| line(&beat.id)))
            .line(&format!("The next heartbeat is due within {}.", format_short(least / 3))),
        None => response.line("None of these leases is yours any more."),
    };
    // Whoever named some may have others.
    let response = match known {
        [] => response,
        _ => response
            .line("That is all that you have: what is not in this list is not yours; do not touch it."),
    };
    if answer.rejected.is_empty() {
        return response;
    }
    let lines = answer.rejected.iter().map(|rejected| format!("{} ({})", line(&rejected.id), rejected.code));
    response
        .line("These are NO LONGER yours. Stop touching what they were for, and call `declare` for it again:")
        .lines(lines)
        .with_error()
}
