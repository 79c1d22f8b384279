//! `GET /v1/explain`: why a resource is free or not.

pub(crate) mod denial_log;

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use tenure_api::{DenialView, Explanation, Lease, Waiter};
use tenure_core::kernel;
use tenure_core::kernel::{Resource, Tick, TickDuration};
use tenure_core::rules::is_expired;

use crate::app::{App, tick_to_rfc3339};
use crate::http::auth::Caller;
use crate::http::response::{HttpError, json};
use crate::leases::queue::{parse_resource_query, waiters};
use crate::leases::{active_lease, ended_lease};

/// Explain the state of a resource.
///
/// Returns holders, waiters, the last denial and the last end, as fields and in sentences.
#[utoipa::path(
    get,
    path = "/v1/explain",
    tag = "watching",
    operation_id = "explain",
    params(("resource" = String, Query, description = "Name of the resource")),
    responses((status = 200, description = "State and explanation", body = Explanation)),
    extensions(("x-codes" = json!(["INVALID"])))
)]
pub(super) async fn explain(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, HttpError> {
    let resource = parse_resource_query(&caller, &uri)?;
    let denial = app.denials.latest(&resource);
    let now = app.registrar.now();
    let explanation = app.registrar.read(|state| {
        let last_denial = denial.map(|refused| denial_view(state, &refused, now));
        let mut explanation = Explanation {
            resource: resource.as_str().to_owned(),
            held: held(state, &resource, &caller, now),
            waiting: waiters(state, &resource, &caller, now),
            last_refusal: last_denial,
            last_end: last_end(state, &resource, now),
            words: Vec::new(),
        };
        let held_back = state
            .restore_quarantine_until(now)
            .map(|until| (tick_to_rfc3339(state, until), until.since(now)));
        explanation.words = describe(&explanation, held_back);
        explanation
    });
    Ok(json(StatusCode::OK, &explanation))
}

/// Who holds it, or something that overlaps it, oldest first.
fn held(state: &kernel::KernelState, resource: &Resource, caller: &Caller, now: Tick) -> Vec<Lease> {
    let alive = state
        .leases_overlapping_resource(resource)
        .filter(|lease| !is_expired(now.0, lease.terms.expires_at.0));
    let alive = alive.filter(|lease| caller.can_see(lease.resource.as_str()));
    let mut leases: Vec<_> = alive.map(|lease| active_lease(state, lease, now)).collect();
    leases.sort_unstable_by_key(|lease| lease.fence);
    leases
}

/// The lease on it that ended last, announced or not.
fn last_end(state: &kernel::KernelState, resource: &Resource, now: Tick) -> Option<Lease> {
    let unannounced =
        state.leases_on_resource(resource).filter(|lease| is_expired(now.0, lease.terms.expires_at.0));
    if let Some(lease) = unannounced.max_by_key(|lease| (lease.terms.expires_at, lease.fence)) {
        return Some(active_lease(state, lease, now));
    }
    let announced = state.ended_leases().filter(|lease| lease.resource == *resource);
    announced.max_by_key(|lease| (lease.ended_at, lease.fence)).map(|lease| ended_lease(state, lease))
}

fn denial_view(state: &kernel::KernelState, refused: &denial_log::Denial, now: Tick) -> DenialView {
    DenialView {
        at: tick_to_rfc3339(state, refused.at),
        ago_ms: now.since(refused.at).as_millis(),
        code: refused.code,
        detail: refused.detail.clone(),
        holder: refused.holder.as_str().to_owned(),
        principal: refused.principal.as_str().to_owned(),
    }
}

/// So many of those who hold or wait are named one by one.
const NAMED: usize = 10;

/// Who holds it, who waits, what would free it, and why the last request was refused. `held_back` is until when nothing
/// is granted at all.
fn describe(explanation: &Explanation, held_back: Option<(String, TickDuration)>) -> Vec<String> {
    let Explanation { resource, held, waiting, last_refusal, last_end, .. } = explanation;
    let mut words = Vec::new();
    if held.is_empty() {
        words.push(format!("Nobody holds {resource}."));
    }
    words.extend(held.iter().take(NAMED).map(holds));
    if let Some(more) = held.len().checked_sub(NAMED).filter(|more| *more > 0) {
        words.push(format!("{more} more hold it in the same way."));
    }
    if waiting.is_empty() {
        words.push("Nobody waits for it.".to_owned());
    }
    words.extend(waiting.iter().take(NAMED).map(waiter_sentence));
    if let Some(more) = waiting.len().checked_sub(NAMED).filter(|more| *more > 0) {
        words.push(format!("{more} more wait behind them."));
    }
    if let Some((until, remaining)) = held_back {
        let remaining = format_duration(remaining.as_millis());
        words.push(format!(
            "Nothing is granted before {until}, in {remaining}, because the ledger was restored from a copy."
        ));
    }
    words.extend(what_frees_it(held, waiting));
    words.extend(last_refusal.as_ref().map(refused));
    words.extend(last_end.as_ref().map(ended));
    words
}

fn holds(lease: &Lease) -> String {
    let Lease { resource, holder, mode, fence, acquired_at, expires_at, remaining_ms, .. } = lease;
    let remaining = format_duration(*remaining_ms);
    let renewed = match lease.renewal_count {
        0 => "unless it is renewed".to_owned(),
        1 => "it was renewed once, and unless it is renewed again".to_owned(),
        count => format!("it was renewed {count} times, and unless it is renewed again"),
    };
    format!(
        "{holder} holds {resource} ({mode}, fence {fence}) since {acquired_at}; {renewed} \
         it ends at {expires_at}, in {remaining}."
    )
}

fn waiter_sentence(waiter: &Waiter) -> String {
    let Waiter { position, holder, mode, waited_ms, remaining_ms, resources, .. } = waiter;
    let (waited, remaining) = (format_duration(*waited_ms), format_duration(*remaining_ms));
    let alternatives_suffix = match resources.len() {
        0 | 1 => String::new(),
        count => format!(", one of {count} that it asked for"),
    };
    format!(
        "Number {position} in line is {holder} ({mode}{alternatives_suffix}): it has waited for {waited}, \
         and leaves in {remaining} if its turn has not come."
    )
}

fn what_frees_it(held: &[Lease], waiting: &[Waiter]) -> Option<String> {
    let next = waiting.first().map_or_else(String::new, |first| format!("; {} is then next", first.holder));
    match held {
        [] if waiting.is_empty() => Some("It is free: the next request gets it.".to_owned()),
        [] => Some(
            "Nobody keeps it from the first in line, unless that one waits for something else too."
                .to_owned(),
        ),
        [only] => Some(format!(
            "It becomes free when {} releases it, when that lease runs out, or when an administrator revokes it{next}.",
            only.holder
        )),
        several => Some(format!(
            "It becomes free when all {} have released it, or their leases ran out or were revoked{next}.",
            several.len()
        )),
    }
}

fn refused(refused: &DenialView) -> String {
    let DenialView { at, ago_ms, code, detail, holder, principal } = refused;
    let (ago, code) = (format_duration(*ago_ms), code.as_str());
    format!(
        "The last request that was refused came from {holder} of {principal}, {ago} ago, at {at}; it got {code}: {detail}."
    )
}

fn ended(lease: &Lease) -> String {
    let Lease { holder, fence, .. } = lease;
    let (at, how) = (lease.ended_at.as_deref().unwrap_or_default(), lease.end.as_deref().unwrap_or_default());
    format!("The lease that ended last was {holder}'s (fence {fence}), at {at}: {how}.")
}

/// A length of time as people say it, in two units at most.
fn format_duration(milliseconds: u64) -> String {
    let seconds = milliseconds / 1_000;
    match (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0, 0) => format!("{milliseconds} ms"),
        (0, 0, 0, seconds) => format!("{seconds} s"),
        (0, 0, minutes, 0) => format!("{minutes} min"),
        (0, 0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (0, hours, 0, _) => format!("{hours} h"),
        (0, hours, minutes, _) => format!("{hours} h {minutes} min"),
        (days, 0, ..) => format!("{days} d"),
        (days, hours, ..) => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_formatted_in_one_or_two_units() {
        for (milliseconds, expected) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_999, "1 s"),
            (60_000, "1 min"),
            (61_000, "1 min 1 s"),
            (3_600_000, "1 h"),
            (3_660_000, "1 h 1 min"),
            (86_400_000, "1 d"),
            (90_000_000, "1 d 1 h"),
        ] {
            assert_eq!(format_duration(milliseconds), expected);
        }
    }
}
