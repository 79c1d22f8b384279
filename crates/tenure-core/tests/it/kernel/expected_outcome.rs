//! What the answer to a command may be, said before it is given, by the model alone.

use tenure_core::kernel::{
    Acquire, Command, CommandOutcome, ContentionPolicy, Decision, ENDED_LEASE_RETENTION, Event, Fence,
    HOLDER_RETENTION, Holder, KEY_RETENTION, LeaseCredential, LeaseRequest, Limits, Principal, QueuedAcquire,
    Rejection, Resource, Tick, Ticket, WaitEnd,
};

use crate::kernel::model::{EndedRecord, LeaseModel, ModelLease, are_compatible, overlaps, request_names};
use crate::kernel::wait_graph::{WaitGraph, check_cycle};

/// What is said about an answer that is not there yet.
#[derive(Debug, PartialEq, Eq)]
pub enum ExpectedOutcome {
    /// Leases with these numbers, which are there already.
    SameLeases(Vec<Fence>),
    /// The wait that is there already.
    SameTicket(Ticket),
    KeyReused,
    /// It is asked for something that does not go together, or that there is never enough of.
    Invalid,
    /// One of the leases behind the key is over.
    Ended,
    HolderTaken,
    /// On these resources.
    Granted(Vec<Resource>),
    /// Something is in the way: a refusal that says so.
    Held,
    /// Something is in the way: a ticket, or why there is none.
    Queued,
    /// What is in the way depends on what is found to be over first; each grant is judged by itself.
    GrantedOrNot,
    Renewed,
    Released,
    NotHolder,
    NotFound,
    /// Either is right: it was forgotten, or is about to be.
    EndedOrNotFound,
    Unknown,
}

const LAST: Ticket = Ticket(u64::MAX);

pub fn forecast(model: &LeaseModel, command: &Command, now: Tick) -> ExpectedOutcome {
    match command {
        Command::Acquire(acquire) => forecast_acquire(model, acquire, now),
        Command::Renew { lease, credential: claim, .. } => {
            forecast_change(model, *lease, claim, now, ExpectedOutcome::Renewed)
        }
        Command::Release { lease, claim, .. } => {
            match forecast_change(model, *lease, claim, now, ExpectedOutcome::Released) {
                ExpectedOutcome::Ended => ExpectedOutcome::Released,
                other => other,
            }
        }
        _ => ExpectedOutcome::Unknown,
    }
}

fn forecast_change(
    model: &LeaseModel,
    fence: Fence,
    claim: &LeaseCredential,
    now: Tick,
    otherwise: ExpectedOutcome,
) -> ExpectedOutcome {
    let may = |lease: &ModelLease| match claim {
        LeaseCredential::Token => true,
        LeaseCredential::Holder { holder, principal } => {
            *holder == lease.holder && *principal == lease.principal
        }
    };
    if let Some(lease) = model.leases.iter().find(|lease| lease.fence == fence) {
        return match may(lease) {
            false => ExpectedOutcome::NotHolder,
            true if now < lease.end => otherwise,
            true => ExpectedOutcome::Ended,
        };
    }
    let mut ended = model.ended.iter().filter_map(|record| Some((record.lease.as_ref()?, record.at)));
    match ended.find(|(lease, _)| lease.fence == fence) {
        None => ExpectedOutcome::NotFound,
        Some((_, at)) if now >= at.saturating_add(ENDED_LEASE_RETENTION) => ExpectedOutcome::EndedOrNotFound,
        Some((lease, _)) if !may(lease) => ExpectedOutcome::NotHolder,
        Some(_) => ExpectedOutcome::Ended,
    }
}

fn forecast_acquire(model: &LeaseModel, acquire: &Acquire, now: Tick) -> ExpectedOutcome {
    if acquire.key.is_some() && acquire.contention_policy == ContentionPolicy::RefreshOwn {
        return ExpectedOutcome::Invalid;
    }
    if let Some(again) = forecast_key(model, acquire, now) {
        return again;
    }
    if LeaseModel::assign(&acquire.requests, &mut Vec::new(), &|_, _| false, &|_, _| true).is_none() {
        return ExpectedOutcome::Invalid;
    }
    if conflicts_with_itself(&acquire.requests) {
        return ExpectedOutcome::Invalid;
    }
    let leases = model.active_leases(now).map(|lease| (&lease.holder, &lease.principal));
    let mut uses = leases.chain(model.active_waiters(now).map(|wait| (&wait.holder, &wait.principal)));
    if uses.any(|(holder, principal)| *holder == acquire.holder && *principal != acquire.principal) {
        return ExpectedOutcome::HolderTaken;
    }
    let refresh = acquire.contention_policy == ContentionPolicy::RefreshOwn;
    // Its own wait may be served on the way, and then it is refreshed, or not yet.
    if refresh && model.active_waiters(now).any(|wait| wait.holder == acquire.holder) {
        return ExpectedOutcome::Unknown;
    }
    // Who waits for any one of several may be served on the way with another one than this request wants.
    let has_alternatives =
        |wait: &QueuedAcquire| wait.requests.iter().any(|request| !request.alternatives.is_empty());
    if !model.all_ends_recorded(now) && model.active_waiters(now).any(has_alternatives) {
        return ExpectedOutcome::GrantedOrNot;
    }
    match (expected_assignment(model, acquire, now), acquire.contention_policy) {
        (Some(resources), _) => ExpectedOutcome::Granted(resources),
        (None, ContentionPolicy::Queue { wait_timeout: patience }) if patience.0 > 0 => {
            ExpectedOutcome::Queued
        }
        (None, _) => ExpectedOutcome::Held,
    }
}

/// Whether two of the wants name resources that overlap, and do not go together.
fn conflicts_with_itself(requests: &[LeaseRequest]) -> bool {
    let conflict = |one: &LeaseRequest, other: &LeaseRequest| {
        let mut pairs = one.resources().flat_map(|name| other.resources().map(move |beside| (name, beside)));
        !are_compatible(one.mode, other.mode)
            && pairs.any(|(name, beside)| name != beside && overlaps(name, beside))
    };
    requests.iter().enumerate().any(|(index, one)| requests[..index].iter().any(|other| conflict(one, other)))
}

/// What the request would get now.
fn expected_assignment(model: &LeaseModel, acquire: &Acquire, now: Tick) -> Option<Vec<Resource>> {
    let has = |request: &LeaseRequest, resource: &Resource| has_own(model, acquire, request, resource, now);
    let fits = |request: &LeaseRequest, resource: &Resource| {
        model.blockers(resource, request.mode, LAST, now).is_empty()
    };
    LeaseModel::assign(&acquire.requests, &mut Vec::new(), &has, &fits)
}

/// Whether the holder has `resource` already as it wants it, and that counts.
fn has_own(
    model: &LeaseModel,
    acquire: &Acquire,
    request: &LeaseRequest,
    resource: &Resource,
    now: Tick,
) -> bool {
    let mut own = model.active_leases(now).filter(|lease| lease.holder == acquire.holder);
    acquire.contention_policy == ContentionPolicy::RefreshOwn
        && own.any(|lease| lease.resource == *resource && lease.mode == request.mode)
}

fn forecast_key(model: &LeaseModel, acquire: &Acquire, now: Tick) -> Option<ExpectedOutcome> {
    let key = acquire.key?;
    let same = |wait: &&QueuedAcquire| {
        wait.principal == acquire.principal && wait.key.is_some_and(|other| other.key == key.key)
    };
    if let Some(wait) = model.waiters.iter().find(same) {
        return match wait.key == Some(key) {
            false => Some(ExpectedOutcome::KeyReused),
            true if now < wait.until => Some(ExpectedOutcome::SameTicket(wait.ticket)),
            true => None,
        };
    }
    let mut requests = model.keyed.iter().rev();
    let keyed = requests.find(|keyed| keyed.principal == acquire.principal && keyed.key.key == key.key)?;
    let end_of = |fence: &Fence| {
        let mut ended = model.ended.iter().filter(|record| record.lease.is_some());
        ended
            .find(|record| record.lease.as_ref().is_some_and(|lease| lease.fence == *fence))
            .map(|record| record.at)
    };
    let ends: Vec<_> = keyed.leases.iter().map(end_of).collect();
    let all_ended = ends.iter().copied().collect::<Option<Vec<Tick>>>();
    if all_ended.is_some_and(|ends| ends.iter().all(|end| now >= end.saturating_add(KEY_RETENTION))) {
        return None;
    }
    if keyed.key != key {
        return Some(ExpectedOutcome::KeyReused);
    }
    if ends.iter().flatten().any(|end| now >= end.saturating_add(ENDED_LEASE_RETENTION)) {
        return Some(ExpectedOutcome::EndedOrNotFound);
    }
    let is_active = |fence: &Fence| model.active_leases(now).any(|lease| lease.fence == *fence);
    let all_live = keyed.leases.iter().all(is_active);
    Some(if all_live { ExpectedOutcome::SameLeases(keyed.leases.clone()) } else { ExpectedOutcome::Ended })
}

/// Compares what was said with what came, and judges what could not be said before. `model` is as it was
/// before the command, `after` as it is now.
pub fn check_forecast(
    forecast: &ExpectedOutcome,
    model: &LeaseModel,
    after: &LeaseModel,
    command: &Command,
    decision: &Decision,
    limits: &Limits,
    now: Tick,
) {
    use ExpectedOutcome as F;
    let answer = &decision.outcome;
    let fits = match (forecast, answer) {
        (F::Unknown, _) => true,
        (F::SameLeases(leases), CommandOutcome::Granted { leases: found }) => leases == found,
        (F::SameTicket(ticket), CommandOutcome::Queued { ticket: found, .. }) => ticket == found,
        (F::Queued | F::GrantedOrNot, CommandOutcome::Queued { .. }) => true,
        (
            F::Queued | F::GrantedOrNot,
            CommandOutcome::Rejected(Rejection::QueueFull { .. } | Rejection::Deadlock { .. }),
        ) => true,
        (F::Granted(resources), CommandOutcome::Granted { leases }) => {
            let of = |fence: &Fence| after.leases.iter().find(|lease| lease.fence == *fence);
            let found = leases.iter().map(|fence| of(fence).map(|lease| &lease.resource));
            found.eq(resources.iter().map(Some))
        }
        (F::Renewed, CommandOutcome::Renewed { .. }) | (F::Released, CommandOutcome::Released { .. }) => true,
        (F::EndedOrNotFound, CommandOutcome::Released { .. }) => true,
        (F::Ended | F::EndedOrNotFound, CommandOutcome::Rejected(Rejection::Ended { .. })) => true,
        (F::NotFound | F::EndedOrNotFound, CommandOutcome::Rejected(Rejection::NotFound)) => true,
        (F::EndedOrNotFound | F::NotHolder, CommandOutcome::Rejected(Rejection::NotHolder)) => true,
        (F::KeyReused, CommandOutcome::Rejected(Rejection::KeyReused)) => true,
        (F::Invalid, CommandOutcome::Rejected(Rejection::Invalid(_))) => true,
        (F::HolderTaken, CommandOutcome::Rejected(Rejection::HolderTaken { .. })) => true,
        (F::Held | F::GrantedOrNot, CommandOutcome::Rejected(Rejection::Held { .. })) => true,
        (F::GrantedOrNot, CommandOutcome::Granted { .. }) => true,
        (F::Granted(_) | F::Held | F::Queued | F::GrantedOrNot, CommandOutcome::Rejected(rejection)) => {
            can_be_rejected(rejection, model, command, limits, now)
        }
        _ => false,
    };
    assert!(fits, "foretold {forecast:?}, answered {answer:?}");
    match answer {
        CommandOutcome::Rejected(rejection) => {
            check_rejection(rejection, after, command, decision, now);
        }
        CommandOutcome::Granted { leases } => check_grant(leases, after, command, now),
        CommandOutcome::Swept { more } => {
            assert!(*more || after.all_ends_recorded(now), "swept, and yet there is more")
        }
        CommandOutcome::Reissued { old_lease: before, lease } => {
            check_successor(*before, *lease, model, after, command)
        }
        _ => {}
    }
}

/// A name that was somebody else's until less than a day ago, or a quota.
fn can_be_rejected(
    rejection: &Rejection,
    model: &LeaseModel,
    command: &Command,
    limits: &Limits,
    now: Tick,
) -> bool {
    let Command::Acquire(acquire) = command else { return false };
    match rejection {
        Rejection::HolderTaken { holder } => {
            let is_taken =
                |name: &Holder, principal: &Principal| name == holder && *principal != acquire.principal;
            let is_retained = |record: &EndedRecord| {
                is_taken(&record.holder, &record.principal)
                    && now < record.at.saturating_add(HOLDER_RETENTION)
            };
            model.ended.iter().any(is_retained)
                || model.leases.iter().any(|lease| is_taken(&lease.holder, &lease.principal))
                || model.waiters.iter().any(|wait| is_taken(&wait.holder, &wait.principal))
        }
        Rejection::QuotaExceeded { .. } => limits.max_leases_per_principal.is_some(),
        _ => false,
    }
}

fn check_rejection(
    rejection: &Rejection,
    after: &LeaseModel,
    command: &Command,
    decision: &Decision,
    now: Tick,
) {
    for event in &decision.events {
        let found = match event {
            Event::Expired { .. } | Event::Left { end: WaitEnd::TimedOut, .. } => true,
            Event::Issued(issued) => issued.ticket.is_some(),
            _ => false,
        };
        assert!(found, "refused with {rejection:?}, and yet {event:?}");
    }
    if let (Rejection::QuotaExceeded { max }, Command::Acquire(acquire)) = (rejection, command) {
        let has =
            |request: &LeaseRequest, resource: &Resource| has_own(after, acquire, request, resource, now);
        let more = match expected_assignment(after, acquire, now) {
            Some(resources) => {
                let each = acquire.requests.iter().zip(&resources);
                each.filter(|(request, resource)| !has(request, resource)).count()
            }
            None => {
                let requests = acquire.requests.iter();
                requests.filter(|request| !request.resources().any(|resource| has(request, resource))).count()
            }
        };
        assert!(after.usage(&acquire.principal, now) + more > *max, "the quota is not used up");
    }
    if let (Rejection::Held { resource, holder, until, .. }, Command::Acquire(acquire)) = (rejection, command)
    {
        check_held(after, acquire, (resource, holder, *until), now);
    }
    if let (Rejection::Deadlock { cycle }, Command::Transfer { lease, to, .. }) = (rejection, command) {
        let mut handed = after.clone();
        let lease = handed.leases.iter_mut().find(|other| other.fence == *lease).expect("it is not ended");
        lease.holder = to.clone();
        check_cycle(cycle, to, &WaitGraph::from_model(&handed, now));
    }
    if let (Rejection::Deadlock { cycle }, Command::Acquire(acquire)) = (rejection, command) {
        let mut graph = WaitGraph::from_model(after, now);
        graph.add(after, &acquire.holder, &acquire.requests, LAST, now);
        check_cycle(cycle, &acquire.holder, &graph);
    }
}

/// Who is named is in the way, and nobody is for a shorter time on another resource that would do for the same want.
fn check_held(after: &LeaseModel, acquire: &Acquire, held: (&Resource, &Holder, Tick), now: Tick) {
    let (resource, holder, until) = held;
    let mut requests = acquire.requests.iter().filter(|request| request_names(request, resource));
    let blocked = |request: &LeaseRequest| after.blockers(resource, request.mode, LAST, now).contains(holder);
    assert!(requests.any(blocked), "{holder} is not in the way on {resource}");
    if let [request] = &acquire.requests[..] {
        let ends = |resource: &Resource| after.latest_blocker_end(resource, request.mode, now);
        let sooner = request.resources().filter_map(ends).find(|end| *end < until);
        assert_eq!(sooner, None, "free before {resource}, which is held until {until:?}");
    }
}

fn check_grant(leases: &[Fence], after: &LeaseModel, command: &Command, now: Tick) {
    let Command::Acquire(acquire) = command else { panic!("granted without being asked") };
    // A refreshed lease is not noted under the key, so that a repeated answer may be shorter.
    let short = acquire.contention_policy == ContentionPolicy::RefreshOwn && acquire.key.is_some();
    assert!(leases.len() == acquire.requests.len() || short, "granted in part");
    for fence in leases {
        let lease =
            after.active_leases(now).find(|lease| lease.fence == *fence).expect("what is granted lives");
        let is_requested = acquire
            .requests
            .iter()
            .any(|request| request_names(request, &lease.resource) && request.mode == lease.mode);
        assert!(is_requested && lease.holder == acquire.holder, "granted otherwise than asked: {lease:?}");
    }
}

fn check_successor(before: Fence, lease: Fence, model: &LeaseModel, after: &LeaseModel, command: &Command) {
    let find = |model: &LeaseModel, fence| model.leases.iter().find(|lease| lease.fence == fence).cloned();
    assert!(find(after, before).is_none(), "{before:?} goes on beside what continues it");
    let old = find(model, before).expect("what is continued was there");
    let new = find(after, lease).expect("what continues it is there");
    assert_eq!(old.resource, new.resource);
    let expected = match command {
        Command::Transfer { to, principal, .. } => (to, principal, old.mode),
        Command::Upgrade(change) | Command::Downgrade(change) => (&old.holder, &old.principal, change.mode),
        other => panic!("{other:?} continues nothing"),
    };
    assert_eq!((&new.holder, &new.principal, new.mode), expected);
}
