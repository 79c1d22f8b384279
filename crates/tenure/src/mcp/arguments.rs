//! Arguments of tools, and the instructions for models.

use rmcp::model::JsonObject;
use serde_json::{Value, json};
use tenure_api::{AgentLease, AgentLeaseIds};
use tenure_client::{Client, Code};

use super::error::ToolError;

/// The description of a tool's arguments.
///
/// `agent_id` is required where there is no default for it.
pub fn schema(properties: Value, required: &[&str], has_agent: bool) -> JsonObject {
    let mut properties = match properties {
        Value::Object(properties) => properties,
        _ => JsonObject::new(),
    };
    let usual = if has_agent { " Leave it out to be the agent that your user named." } else { "" };
    properties.insert(
        "agent_id".into(),
        json!({"type": "string", "minLength": 1, "maxLength": 256, "description": format!(
            "Who you are: a name that no other agent has, the same in every call.{usual}")}),
    );
    let mut required = required.to_vec();
    if !has_agent {
        required.push("agent_id");
    }
    let whole = json!({
        "type": "object", "properties": properties, "required": required, "additionalProperties": false
    });
    match whole {
        Value::Object(whole) => whole,
        _ => JsonObject::new(),
    }
}

/// How a session is named, for the tools that need one.
pub fn session_property() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": 256, "description":
        "What you work on, in a word. Leave it out unless your user named one."})
}

pub fn leases_property(without: &str) -> Value {
    json!({"type": "array", "items": {"type": "string"}, "maxItems": 1_024, "description":
        format!("The ids of leases, as `declare` gave them. {without}")})
}

pub async fn held_leases(client: &Client, agent: &str) -> Result<Vec<AgentLease>, ToolError> {
    match client.agent(agent).await {
        Ok(view) => Ok(view.leases),
        Err(error) if error.code() == Some(Code::NotFound) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

/// The leases that are meant: those that are named, else all that the agent has.
pub async fn selected_leases(
    client: &Client,
    agent: &str,
    named: Option<Vec<String>>,
) -> Result<AgentLeaseIds, ToolError> {
    let lease_ids = match named {
        Some(named) => named,
        None => held_leases(client, agent).await?.into_iter().map(|lease| lease.id).collect(),
    };
    Ok(AgentLeaseIds { agent_id: agent.to_owned(), lease_ids })
}

/// Goes to every client with the answer to its first request. Models read it as part of their instructions, so each line
/// says what to do and when.
pub const INSTRUCTIONS: &str = "\
Tenure says who may touch which file, until when. Several agents work here at once; these tools keep them apart.
1. Before you edit, create, delete or rename anything, call `declare` ONCE with the whole list of what you are about to \
touch. You get all of it or nothing.
2. GRANTED: work, on exactly what you declared. Call `heartbeat` at least every third of the lease's time; what runs out \
is no longer yours.
3. WAIT: somebody younger has it, and you are in line. Touch nothing of the list. Do something else, and call \
`declare` with the same list again after the time that you were told.
4. DIE: somebody older has it. Touch nothing of the list, and stop touching what `ended` names: it is no longer yours. \
Call `declare` with the same list again after the time that you were told.
5. You find that you need more: call `declare` with what is new, before you touch it. It adds, and gives nothing back.
6. A heartbeat is rejected, or a tool fails: assume that the lease is lost. Stop, call `status`, and declare anew.
7. When something is done, `release` it; when all is done, `report` the state COMPLETED (or ABORTED): that releases \
everything and ends every wait.
8. `report` what you touched, too: what you had no lease for is named, and has to be undone or declared.
9. `who` says who has a file and who waits for it; `status` says what you have. Neither changes anything.
10. Keep one agent_id from the first call to the last. Nothing here depends on the connection.";
