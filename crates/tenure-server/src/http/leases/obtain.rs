//! Gets leases for a caller: at once, or after a wait in line.

use tenure_api::Code;
use tenure_core::kernel::{self, Contention, Mode, Resource, State, Tick, Ticket, TicketView, WaitEnd, Want};
use tenure_core::rules::time::{is_over, remaining};

use crate::app::App;
use crate::http::answer::Failure;
use crate::http::auth::Caller;
use crate::http::refusal::{cut_off, failure_of};
use crate::refusals::Wanted;
use crate::registrar::{Asked, Given, Line, Waited};
use crate::tokens::Scope;

/// The leases that are asked for, or why there are none. Whoever drops this while it waits leaves the line, unless
/// the request has a key.
pub(super) async fn obtain(app: &App, caller: &Caller, acquire: kernel::Acquire) -> Result<Given, Failure> {
    let wanted = Wanted::by(&acquire);
    let given = ask(app, caller, acquire).await;
    // What a token may not do says nothing about the resource, and is no business of those who may see it.
    let is_about_it = |failure: &&Failure| !matches!(failure.0.code, Code::Forbidden | Code::Unauthorized);
    if let Some(failure) = given.as_ref().err().filter(is_about_it) {
        app.refusals.note(wanted, &failure.0, app.registrar.now());
    }
    given
}

async fn ask(app: &App, caller: &Caller, acquire: kernel::Acquire) -> Result<Given, Failure> {
    for resource in acquire.wants.iter().flat_map(Want::resources) {
        caller.require_resource(resource.as_str())?;
    }
    let wants = match acquire.contention {
        Contention::Queue { .. } => acquire.wants.clone(),
        _ => Vec::new(),
    };
    let given = match app.registrar.acquire(acquire).await {
        Asked::Given(given) => Ok(given),
        Asked::InLine(line) => wait(app, line, &wants).await,
        Asked::Not(reply) => Err(failure_of(reply, || app.registrar.now())),
    };
    // The token was good a moment ago, or a day: whoever revoked it meanwhile has ended what there was by then.
    caller.require(Scope::LeasesWrite)?;
    given
}

async fn wait(app: &App, line: Line, wants: &[Want]) -> Result<Given, Failure> {
    let (ticket, stamp) = (line.ticket, line.stamp);
    match app.registrar.wait(line, app.stopping()).await {
        Waited::Given(given) => Ok(*given),
        Waited::Over(end) => {
            let now = app.registrar.now();
            let mut failure = app.registrar.read(|state| in_vain(state, wants, ticket, end, now));
            failure.0.waited_ms = Some(now.since(stamp).as_millis());
            Err(failure)
        }
        Waited::Stopped { has_key } => {
            let place = if has_key {
                "the place in the queue is kept for the same request with the same Idempotency-Key, until 10 s after \
                 the server's next start"
            } else {
                "the wait is over, because it had no Idempotency-Key"
            };
            Err(Failure::new(Code::Unavailable, format!("the server is stopping; {place}; ask again later")))
        }
        Waited::Unknown => Err(cut_off()),
    }
}

/// What a waiter is told that got nothing: who is in its way now.
fn in_vain(state: &State, wants: &[Want], ticket: Ticket, end: WaitEnd, now: Tick) -> Failure {
    let what = match end {
        WaitEnd::TimedOut => "the wait is over; ask again later",
        WaitEnd::Withdrawn => "the wait was withdrawn by another request",
        WaitEnd::Gone => "the wait was ended, because its holder was taken for gone; ask again",
    };
    let Some((resource, holder, until)) = in_the_way(state, wants, ticket, now) else {
        let mut failure = Failure::new(Code::Held, format!("{what}; by now nobody holds it"));
        failure.0.resource = wants.first().map(|want| want.resource.as_str().to_owned());
        return failure;
    };
    let mut failure = Failure::new(Code::Held, format!("{resource} is held by {holder}; {what}"));
    failure.0.holder = Some(holder);
    failure.0.remaining_ms = Some(remaining(now.0, until.0) / 1_000);
    failure.0.waiting =
        Some(state.queue_of(resource).filter(|waiting| !is_over(now.0, waiting.until.0)).count());
    failure.0.resource = Some(resource.as_str().to_owned());
    failure
}

/// Who holds, or waits before this ticket for, one of these; and until when. Where several would do, all of them are
/// taken: then it is the one that is free the soonest.
fn in_the_way<'a>(
    state: &State,
    wants: &'a [Want],
    ticket: Ticket,
    now: Tick,
) -> Option<(&'a Resource, String, Tick)> {
    wants.iter().find_map(|want| {
        let taken = want.resources().map(|resource| taken(state, resource, want.mode, ticket, now));
        let taken = taken.collect::<Option<Vec<_>>>()?;
        taken.into_iter().min_by_key(|(_, _, until)| *until)
    })
}

fn taken<'a>(
    state: &State,
    resource: &'a Resource,
    mode: Mode,
    ticket: Ticket,
    now: Tick,
) -> Option<(&'a Resource, String, Tick)> {
    let mut leases = state.leases_on_resource(resource);
    let held =
        leases.find(|lease| !lease.terms.mode.goes_with(mode) && !is_over(now.0, lease.terms.expires_at.0));
    let mut before = state.queue_of(resource).take_while(|waiting| waiting.ticket < ticket);
    let waits = || {
        let in_time = |waiting: &TicketView<'_>| !is_over(now.0, waiting.until.0);
        let waiting = before.find(|waiting| in_time(waiting) && waiting.is_kept_out_of(resource, mode))?;
        Some((waiting.holder, waiting.until))
    };
    let (holder, until) = held.map(|lease| (lease.holder, lease.terms.expires_at)).or_else(waits)?;
    Some((resource, holder.as_str().to_owned(), until))
}
