//! `heartbeat`: more time for what an agent has.

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde::Deserialize;
use serde_json::json;
use tenure_api::Heartbeat;

use super::arguments::{leases, leases_property, schema};
use super::refused::Refused;
use super::said::Said;
use super::service::Call;
use crate::duration::short;

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

pub async fn call(call: &Call<'_>, arguments: JsonObject) -> Result<Said, Refused> {
    let arguments: Arguments = call.read(arguments)?;
    let agent = call.agent(arguments.agent_id)?;
    let asked = leases(call.client, &agent, arguments.lease_ids).await?;
    if asked.lease_ids.is_empty() {
        return Ok(Said::with(&Heartbeat { renewed: Vec::new(), rejected: Vec::new() })
            .line("You have no leases: nothing was kept. Before you touch anything, call `declare`."));
    }
    let answer = call.client.heartbeat(&asked).await?;
    Ok(said(&answer))
}

fn said(answer: &Heartbeat) -> Said {
    let said = Said::with(answer);
    let said = match answer.renewed.iter().map(|beat| beat.remaining_ms).min() {
        Some(least) => said.field("heartbeatEveryMs", least / 3).line(&format!(
            "{} of your leases go on. The next heartbeat is due within {}.",
            answer.renewed.len(),
            short(least / 3)
        )),
        None => said.line("None of these leases is yours any more."),
    };
    if answer.rejected.is_empty() {
        return said;
    }
    let lines = answer.rejected.iter().map(|rejected| format!("- lease {} ({})", rejected.id, rejected.code));
    said.line("These are NO LONGER yours. Stop touching what they were for, and call `declare` for it again:")
        .lines(lines)
        .failed()
}
