//! What the answer to a command may be, said before it is given, by the model alone.

use tenure_core::kernel::{
    Acquire, Answer, Claim, Command, Contention, Decision, ENDED_KEPT, Event, Fence, HOLDER_KEPT, Holder,
    KEY_KEPT, Limits, Principal, Queued, Refusal, Resource, Tick, Ticket, WaitEnd, Want,
};

use crate::kernel_circles::{Waits, judge_circle};
use crate::kernel_model::{Lease, Model, Over, meet, names, together};

/// What is said about an answer that is not there yet.
#[derive(Debug, PartialEq, Eq)]
pub enum Forecast {
    /// Leases with these numbers, which are there already.
    TheSame(Vec<Fence>),
    /// The wait that is there already.
    TheSameWait(Ticket),
    KeyReused,
    /// It is asked for something that does not go together, or that there is never enough of.
    Invalid,
    /// One of the leases behind the key is over.
    Over,
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
    OverOrNotFound,
    Unsaid,
}

const LAST: Ticket = Ticket(u64::MAX);

pub fn forecast(model: &Model, command: &Command, now: Tick) -> Forecast {
    match command {
        Command::Acquire(acquire) => forecast_acquire(model, acquire, now),
        Command::Renew { lease, claim, .. } => forecast_change(model, *lease, claim, now, Forecast::Renewed),
        Command::Release { lease, claim, .. } => {
            match forecast_change(model, *lease, claim, now, Forecast::Released) {
                Forecast::Over => Forecast::Released,
                other => other,
            }
        }
        _ => Forecast::Unsaid,
    }
}

fn forecast_change(model: &Model, fence: Fence, claim: &Claim, now: Tick, otherwise: Forecast) -> Forecast {
    let may = |lease: &Lease| match claim {
        Claim::Token => true,
        Claim::Holder { holder, principal } => *holder == lease.holder && *principal == lease.principal,
    };
    if let Some(lease) = model.leases.iter().find(|lease| lease.fence == fence) {
        return match may(lease) {
            false => Forecast::NotHolder,
            true if now < lease.end => otherwise,
            true => Forecast::Over,
        };
    }
    let mut ended = model.over.iter().filter_map(|over| Some((over.lease.as_ref()?, over.at)));
    match ended.find(|(lease, _)| lease.fence == fence) {
        None => Forecast::NotFound,
        Some((_, at)) if now >= at.saturating_add(ENDED_KEPT) => Forecast::OverOrNotFound,
        Some((lease, _)) if !may(lease) => Forecast::NotHolder,
        Some(_) => Forecast::Over,
    }
}

fn forecast_acquire(model: &Model, acquire: &Acquire, now: Tick) -> Forecast {
    if acquire.key.is_some() && acquire.contention == Contention::RefreshOwn {
        return Forecast::Invalid;
    }
    if let Some(again) = forecast_key(model, acquire, now) {
        return again;
    }
    if Model::choose(&acquire.wants, &mut Vec::new(), &|_, _| false, &|_, _| true).is_none() {
        return Forecast::Invalid;
    }
    if is_at_odds_with_itself(&acquire.wants) {
        return Forecast::Invalid;
    }
    let leases = model.live(now).map(|lease| (&lease.holder, &lease.principal));
    let mut uses = leases.chain(model.waiting(now).map(|wait| (&wait.holder, &wait.principal)));
    if uses.any(|(holder, principal)| *holder == acquire.holder && *principal != acquire.principal) {
        return Forecast::HolderTaken;
    }
    let refresh = acquire.contention == Contention::RefreshOwn;
    // Its own wait may be served on the way, and then it is refreshed, or not yet.
    if refresh && model.waiting(now).any(|wait| wait.holder == acquire.holder) {
        return Forecast::Unsaid;
    }
    // Who waits for any one of several may be served on the way with another one than this request wants.
    let has_choice = |wait: &Queued| wait.wants.iter().any(|want| !want.others.is_empty());
    if !model.all_announced(now) && model.waiting(now).any(has_choice) {
        return Forecast::GrantedOrNot;
    }
    match (chosen(model, acquire, now), acquire.contention) {
        (Some(resources), _) => Forecast::Granted(resources),
        (None, Contention::Queue { patience }) if patience.0 > 0 => Forecast::Queued,
        (None, _) => Forecast::Held,
    }
}

/// Whether two of the wants name resources that overlap, and do not go together.
fn is_at_odds_with_itself(wants: &[Want]) -> bool {
    let apart = |one: &Want, other: &Want| {
        let mut pairs = one.resources().flat_map(|name| other.resources().map(move |beside| (name, beside)));
        !together(one.mode, other.mode) && pairs.any(|(name, beside)| name != beside && meet(name, beside))
    };
    wants.iter().enumerate().any(|(index, one)| wants[..index].iter().any(|other| apart(one, other)))
}

/// What the request would get now.
fn chosen(model: &Model, acquire: &Acquire, now: Tick) -> Option<Vec<Resource>> {
    let has = |want: &Want, resource: &Resource| has_own(model, acquire, want, resource, now);
    let fits = |want: &Want, resource: &Resource| model.in_the_way(resource, want.mode, LAST, now).is_empty();
    Model::choose(&acquire.wants, &mut Vec::new(), &has, &fits)
}

/// Whether the holder has `resource` already as it wants it, and that counts.
fn has_own(model: &Model, acquire: &Acquire, want: &Want, resource: &Resource, now: Tick) -> bool {
    let mut own = model.live(now).filter(|lease| lease.holder == acquire.holder);
    acquire.contention == Contention::RefreshOwn
        && own.any(|lease| lease.resource == *resource && lease.mode == want.mode)
}

fn forecast_key(model: &Model, acquire: &Acquire, now: Tick) -> Option<Forecast> {
    let key = acquire.key?;
    let same = |wait: &&Queued| {
        wait.principal == acquire.principal && wait.key.is_some_and(|other| other.key == key.key)
    };
    if let Some(wait) = model.waits.iter().find(same) {
        return match wait.key == Some(key) {
            false => Some(Forecast::KeyReused),
            true if now < wait.until => Some(Forecast::TheSameWait(wait.ticket)),
            true => None,
        };
    }
    let mut requests = model.keyed.iter().rev();
    let keyed = requests.find(|keyed| keyed.principal == acquire.principal && keyed.key.key == key.key)?;
    let end_of = |fence: &Fence| {
        let mut ended = model.over.iter().filter(|over| over.lease.is_some());
        ended.find(|over| over.lease.as_ref().is_some_and(|lease| lease.fence == *fence)).map(|over| over.at)
    };
    let ends: Vec<_> = keyed.leases.iter().map(end_of).collect();
    let all_ended = ends.iter().copied().collect::<Option<Vec<Tick>>>();
    if all_ended.is_some_and(|ends| ends.iter().all(|end| now >= end.saturating_add(KEY_KEPT))) {
        return None;
    }
    if keyed.key != key {
        return Some(Forecast::KeyReused);
    }
    if ends.iter().flatten().any(|end| now >= end.saturating_add(ENDED_KEPT)) {
        return Some(Forecast::OverOrNotFound);
    }
    let lives = |fence: &Fence| model.live(now).any(|lease| lease.fence == *fence);
    let all_live = keyed.leases.iter().all(lives);
    Some(if all_live { Forecast::TheSame(keyed.leases.clone()) } else { Forecast::Over })
}

/// Compares what was said with what came, and judges what could not be said before. `model` is as it was
/// before the command, `after` as it is now.
pub fn judge(
    forecast: &Forecast,
    model: &Model,
    after: &Model,
    command: &Command,
    decision: &Decision,
    limits: &Limits,
    now: Tick,
) {
    use Forecast as F;
    let answer = &decision.answer;
    let fits = match (forecast, answer) {
        (F::Unsaid, _) => true,
        (F::TheSame(leases), Answer::Granted { leases: found }) => leases == found,
        (F::TheSameWait(ticket), Answer::Queued { ticket: found, .. }) => ticket == found,
        (F::Queued | F::GrantedOrNot, Answer::Queued { .. }) => true,
        (
            F::Queued | F::GrantedOrNot,
            Answer::Refused(Refusal::QueueFull { .. } | Refusal::Deadlock { .. }),
        ) => true,
        (F::Granted(resources), Answer::Granted { leases }) => {
            let of = |fence: &Fence| after.leases.iter().find(|lease| lease.fence == *fence);
            let found = leases.iter().map(|fence| of(fence).map(|lease| &lease.resource));
            found.eq(resources.iter().map(Some))
        }
        (F::Renewed, Answer::Renewed { .. }) | (F::Released, Answer::Released { .. }) => true,
        (F::OverOrNotFound, Answer::Released { .. }) => true,
        (F::Over | F::OverOrNotFound, Answer::Refused(Refusal::Over { .. })) => true,
        (F::NotFound | F::OverOrNotFound, Answer::Refused(Refusal::NotFound)) => true,
        (F::OverOrNotFound | F::NotHolder, Answer::Refused(Refusal::NotHolder)) => true,
        (F::KeyReused, Answer::Refused(Refusal::KeyReused)) => true,
        (F::Invalid, Answer::Refused(Refusal::Invalid(_))) => true,
        (F::HolderTaken, Answer::Refused(Refusal::HolderTaken { .. })) => true,
        (F::Held | F::GrantedOrNot, Answer::Refused(Refusal::Held { .. })) => true,
        (F::GrantedOrNot, Answer::Granted { .. }) => true,
        (F::Granted(_) | F::Held | F::Queued | F::GrantedOrNot, Answer::Refused(refusal)) => {
            may_be_refused(refusal, model, command, limits, now)
        }
        _ => false,
    };
    assert!(fits, "foretold {forecast:?}, answered {answer:?}");
    match answer {
        Answer::Refused(refusal) => {
            judge_refusal(refusal, after, command, decision, now);
        }
        Answer::Granted { leases } => judge_grant(leases, after, command, now),
        Answer::Swept { more } => assert!(*more || after.all_announced(now), "swept, and yet there is more"),
        Answer::Continued { before, lease } => judge_successor(*before, *lease, model, after, command),
        _ => {}
    }
}

/// A name that was somebody else's until less than a day ago, or a quota.
fn may_be_refused(refusal: &Refusal, model: &Model, command: &Command, limits: &Limits, now: Tick) -> bool {
    let Command::Acquire(acquire) = command else { return false };
    match refusal {
        Refusal::HolderTaken { holder } => {
            let others =
                |name: &Holder, principal: &Principal| name == holder && *principal != acquire.principal;
            let rests = |over: &Over| {
                others(&over.holder, &over.principal) && now < over.at.saturating_add(HOLDER_KEPT)
            };
            model.over.iter().any(rests)
                || model.leases.iter().any(|lease| others(&lease.holder, &lease.principal))
                || model.waits.iter().any(|wait| others(&wait.holder, &wait.principal))
        }
        Refusal::QuotaExceeded { .. } => limits.leases_per_principal.is_some(),
        _ => false,
    }
}

fn judge_refusal(refusal: &Refusal, after: &Model, command: &Command, decision: &Decision, now: Tick) {
    for event in &decision.events {
        let found = match event {
            Event::Expired { .. } | Event::Left { end: WaitEnd::TimedOut, .. } => true,
            Event::Issued(issued) => issued.ticket.is_some(),
            _ => false,
        };
        assert!(found, "refused with {refusal:?}, and yet {event:?}");
    }
    if let (Refusal::QuotaExceeded { most }, Command::Acquire(acquire)) = (refusal, command) {
        let has = |want: &Want, resource: &Resource| has_own(after, acquire, want, resource, now);
        let more = match chosen(after, acquire, now) {
            Some(resources) => {
                let each = acquire.wants.iter().zip(&resources);
                each.filter(|(want, resource)| !has(want, resource)).count()
            }
            None => {
                let wants = acquire.wants.iter();
                wants.filter(|want| !want.resources().any(|resource| has(want, resource))).count()
            }
        };
        assert!(after.used(&acquire.principal, now) + more > *most, "the quota is not used up");
    }
    if let (Refusal::Held { resource, holder, until, .. }, Command::Acquire(acquire)) = (refusal, command) {
        judge_held(after, acquire, (resource, holder, *until), now);
    }
    if let (Refusal::Deadlock { cycle }, Command::Transfer { lease, to, .. }) = (refusal, command) {
        let mut handed = after.clone();
        let lease = handed.leases.iter_mut().find(|other| other.fence == *lease).expect("it is not ended");
        lease.holder = to.clone();
        judge_circle(cycle, to, &Waits::of(&handed, now));
    }
    if let (Refusal::Deadlock { cycle }, Command::Acquire(acquire)) = (refusal, command) {
        let mut waits = Waits::of(after, now);
        waits.add(after, &acquire.holder, &acquire.wants, LAST, now);
        judge_circle(cycle, &acquire.holder, &waits);
    }
}

/// Who is named is in the way, and nobody is for a shorter time on another resource that would do for the same want.
fn judge_held(after: &Model, acquire: &Acquire, held: (&Resource, &Holder, Tick), now: Tick) {
    let (resource, holder, until) = held;
    let mut wants = acquire.wants.iter().filter(|want| names(want, resource));
    let blocked = |want: &Want| after.in_the_way(resource, want.mode, LAST, now).contains(holder);
    assert!(wants.any(blocked), "{holder} is not in the way on {resource}");
    if let [want] = &acquire.wants[..] {
        let ends = |resource: &Resource| after.first_end(resource, want.mode, now);
        let sooner = want.resources().filter_map(ends).find(|end| *end < until);
        assert_eq!(sooner, None, "free before {resource}, which is held until {until:?}");
    }
}

fn judge_grant(leases: &[Fence], after: &Model, command: &Command, now: Tick) {
    let Command::Acquire(acquire) = command else { panic!("granted without being asked") };
    // A refreshed lease is not noted under the key, so that a repeated answer may be shorter.
    let short = acquire.contention == Contention::RefreshOwn && acquire.key.is_some();
    assert!(leases.len() == acquire.wants.len() || short, "granted in part");
    for fence in leases {
        let lease = after.live(now).find(|lease| lease.fence == *fence).expect("what is granted lives");
        let asked = acquire.wants.iter().any(|want| names(want, &lease.resource) && want.mode == lease.mode);
        assert!(asked && lease.holder == acquire.holder, "granted otherwise than asked: {lease:?}");
    }
}

fn judge_successor(before: Fence, lease: Fence, model: &Model, after: &Model, command: &Command) {
    let find = |model: &Model, fence| model.leases.iter().find(|lease| lease.fence == fence).cloned();
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
