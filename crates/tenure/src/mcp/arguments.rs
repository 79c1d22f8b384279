//! Who asks, and about which leases: what every tool is told, and what it takes if it is not.

use rmcp::model::JsonObject;
use serde_json::{Value, json};
use tenure_api::{AgentLease, AgentLeases};
use tenure_client::{Client, Code};

use super::refused::Refused;

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

pub async fn held(client: &Client, agent: &str) -> Result<Vec<AgentLease>, Refused> {
    match client.agent(agent).await {
        Ok(view) => Ok(view.leases),
        Err(error) if error.code() == Some(Code::NotFound) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

/// The leases that are meant: those that are named, else all that the agent has.
pub async fn leases(
    client: &Client,
    agent: &str,
    named: Option<Vec<String>>,
) -> Result<AgentLeases, Refused> {
    let lease_ids = match named {
        Some(named) => named,
        None => held(client, agent).await?.into_iter().map(|lease| lease.id).collect(),
    };
    Ok(AgentLeases { agent_id: agent.to_owned(), lease_ids })
}
