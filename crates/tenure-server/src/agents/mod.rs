//! Agents API: an agent declares a manifest, and is granted all of it, waits, or tries again later.
//!
//! ```text
//! request ──> parse       ids, modes and names of resources
//!             manifest    merges the entries for a resource, submits them, renders the verdict
//!             leases      heartbeat, release, reconcile
//!             report      state of an agent, and resources that it touched
//!             list        agents, state of a resource, contention graph
//!             view        agents and leases as JSON
//!             wait_graph  which holder waits for which, over all APIs
//! ```
//!
//! Wait-die is decided in the kernel: `kernel/agent/wait_die.rs` in `tenure-core`.

mod leases;
mod list;
mod manifest;
mod parse;
mod report;
mod view;
mod wait_graph;

use std::sync::Arc;

use tenure_core::kernel::{AgentCommand, AgentOutcome, Command, CommandOutcome, Limits, Tick, TickDuration};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::http::auth::Caller;
use crate::http::response::{HttpError, answer_from_reply, unexpected};
use crate::tokens::TokenScope;

/// The routes of agents.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(manifest::declare))
        .routes(routes!(leases::heartbeat))
        .routes(routes!(leases::release))
        .routes(routes!(leases::reconcile))
        .routes(routes!(list::list))
        .routes(routes!(list::show))
        .routes(routes!(report::report))
        .routes(routes!(report::touch))
        .routes(routes!(list::resource_state))
        .routes(routes!(list::contention))
}

/// The kernel's answer to an agent, and when the request came in.
async fn submit(
    app: &App,
    caller: &Caller,
    command: AgentCommand,
) -> Result<(AgentOutcome, Tick), HttpError> {
    let response = app.registrar.submit(Command::Agent(Box::new(command))).await;
    let (answer, stamp) =
        answer_from_reply(response.reply, || app.registrar.now()).map_err(rephrase_for_agents)?;
    // The token was good a moment ago: whoever revoked it meanwhile has ended what there was by then.
    caller.require(TokenScope::LeasesWrite)?;
    let CommandOutcome::Agent(answer) = answer else { return Err(unexpected()) };
    Ok((*answer, stamp))
}

/// What is said about keys, as those hear it who have none: the same request finds what came of it.
fn rephrase_for_agents(mut failure: HttpError) -> HttpError {
    if failure.0.code == tenure_api::Code::OutcomeUnknown {
        failure.0.detail = "the disk failed while this was written; ask what is true with /v1/leases/reconcile, or send the \
                            same manifest again, when the server is back"
            .to_owned();
    }
    failure
}

/// What was chosen. Times are in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSettings {
    /// How long a lease lasts where nobody says.
    pub ttl_ms: u64,
    /// How long at the most: who asks for more gets this.
    pub max_ttl_ms: u64,
    /// How long an agent waits where nobody says.
    pub wait_ms: u64,
    /// How long at the most: who asks for more waits this long.
    pub max_wait_ms: u64,
    /// After how long an agent that died may come back, the first time. Each time it is twice as long.
    pub backoff_ms: u64,
    /// After how long at the most.
    pub max_backoff_ms: u64,
    /// For how long an agent may hold leases with one priority; nothing is no such bound.
    pub lease_time_ms: Option<u64>,
    /// For how long an agent may leave untouched what it has a lease to change; nothing is no such bound.
    pub idle_ms: Option<u64>,
}

impl Default for AgentSettings {
    fn default() -> Self {
        Self {
            ttl_ms: 60_000,
            max_ttl_ms: 300_000,
            wait_ms: 60_000,
            max_wait_ms: 600_000,
            backoff_ms: 250,
            max_backoff_ms: 30_000,
            lease_time_ms: None,
            idle_ms: None,
        }
    }
}

impl AgentSettings {
    /// The shortest lease. What is shorter ends before its first heartbeat can be in time.
    pub const MIN_TTL_MS: u64 = 1_000;
    /// No wait and no lease of an agent can be longer, whatever is configured.
    pub const MAX_MS: u64 = 86_400_000;

    /// What the kernel has to know of it.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            backoff: (
                TickDuration::from_millis(self.backoff_ms),
                TickDuration::from_millis(self.max_backoff_ms),
            ),
            max_agent_hold_time: self.lease_time_ms.map(TickDuration::from_millis),
            max_agent_idle_time: self.idle_ms.map(TickDuration::from_millis),
            ..Limits::default()
        }
    }
}
