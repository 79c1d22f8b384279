//! Gets leases for a caller: at once, or after a wait in the queue.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use tenure_api::Code;
use tenure_core::kernel;
use tenure_core::kernel::{
    Command, CommandOutcome, ContentionPolicy, KernelState, LeaseMode, LeaseRequest, QueueTicketView,
    Rejection, Resource, Tick, Ticket, WaitEnd,
};
use tenure_core::rules::{is_expired, remaining};
use tenure_registrar::Reply;
use utoipa::ToSchema;

use crate::app::App;
use crate::engine::{AcquireOutcome, PendingGrant, QueueOutcome, QueuedRequest};
use crate::explain::denial_log::RequestSummary;
use crate::http::auth::Caller;
use crate::http::response::{HttpError, error_from_reply, json, outcome_unknown};
use crate::tokens::TokenScope;

/// The leases that are asked for, or why there are none. Whoever drops this while it waits leaves the line, unless
/// the request has a key.
pub(super) async fn acquire_or_wait(
    app: &App,
    caller: &Caller,
    acquire: kernel::Acquire,
) -> Result<PendingGrant, HttpError> {
    let summary = RequestSummary::from_acquire(&acquire);
    let granted = ask(app, caller, acquire).await;
    // What a token may not do says nothing about the resource, and is no business of those who may see it.
    let is_about_it = |failure: &&HttpError| !matches!(failure.0.code, Code::Forbidden | Code::Unauthorized);
    if let Some(failure) = granted.as_ref().err().filter(is_about_it) {
        app.denials.record(summary, &failure.0, app.registrar.now());
    }
    granted
}

async fn ask(app: &App, caller: &Caller, acquire: kernel::Acquire) -> Result<PendingGrant, HttpError> {
    for resource in acquire.requests.iter().flat_map(LeaseRequest::resources) {
        caller.require_resource(resource.as_str())?;
    }
    let requests = match acquire.contention_policy {
        ContentionPolicy::Queue { .. } => acquire.requests.clone(),
        _ => Vec::new(),
    };
    let grant = match app.registrar.acquire(acquire).await {
        AcquireOutcome::Granted(grant) => Ok(grant),
        AcquireOutcome::Queued(queued) => wait(app, queued, &requests).await,
        AcquireOutcome::NotGranted(reply) => Err(error_from_reply(reply, || app.registrar.now())),
    };
    // The token was good a moment ago, or a day: whoever revoked it meanwhile has ended what there was by then.
    caller.require(TokenScope::LeasesWrite)?;
    grant
}

async fn wait(
    app: &App,
    queued: QueuedRequest,
    requests: &[LeaseRequest],
) -> Result<PendingGrant, HttpError> {
    let (ticket, stamp) = (queued.ticket, queued.stamp);
    match app.registrar.wait(queued, app.wait_for_stop()).await {
        QueueOutcome::Granted(grant) => Ok(*grant),
        QueueOutcome::Ended(end) => {
            let now = app.registrar.now();
            let mut failure = app.registrar.read(|state| wait_error(state, requests, ticket, end, now));
            failure.0.waited_ms = Some(now.since(stamp).as_millis());
            Err(failure)
        }
        QueueOutcome::ServerShutdown { has_key } => {
            let place = if has_key {
                "the place in the queue is kept for the same request with the same Idempotency-Key, until 10 s after \
                 the server's next start"
            } else {
                "the wait is over, because it had no Idempotency-Key"
            };
            Err(HttpError::new(
                Code::Unavailable,
                format!("the server is stopping; {place}; ask again later"),
            ))
        }
        QueueOutcome::TooLate => Err(error_from_reply(Reply::TooLate, || app.registrar.now())),
        QueueOutcome::Unknown => Err(outcome_unknown()),
    }
}

/// What a waiter is told that got nothing: who is in its way now.
fn wait_error(
    state: &KernelState,
    requests: &[LeaseRequest],
    ticket: Ticket,
    end: WaitEnd,
    now: Tick,
) -> HttpError {
    let what = match end {
        WaitEnd::TimedOut => "the wait is over; ask again later",
        WaitEnd::Withdrawn => "the wait was withdrawn by another request",
        WaitEnd::Gone => "the wait was ended, because its holder was taken for gone; ask again",
    };
    let Some((resource, holder, until)) = find_blocker(state, requests, ticket, now) else {
        let mut failure = HttpError::new(Code::Held, format!("{what}; by now nobody holds it"));
        failure.0.resource = requests.first().map(|request| request.resource.as_str().to_owned());
        return failure;
    };
    let mut failure = HttpError::new(Code::Held, format!("{resource} is held by {holder}; {what}"));
    failure.0.holder = Some(holder);
    failure.0.remaining_ms = Some(remaining(now.0, until.0) / 1_000);
    failure.0.waiting =
        Some(state.queue_of(resource).filter(|waiting| !is_expired(now.0, waiting.until.0)).count());
    failure.0.resource = Some(resource.as_str().to_owned());
    failure
}

/// Who holds, or waits before this ticket for, one of these; and until when. Where several would do, all of them are
/// taken: then it is the one that is free the soonest.
fn find_blocker<'a>(
    state: &KernelState,
    requests: &'a [LeaseRequest],
    ticket: Ticket,
    now: Tick,
) -> Option<(&'a Resource, String, Tick)> {
    requests.iter().find_map(|request| {
        let taken = request.resources().map(|resource| taken(state, resource, request.mode, ticket, now));
        let taken = taken.collect::<Option<Vec<_>>>()?;
        taken.into_iter().min_by_key(|(_, _, until)| *until)
    })
}

fn taken<'a>(
    state: &KernelState,
    resource: &'a Resource,
    mode: LeaseMode,
    ticket: Ticket,
    now: Tick,
) -> Option<(&'a Resource, String, Tick)> {
    let mut leases = state.leases_on_resource(resource);
    let held = leases
        .find(|lease| !lease.terms.mode.is_compatible(mode) && !is_expired(now.0, lease.terms.expires_at.0));
    let mut before = state.queue_of(resource).take_while(|waiting| waiting.ticket < ticket);
    let blocking_waiter = || {
        let in_time = |waiting: &QueueTicketView<'_>| !is_expired(now.0, waiting.until.0);
        let waiting = before.find(|waiting| in_time(waiting) && waiting.conflicts_with(resource, mode))?;
        Some((waiting.holder, waiting.until))
    };
    let (holder, until) =
        held.map(|lease| (lease.holder, lease.terms.expires_at)).or_else(blocking_waiter)?;
    Some((resource, holder.as_str().to_owned(), until))
}

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
