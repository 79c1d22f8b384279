//! The commands of the agents API: `tenure agents` and `tenure mcp`.

pub mod mcp;

use clap::Args;
use tenure_api::AgentView;

use crate::client::with_client;
use crate::failure::Failure;
use crate::output::{Format, Table};

/// Shows the agents: what each says that it does, what it holds, what it waits for, and who is in its way.
///
/// An agent of which nothing was heard for a day, and which holds and waits for nothing, is forgotten. docs/guides/agents.md
/// shows what an agent does.
///
/// Example: tenure agents --json
#[derive(Debug, Args)]
pub struct AgentsArguments {
    #[command(flatten)]
    format: Format,
}

impl AgentsArguments {
    /// Reads the list and prints it.
    pub fn run(self) -> Result<(), Failure> {
        let agents = with_client(async |client| Ok(client.agents().await?))?;
        self.format.print_table(&tenure_api::AgentList { agents }, "No agents.\n", |all| table(&all.agents))
    }
}

fn table(agents: &[AgentView]) -> Table {
    let heads = ["AGENT", "STATE", "PRIORITY", "HOLDS", "WAITS FOR", "BLOCKED BY"];
    let mut table = Table::with_header(&heads);
    for agent in agents {
        let holds = agent.leases.iter().map(|lease| in_words(&lease.predicate, &lease.resource));
        let requested = agent.waits.iter().flat_map(|wait| &wait.wants);
        let wants = requested.map(|request| in_words(&request.predicate, &request.resource));
        let blocked_by: std::collections::BTreeSet<_> =
            agent.waits.iter().flat_map(|wait| wait.blocked_by.iter().cloned()).collect();
        table.row([
            agent.agent_id.clone(),
            state(agent),
            agent.priority_timestamp.map_or_else(|| "-".to_owned(), |priority| priority.to_string()),
            list(holds),
            list(wants),
            list(blocked_by.into_iter()),
        ]);
    }
    table
}

/// What it said; and that it died, which it did not say.
fn state(agent: &AgentView) -> String {
    let state = agent.state.clone().unwrap_or_else(|| "-".to_owned());
    match agent.retry_after_ms {
        Some(after) => format!("{state} (back in {after} ms)"),
        None => state,
    }
}

fn in_words(predicate: &str, resource: &str) -> String {
    format!("{predicate} {resource}")
}

fn list(words: impl Iterator<Item = String>) -> String {
    let words: Vec<_> = words.collect();
    if words.is_empty() { "-".to_owned() } else { words.join(", ") }
}
