//! Agents: who says what it is about to touch, all of it at once, and gets all of it, waits, or comes back later.
//!
//! ```text
//! request ──> names       who and what, in the one form that it has here
//!             intents     each resource once, in the strongest way that it is named
//!             manifest    read strictly, let the kernel judge, say the verdict
//!             heartbeat   release   reconcile   what becomes of leases that an agent names
//!             report      touch     what an agent says that it does
//!             view        contention            what is shown of it
//! ```
//!
//! Nothing here decides who waits and who dies: see `kernel/dying.rs` in the core.

mod graph;
mod intents;
mod leases;
mod list;
mod manifest;
mod names;
mod report;
mod settings;
mod view;

use std::sync::Arc;

use tenure_core::kernel::{AgentAnswer, AgentCommand, Answer, Command, Tick};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use self::settings::AgentSettings;
use crate::app::App;
use crate::http::answer::Failure;
use crate::http::auth::Caller;
use crate::http::refusal::{answered, unexpected};
use crate::tokens::Scope;

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
        .routes(routes!(list::resource))
        .routes(routes!(list::contention))
}

/// The kernel's answer to an agent, and when the request came in.
async fn ask(app: &App, caller: &Caller, command: AgentCommand) -> Result<(AgentAnswer, Tick), Failure> {
    let response = app.registrar.ask(Command::Agent(Box::new(command))).await;
    let (answer, stamp) = answered(response.reply, || app.registrar.now()).map_err(in_words_of_agents)?;
    // The token was good a moment ago: whoever revoked it meanwhile has ended what there was by then.
    caller.require(Scope::LeasesWrite)?;
    let Answer::Agent(answer) = answer else { return Err(unexpected()) };
    Ok((*answer, stamp))
}

/// What is said about keys, as those hear it who have none: the same request finds what came of it.
fn in_words_of_agents(mut failure: Failure) -> Failure {
    if failure.0.code == tenure_api::Code::OutcomeUnknown {
        failure.0.detail = "the disk failed while this was written; ask what is true with /v1/leases/reconcile, or send the \
                            same manifest again, when the server is back"
            .to_owned();
    }
    failure
}
