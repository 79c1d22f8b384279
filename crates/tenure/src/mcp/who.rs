//! `who`: who has something, and who waits for it.

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::Value;
use tenure_api::ResourceState;

use super::arguments::schema;
use super::refused::Refused;
use super::said::{Said, names};
use super::service::Call;
use super::touching::{Touching, resource_of};
use crate::duration::short;

pub fn tool() -> Tool {
    let mut whole = schema(Value::Object(Touching::object_properties()), &[], true);
    if let Some(Value::Object(properties)) = whole.get_mut("properties") {
        properties.remove("agent_id");
    }
    let description = "Ask who has a file or another resource right now, or something that overlaps it, and who waits \
        for it. It changes nothing and gives you nothing: to get it, call `declare`, which also says who is in the way.";
    Tool::new("who", description, whole)
        .with_annotations(ToolAnnotations::with_title("Who has it?").read_only(true).open_world(false))
}

pub async fn call(call: &Call<'_>, mut arguments: JsonObject) -> Result<Said, Refused> {
    // Anybody may ask; who says who it is does no harm.
    arguments.remove("agent_id");
    let touching: Touching = call.read(arguments)?;
    let resource = resource_of(&touching.object(call.places)?);
    let state = call.client.resource_state(&resource).await?;
    Ok(said(&state))
}

fn said(state: &ResourceState) -> Said {
    let said = Said::with(state);
    let resource = &state.resource;
    let said = if state.leases.is_empty() {
        said.line(&format!("Nobody has {resource} or anything that overlaps it."))
    } else {
        let lines = state.leases.iter().map(|lease| {
            let left = short(lease.remaining_ms);
            format!(
                "- {} has {} ({}), for {left} more unless it sends a heartbeat",
                lease.agent_id, lease.resource, lease.predicate
            )
        });
        said.line(&format!("{resource} is taken:")).lines(lines)
    };
    if state.waiting.is_empty() {
        said.line("Nobody waits for it.")
    } else {
        said.line(&format!("Waiting, the next one first: {}.", names(&state.waiting)))
    }
}
