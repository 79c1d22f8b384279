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

mod intent_list;
mod leases;
mod list;
mod manifest;
mod parse;
mod report;
mod settings;
mod view;
mod wait_graph;

use std::sync::Arc;

use tenure_core::kernel::{AgentCommand, AgentOutcome, Command, CommandOutcome, Tick};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use self::settings::AgentSettings;
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::reply_error::{answer_from_reply, unexpected};
use crate::http::response::HttpError;
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
