//! `status`: the leases, waits and touches of an agent. `who`: the holders of a resource and the agents that wait for it.

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde::Deserialize;
use serde_json::{Value, json};
use tenure_api::{AgentLeaseIds, AgentView, ReconcileResult, ResourceState};
use tenure_client::Code;

use super::ToolCall;
use super::arguments::{ResourceArgument, leases_property, resource_name, schema};
use super::response::{
    ToolError, ToolResponse, format_names, heartbeat_interval, lease_line, seconds, wait_line,
};
use crate::duration::format_short;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    lease_ids: Option<Vec<String>>,
    agent_id: Option<String>,
}

pub fn tool(has_agent: bool) -> Tool {
    let properties = json!({
        "lease_ids": leases_property("Name those that you remember to hear of each whether it is still yours.")
    });
    let description = "Call this when you are not sure what you have: after a pause, a restart, a failed tool or a \
        rejected heartbeat. It says which leases are yours and for how long, what you wait for, and what you touched \
        without a lease. What it says is true, whatever you remember: what is not listed as yours you must not touch.";
    Tool::new("status", description, schema(properties, &[], has_agent))
        .with_annotations(ToolAnnotations::with_title("What is yours").read_only(true).open_world(false))
}

pub async fn call(call: &ToolCall<'_>, arguments: JsonObject) -> Result<ToolResponse, ToolError> {
    let arguments: Arguments = call.read(arguments)?;
    let agent = call.agent(arguments.agent_id)?;
    let truth = match arguments.lease_ids {
        Some(lease_ids) if !lease_ids.is_empty() => {
            Some(call.client.reconcile(&AgentLeaseIds { agent_id: agent.clone(), lease_ids }).await?)
        }
        _ => None,
    };
    let response = match call.client.agent(&agent).await {
        Ok(view) => to_response(&view),
        Err(error) if error.code() == Some(Code::NotFound) => {
            ToolResponse::with_data(&json!({"agent_id": agent, "leases": [], "waits": [], "outside": []}))
                .line("You have nothing and wait for nothing. Before you touch anything, call `declare`.")
        }
        Err(error) => return Err(error.into()),
    };
    Ok(match truth {
        Some(truth) => with_truth(response, &truth),
        None => response,
    })
}

pub fn to_response(view: &AgentView) -> ToolResponse {
    let mut response = ToolResponse::with_data(view);
    if let Some(state) = &view.state {
        response = response.line(&format!("State: {state}."));
    }
    response = if view.leases.is_empty() {
        response.line("You have no leases. Before you touch anything, call `declare`.")
    } else {
        let every = heartbeat_interval(&view.leases).unwrap_or_default();
        // The last heartbeat may have been long ago.
        let is_late = view.leases.iter().any(|lease| lease.remaining_ms < every);
        let first = if is_late { "NOW, and then " } else { "" };
        response
            .line("These are yours:")
            .lines(view.leases.iter().map(lease_line))
            .line(&format!(
                "Call `heartbeat` {first}at least every {} s to keep them.",
                (every / 1_000).max(1)
            ))
            .field("heartbeatEveryMs", every)
    };
    if !view.waits.is_empty() {
        response = response
            .line("You wait for these; do not touch them before `declare` with the same list says GRANTED:")
            .lines(view.waits.iter().map(wait_line));
    }
    if let Some(after) = view.retry_after_ms {
        response = response
            .line(&format!("Your last `declare` ended with DIE. Call it again after {} s.", seconds(after)));
    }
    if !view.outside.is_empty() {
        response = response.line(&format!(
            "You touched these without a lease: {}. Undo that, or declare them before you go on.",
            format_names(&view.outside)
        ));
    }
    response
}

fn with_truth(response: ToolResponse, truth: &ReconcileResult) -> ToolResponse {
    let lines = truth.leases.iter().map(|(id, lease)| {
        let what = lease.resource.as_deref().unwrap_or("nothing that is known");
        if lease.held {
            return format!("- lease {id} is yours: {what}, {} left", format_short(lease.remaining_ms));
        }
        let end = lease.end.as_ref().unwrap_or(&lease.state);
        let now = if lease.held_by.is_empty() {
            String::new()
        } else {
            format!("; now with {}", format_names(&lease.held_by))
        };
        format!("- lease {id} is NOT yours: {what} ({end}){now}. Stop touching it")
    });
    response
        .line("Of the leases that you named:")
        .lines(lines)
        .field("reconciled", serde_json::to_value(&truth.leases).unwrap_or_default())
}

pub fn resource_tool() -> Tool {
    let mut whole = schema(Value::Object(ResourceArgument::object_properties()), &[], true);
    if let Some(Value::Object(properties)) = whole.get_mut("properties") {
        properties.remove("agent_id");
    }
    let description = "Ask who has a file or another resource right now, or something that overlaps it, and who waits \
        for it. It changes nothing and gives you nothing: to get it, call `declare`, which also says who is in the way.";
    Tool::new("who", description, whole)
        .with_annotations(ToolAnnotations::with_title("Who has it?").read_only(true).open_world(false))
}

pub async fn call_resource(
    call: &ToolCall<'_>,
    mut arguments: JsonObject,
) -> Result<ToolResponse, ToolError> {
    // Anybody may ask; who says who it is does no harm.
    arguments.remove("agent_id");
    let touching: ResourceArgument = call.read(arguments)?;
    let resource = resource_name(&touching.object(call.paths)?);
    let state = call.client.resource_state(&resource).await?;
    Ok(resource_response(&state))
}

fn resource_response(state: &ResourceState) -> ToolResponse {
    let response = ToolResponse::with_data(state);
    let resource = &state.resource;
    let response = if state.leases.is_empty() {
        response.line(&format!("Nobody has {resource} or anything that overlaps it."))
    } else {
        let lines = state.leases.iter().map(|lease| {
            let remaining = format_short(lease.remaining_ms);
            format!(
                "- {} has {} ({}), for {remaining} more unless it sends a heartbeat",
                lease.agent_id, lease.resource, lease.predicate
            )
        });
        response.line(&format!("{resource} is taken:")).lines(lines)
    };
    if state.waiting.is_empty() {
        response.line("Nobody waits for it.")
    } else {
        response.line(&format!("Waiting, the next one first: {}.", format_names(&state.waiting)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S3-12
    #[test]
    fn late_agent_is_advised_to_send_a_heartbeat_now() {
        for (remaining, is_late) in [(60_000, false), (20_000, false), (5_000, true)] {
            let lease = json!({"id": "l", "resource": "FILE:a", "predicate": "MUTATES", "agent_id": "a",
                "acquired_at": "", "expires_at": "", "ttl": 60_000, "fence": 1, "remainingMs": remaining});
            let view = json!({"agent_id": "a", "session_id": "s", "epoch": 0, "changedAt": "", "leases": [lease],
                "waits": [], "deaths": 0, "outside": [], "heldMs": 1});
            let response = to_response(&serde_json::from_value(view).unwrap());
            assert!(response.text().contains("at least every 20 s"), "{}", response.text());
            assert_eq!(response.text().contains("`heartbeat` NOW"), is_late, "{}", response.text());
        }
    }
}
