//! `DELETE /v1/queue/{ticket}`: a waiter leaves the line. For waits under an `Idempotency-Key`, which a connection that
//! ends does not end.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use tenure_api::Code;
use tenure_core::kernel::{Answer, Command, Refusal, Ticket, TicketView, WaitEnd, Want};
use tenure_registrar::Reply;
use utoipa::ToSchema;

use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;
use crate::http::refusal::failure_of;
use crate::tokens::Scope;

/// A wait that is over.
#[derive(Serialize, ToSchema)]
struct Withdrawn {
    /// Which.
    ticket: u64,
}

/// Leave the line.
///
/// For a wait under an `Idempotency-Key`, which a connection that ends does not end.
#[utoipa::path(
    delete,
    path = "/v1/queue/{ticket}",
    tag = "leases",
    operation_id = "withdraw",
    params(("ticket" = u64, Path, description = "The wait, as `ticket` named it")),
    responses((status = 200, description = "It waits no longer", body = Withdrawn)),
    extensions(("x-codes" = json!(["NOT_FOUND"])))
)]
pub(super) async fn withdraw(
    State(app): State<Arc<App>>,
    caller: Caller,
    ticket: Result<Path<u64>, axum::extract::rejection::PathRejection>,
) -> Result<Response, Failure> {
    let ticket = ticket.map(|Path(number)| Ticket(number)).map_err(|_| no_such_wait())?;
    let owner = app.registrar.read(|state| {
        let waiting = state.ticket(ticket).filter(|waiting| may_end(&caller, waiting))?;
        Some(waiting.principal.clone())
    });
    let owner = owner.ok_or_else(no_such_wait)?;
    let command = Command::Withdraw { ticket, principal: owner, end: WaitEnd::Withdrawn };
    match app.registrar.ask(command).await.reply {
        Reply::Answered { answer: Answer::Withdrawn { waited: true }, .. } => {
            Ok(json(StatusCode::OK, &Withdrawn { ticket: ticket.0 }))
        }
        Reply::Answered {
            answer: Answer::Withdrawn { waited: false } | Answer::Refused(Refusal::NoSuchTicket),
            ..
        } => Err(no_such_wait()),
        reply => Err(failure_of(reply, || app.registrar.now())),
    }
}

/// Its own waits, and for an administrator every wait for what it may act on.
fn may_end(caller: &Caller, waiting: &TicketView<'_>) -> bool {
    let is_admin = caller.scopes.contain(Scope::Admin);
    let mut resources = waiting.wants.iter().flat_map(Want::resources);
    let mut may_act = || resources.all(|resource| caller.may_see(resource.as_str()));
    *waiting.principal == caller.principal || is_admin && may_act()
}

fn no_such_wait() -> Failure {
    Failure::new(
        Code::NotFound,
        "no such ticket of yours waits: it was served, or left, before; if it was served, the request that waited \
         finds its lease when it is repeated with the same Idempotency-Key",
    )
}
