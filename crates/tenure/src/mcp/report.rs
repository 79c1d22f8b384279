//! `report`: what an agent is doing, and what it touched.

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde::Deserialize;
use serde_json::json;
use tenure_api::{AgentStateReport, ResourceTouchReport};
use tenure_client::Code;

use super::arguments::{ResourceArgument, schema, session_property};
use super::response::{ToolError, ToolResponse};
use super::{ToolCall, status};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    state: Option<String>,
    touched: Option<Vec<ResourceArgument>>,
    agent_id: Option<String>,
    session_id: Option<String>,
}

const STATES: [&str; 8] =
    ["PLANNING", "ACQUIRING", "EXECUTING", "PAUSED", "VERIFYING", "COMPLETED", "ABORTED", "DIE_RESTART"];

pub fn tool(has_agent: bool) -> Tool {
    let properties = json!({
        "state": {"type": "string", "enum": STATES, "description":
            "What you are doing. COMPLETED: all is done. ABORTED: you give up. Both release everything that you have and \
             end every wait. DIE_RESTART: your process is about to restart; each lease lasts 15 s longer, once."},
        "touched": {"type": "array", "maxItems": 1_024, "items": ResourceArgument::schema(), "description":
            "What you changed, or are about to: it is compared with your leases."},
        "session_id": session_property(),
    });
    let description = "Say what you are doing (`state`), what you touched (`touched`), or both. \
        End every piece of work with state COMPLETED or ABORTED: that releases all that you have. \
        If you touched something without a lease, this fails and names it: undo that, or `declare` it, before you go on.";
    Tool::new("report", description, schema(properties, &[], has_agent)).with_annotations(
        ToolAnnotations::with_title("Say what you do").destructive(false).idempotent(true).open_world(false),
    )
}

pub async fn call(call: &ToolCall<'_>, arguments: JsonObject) -> Result<ToolResponse, ToolError> {
    let arguments: Arguments = call.read(arguments)?;
    let agent = call.agent(arguments.agent_id)?;
    let touched = arguments.touched.unwrap_or_default();
    if let Some(state) = &arguments.state
        && !STATES.contains(&state.as_str())
    {
        return Err(ToolError::invalid_argument(&format!("`state` is one of {}", STATES.join(", "))));
    }
    if arguments.state.is_none() && touched.is_empty() {
        return Err(ToolError::invalid_argument("say `state`, or `touched`, or both"));
    }
    // What was touched is looked at first: a state may release the leases that permitted it.
    let within = match touched.is_empty() {
        true => None,
        false => Some(touch(call, &agent, &touched).await?),
    };
    let Some(state) = arguments.state else {
        return match within {
            Some(Err(violation)) => Err(violation),
            _ => Ok(ToolResponse::with_data(&json!({"within": touched.len()}))
                .line("All of it is within your leases.")),
        };
    };
    let session_id = call.session(arguments.session_id);
    let view = call
        .client
        .report(&agent, &AgentStateReport { session_id, state: state.clone(), digest: None })
        .await?;
    let response = status::to_response(&view);
    Ok(match within {
        Some(Err(violation)) => {
            violation.into_response().line(&format!("The state {state} was noted all the same."))
        }
        Some(Ok(())) => {
            response.line("All that you touched is within your leases.").field("within", touched.len())
        }
        None => response,
    })
}

/// Whether all of it is within the agent's leases; nothing else may go wrong.
async fn touch(
    call: &ToolCall<'_>,
    agent: &str,
    touched: &[ResourceArgument],
) -> Result<Result<(), ToolError>, ToolError> {
    let resources: Result<_, _> =
        touched.iter().map(|touching| touching.requested_resource(call.paths)).collect();
    match call.client.touch(agent, &ResourceTouchReport { resources: resources? }).await {
        Ok(_) => Ok(Ok(())),
        Err(error) if error.code() == Some(Code::ScopeViolation) => Ok(Err(error.into())),
        Err(error) => Err(error.into()),
    }
}
