//! `DELETE /v1/queue/{ticket}`: a waiter leaves the line. For waits under an `Idempotency-Key`, which a connection that
//! ends does not end.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use tenure_api::Code;
use tenure_core::kernel::{Answer, Command, Principal, Refusal, Ticket, WaitEnd};
use tenure_registrar::Reply;
use utoipa::ToSchema;

use super::is_admin;
use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::refusal::failure_of;

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
    params(
        ("ticket" = u64, Path, description = "The wait, as `ticket` named it"),
    ),
    responses((status = 200, description = "It waits no longer", body = Withdrawn)),
    extensions(("x-codes" = json!(["NOT_FOUND"])))
)]
pub(super) async fn withdraw(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    ticket: Result<Path<u64>, axum::extract::rejection::PathRejection>,
) -> Result<Response, Failure> {
    let ticket = ticket.map(|Path(number)| Ticket(number)).map_err(|_| no_such_wait())?;
    let owner = app.registrar.read(|state| Some(state.ticket(ticket)?.principal.clone()));
    let owner = owner.filter(|owner| *owner == principal || is_admin(&principal)).ok_or_else(no_such_wait)?;
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

fn no_such_wait() -> Failure {
    Failure::new(
        Code::NotFound,
        "no such ticket of yours waits: it was served, or left, before; if it was served, the request that waited \
         finds its lease when it is repeated with the same Idempotency-Key",
    )
}
