//! `DELETE /v1/queue/{ticket}`: a waiter leaves the line. For waits under an `Idempotency-Key`, which a connection that
//! ends does not end.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use tenure_api::Code;
use tenure_core::kernel::{
    Command, CommandOutcome, LeaseRequest, QueueTicketView, Rejection, Ticket, WaitEnd,
};
use tenure_registrar::Reply;
use utoipa::ToSchema;

use crate::app::App;
use crate::http::auth::Caller;
use crate::http::reply_error::error_from_reply;
use crate::http::response::{HttpError, json};
use crate::tokens::TokenScope;

/// A withdrawn queue ticket.
#[derive(Serialize, ToSchema)]
struct WithdrawnTicket {
    /// Number of the ticket.
    ticket: u64,
}

/// Withdraw a waiting request.
///
/// For requests with an `Idempotency-Key`, which outlive their connection.
#[utoipa::path(
    delete,
    path = "/v1/queue/{ticket}",
    tag = "leases",
    operation_id = "withdraw",
    params(("ticket" = u64, Path, description = "Queue ticket, as returned in `ticket`")),
    responses((status = 200, description = "Request was withdrawn", body = WithdrawnTicket)),
    extensions(("x-codes" = json!(["NOT_FOUND"])))
)]
pub(super) async fn withdraw(
    State(app): State<Arc<App>>,
    caller: Caller,
    ticket: Result<Path<u64>, axum::extract::rejection::PathRejection>,
) -> Result<Response, HttpError> {
    let ticket = ticket.map(|Path(number)| Ticket(number)).map_err(|_| ticket_not_found())?;
    let owner = app.registrar.read(|state| {
        let waiting = state.queue_ticket(ticket).filter(|waiting| can_withdraw(&caller, waiting))?;
        Some(waiting.principal.clone())
    });
    let owner = owner.ok_or_else(ticket_not_found)?;
    let command = Command::Withdraw { ticket, principal: owner, end: WaitEnd::Withdrawn };
    match app.registrar.submit(command).await.reply {
        Reply::Answered { answer: CommandOutcome::Withdrawn { waited: true }, .. } => {
            Ok(json(StatusCode::OK, &WithdrawnTicket { ticket: ticket.0 }))
        }
        Reply::Answered {
            answer:
                CommandOutcome::Withdrawn { waited: false } | CommandOutcome::Rejected(Rejection::NoSuchTicket),
            ..
        } => Err(ticket_not_found()),
        reply => Err(error_from_reply(reply, || app.registrar.now())),
    }
}

/// Its own waits, and for an administrator every wait for what it may act on.
fn can_withdraw(caller: &Caller, waiting: &QueueTicketView<'_>) -> bool {
    let is_admin = caller.scopes.contains(TokenScope::Admin);
    let mut resources = waiting.requests.iter().flat_map(LeaseRequest::resources);
    let mut may_act = || resources.all(|resource| caller.can_see(resource.as_str()));
    *waiting.principal == caller.principal || is_admin && may_act()
}

fn ticket_not_found() -> HttpError {
    HttpError::new(
        Code::NotFound,
        "no such ticket of yours waits: it was served, or left, before; if it was served, the request that waited \
         finds its lease when it is repeated with the same Idempotency-Key",
    )
}
