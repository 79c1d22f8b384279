//! `release`: what an agent needs no more.

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde::Deserialize;
use serde_json::json;
use tenure_api::AgentReleaseResult;

use super::ToolCall;
use super::arguments::{leases_property, schema, selected_leases};
use super::response::{ToolError, ToolResponse, format_names};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    lease_ids: Option<Vec<String>>,
    agent_id: Option<String>,
}

pub fn tool(has_agent: bool) -> Tool {
    let properties = json!({"lease_ids": leases_property("Leave it out to release all that you have.")});
    let description = "Call this as soon as you are done with something: others wait for it. \
        Afterwards it is no longer yours: do not touch it without declaring it again. Releasing what is over is fine. \
        A wait goes on; `report` with COMPLETED or ABORTED ends that, too.";
    Tool::new("release", description, schema(properties, &[], has_agent)).with_annotations(
        ToolAnnotations::with_title("Give leases back").destructive(false).idempotent(true).open_world(false),
    )
}

pub async fn call(call: &ToolCall<'_>, arguments: JsonObject) -> Result<ToolResponse, ToolError> {
    let arguments: Arguments = call.read(arguments)?;
    let agent = call.agent(arguments.agent_id)?;
    // It may mean nothing or everything, and everything would be too much.
    if arguments.lease_ids.as_ref().is_some_and(Vec::is_empty) {
        return Err(ToolError::invalid_argument(
            "`lease_ids` is empty; leave it out to release all that you have",
        ));
    }
    let selected = selected_leases(call.client, &agent, arguments.lease_ids).await?;
    if selected.lease_ids.is_empty() {
        let nothing = AgentReleaseResult { released: Vec::new(), unknown: Vec::new() };
        return Ok(
            ToolResponse::with_data(&nothing).line("You have no leases: there was nothing to release.")
        );
    }
    let answer = call.client.release_agent_leases(&selected).await?;
    let response = ToolResponse::with_data(&answer);
    let response = match answer.released.len() {
        0 => response.line("Nothing was released."),
        count => response.line(&format!(
            "{count} leases are over. Do not touch what they were for without declaring it again."
        )),
    };
    if answer.unknown.is_empty() {
        return Ok(response);
    }
    Ok(response
        .line(&format!(
            "These are unknown, or another agent's: {}. Call `status` to see what you have.",
            format_names(&answer.unknown)
        ))
        .with_error())
}
