//! `who`: who has something, and who waits for it.

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::Value;
use tenure_api::ResourceState;

use super::ToolCall;
use super::arguments::{ResourceArgument, resource_name, schema};
use super::response::{ToolError, ToolResponse, format_names};
use crate::duration::format_short;

pub fn tool() -> Tool {
    let mut whole = schema(Value::Object(ResourceArgument::object_properties()), &[], true);
    if let Some(Value::Object(properties)) = whole.get_mut("properties") {
        properties.remove("agent_id");
    }
    let description = "Ask who has a file or another resource right now, or something that overlaps it, and who waits \
        for it. It changes nothing and gives you nothing: to get it, call `declare`, which also says who is in the way.";
    Tool::new("who", description, whole)
        .with_annotations(ToolAnnotations::with_title("Who has it?").read_only(true).open_world(false))
}

pub async fn call(call: &ToolCall<'_>, mut arguments: JsonObject) -> Result<ToolResponse, ToolError> {
    // Anybody may ask; who says who it is does no harm.
    arguments.remove("agent_id");
    let touching: ResourceArgument = call.read(arguments)?;
    let resource = resource_name(&touching.object(call.paths)?);
    let state = call.client.resource_state(&resource).await?;
    Ok(to_response(&state))
}

fn to_response(state: &ResourceState) -> ToolResponse {
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
