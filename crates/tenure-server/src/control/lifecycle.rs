//! The life of the lease: acquire, heartbeat, release, status. Only a WebSocket gets here.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tenure_control::hand::expired;
use tenure_control::millis::whole_millis;
use tenure_control::refusal::SCOPE;
use tenure_control::{Held, Owner, Problem, ProblemCode, Refusal, RefusalCode, TokenDigest};
use tenure_core::kernel::{
    self, Acquire, Answer, Command, Contention, Fence, Labels, Mode, Nonce, Resource, Tick, Want,
};
use tenure_core::lease::ReleaseReason;
use tenure_core::rules::time::remaining;
use tenure_registrar::Reply;

use super::desk::{Claim, RESOURCE};
use super::fields::Fields;
use super::message::{Acquired, Blocked, HeartbeatAck, Released, Status, raw};
use super::seat::{Lease, Seat, new_token};
use super::unanswered::{failed, unexpected};
use crate::app::App;
use crate::http::auth::Caller;
use crate::tokens::Scope;

/// The longest name of a client, and of an instance of it, in bytes.
const LONGEST_NAME: usize = 64;
/// How a lease is given back by who says nothing.
const DEFAULT_REASON: &str = "user_release";

/// `control.acquire`.
pub(super) async fn acquire(
    app: &App,
    seat: &mut Seat,
    fields: Map<String, Value>,
) -> Result<Box<RawValue>, Blocked> {
    let mut fields = Fields(fields);
    let client_name = fields.name("clientName", LONGEST_NAME)?;
    let instance_id = fields.name("clientInstanceId", LONGEST_NAME)?;
    if fields.optional_text("scope")?.is_some_and(|scope| scope != SCOPE) {
        let problem = Problem::of_field(ProblemCode::InvalidValue, "scope", "must be \"global\"");
        return Err(problem.into());
    }
    may_write(&seat.caller)?;
    let labels = Labels::parse([("client", &*client_name), ("instance", &*instance_id)])
        .map_err(|invalid| Problem::of_field(ProblemCode::InvalidValue, "clientName", invalid.reason))?;
    let token = new_token()?;
    let owner = Owner {
        identity: seat.identity.clone(),
        websocket_client_id: seat.client_id,
        client_name: client_name.into(),
        instance_id: instance_id.into(),
        token: TokenDigest::of(&token),
    };
    let desk = &app.control.desk;
    desk.claim(Claim { owner, reason: None, is_acquiring: true });
    let fence = ask_for_it(app, seat, labels).await?;
    // Whoever had it before can do nothing any more, also on its way to the device.
    app.control.quiet().await;
    let held = desk.look(|held, now| {
        // Whoever was waited for may have taken longer than the lease lasts.
        held.filter(|held| held.fence == fence && !held.is_past(now)).cloned()
    });
    let held = held.ok_or_else(expired)?;
    if seat.lease.as_ref().is_none_or(|lease| lease.fence != fence) {
        seat.lease = Some(Lease { fence, token, principal: seat.caller.principal.clone() });
    }
    let token = &seat.lease.as_ref().expect("it was just put there").token;
    Ok(raw(&Acquired::new(&held, token, desk.terms.heartbeat_interval_ms, desk.uptime)))
}

/// Asks the registrar. Somebody else's lease that has less than a millisecond left is waited for: whoever was told that
/// nothing remains was told that it is free.
async fn ask_for_it(app: &App, seat: &Seat, labels: Labels) -> Result<Fence, Blocked> {
    let mut tries = 0;
    loop {
        tries += 1;
        let reply = app.registrar.ask(Command::Acquire(wish(app, seat, labels.clone())?)).await.reply;
        match reply {
            Reply::Answered { answer: Answer::Granted { leases }, .. } => {
                return leases.first().copied().ok_or_else(|| unexpected().into());
            }
            Reply::Answered { answer: Answer::Refused(kernel::Refusal::Held { until, .. }), .. } => {
                let now = app.control.desk.now();
                let left = remaining(now.0, until.0);
                if left >= 1_000 || tries > 3 {
                    return Err(locked(app, until).into());
                }
                tokio::time::sleep(Duration::from_micros(left)).await;
            }
            reply => return Err(failed(reply)),
        }
    }
}

fn wish(app: &App, seat: &Seat, labels: Labels) -> Result<Acquire, Problem> {
    let mut nonce = [0; 16];
    let missing = |_| Problem::new(ProblemCode::Unavailable, "the system gives no random bytes; ask again");
    getrandom::fill(&mut nonce).map_err(missing)?;
    let want = Want {
        resource: Resource::parse(RESOURCE).expect("it is a name"),
        others: Default::default(),
        mode: Mode::Exclusive,
        ttl: app.control.desk.terms.ttl,
        nonce: Nonce(nonce),
        labels,
    };
    Ok(Acquire {
        principal: seat.caller.principal.clone(),
        holder: seat.holder(),
        wants: vec![want],
        contention: Contention::RefreshOwn,
        key: None,
    })
}

/// `control.heartbeat`. What is asked first: is there a lease, is it this connection's, is it the one that is named.
pub(super) async fn heartbeat(
    app: &App,
    seat: &Seat,
    fields: Map<String, Value>,
) -> Result<Box<RawValue>, Blocked> {
    let mut fields = Fields(fields);
    let (lease_id, token) = (fields.optional_text("leaseId")?, fields.optional_text("leaseToken")?);
    let desk = &app.control.desk;
    let (lease, principal, shown) = desk.look(|held, now| {
        let held = held.ok_or_else(expired)?;
        let lease = own(seat, held).ok_or_else(|| held.locked(now))?;
        is_shown(held, lease_id, token, now)?;
        Ok::<_, Blocked>((lease.fence, lease.principal.clone(), held.lease_id.clone()))
    })?;
    desk.intends(&seat.identity, None, false);
    let claim = seat.claim(&principal);
    let reply = app.registrar.ask(Command::Renew { lease, claim, ttl: None }).await.reply;
    let Reply::Answered { answer: Answer::Renewed { expires_at, .. }, .. } = reply else {
        return Err(ended(app, seat, reply));
    };
    let ttl_ms = whole_millis(desk.terms.ttl);
    let expires_at_ms = desk.uptime.at(expires_at).0;
    Ok(raw(&HeartbeatAck { lease_id: &shown, ttl_ms, remaining_ms: ttl_ms, expires_at_ms }))
}

/// `control.release`. Where there is no lease, it is released already.
pub(super) async fn release(
    app: &App,
    seat: &Seat,
    fields: Map<String, Value>,
) -> Result<Box<RawValue>, Blocked> {
    let mut fields = Fields(fields);
    let (lease_id, token) = (fields.optional_text("leaseId")?, fields.optional_text("leaseToken")?);
    let reason = fields.optional_name("reason", LONGEST_NAME)?;
    let desk = &app.control.desk;
    let shown = lease_id.clone().unwrap_or_default();
    let mine = desk.look(|held, now| {
        let Some(held) = held.filter(|held| !held.is_past(now)) else { return Ok(None) };
        let Some(lease) = own(seat, held) else { return Err(Blocked::from(held.invalid(now))) };
        is_shown(held, lease_id, token, now)?;
        Ok(Some((lease.fence, lease.principal.clone())))
    })?;
    let reason: Arc<str> = reason.as_deref().unwrap_or(DEFAULT_REASON).into();
    if let Some((lease, principal)) = mine {
        desk.intends(&seat.identity, Some(reason.clone()), false);
        let command =
            Command::Release { lease, claim: seat.claim(&principal), reason: ReleaseReason::Completed };
        match app.registrar.ask(command).await.reply {
            Reply::Answered { answer: Answer::Released { .. }, .. } => {}
            // It ran out meanwhile: released all the same.
            Reply::Answered { answer: Answer::Refused(kernel::Refusal::Over { .. }), .. } => {}
            reply => return Err(failed(reply)),
        }
    }
    let released_at_ms = desk.uptime.at(desk.now()).0;
    Ok(raw(&Released { released: true, lease_id: &shown, released_at_ms, reason: &reason }))
}

/// `control.status`.
pub(super) fn status(app: &App) -> Box<RawValue> {
    let desk = &app.control.desk;
    let ttl_ms = whole_millis(desk.terms.ttl);
    desk.look(|held, now| raw(&Status::new(held, now, ttl_ms, desk.terms.heartbeat_interval_ms)))
}

/// Rejects a caller that is not permitted to control the device.
pub(super) fn may_write(caller: &Caller) -> Result<(), Problem> {
    let allowed = caller.require(Scope::ControlWrite).and_then(|()| caller.require_resource(RESOURCE));
    allowed.map_err(|failure| Problem::new(ProblemCode::Forbidden, failure.0.detail.clone()))
}

/// This connection's lease, if it is this one.
fn own<'a>(seat: &'a Seat, held: &Held) -> Option<&'a Lease> {
    let is_own = *held.owner.identity == *seat.identity;
    seat.lease.as_ref().filter(|lease| is_own && lease.fence == held.fence)
}

/// Whether a heartbeat or release names this lease.
fn is_shown(held: &Held, id: Option<String>, token: Option<String>, now: Tick) -> Result<(), Blocked> {
    let missing = |field| Problem::of_field(ProblemCode::MissingField, field, "is missing");
    let id = id.ok_or_else(|| missing("leaseId"))?;
    let token = token.map(zeroize::Zeroizing::new).ok_or_else(|| missing("leaseToken"))?;
    // Both are looked at, whatever the first one says.
    let is_this = *id == *held.lease_id;
    let is_right = held.owner.token.is_of(&token);
    if is_this & is_right { Ok(()) } else { Err(held.invalid(now).into()) }
}

/// Why somebody else's lease is in the way.
fn locked(app: &App, until: Tick) -> Refusal {
    app.control.desk.look(|held, now| match held {
        Some(held) => held.locked(now),
        // From before this server's start, and not ended yet.
        None => Refusal {
            code: RefusalCode::ControlLocked,
            message: tenure_control::refusal::HELD,
            owner_client_name: String::new(),
            remaining_ms: whole_millis(until.since(now)),
        },
    })
}

fn ended(app: &App, seat: &Seat, reply: Reply) -> Blocked {
    let Reply::Answered { answer: Answer::Refused(_), .. } = reply else { return failed(reply) };
    let others = |held: &&Held| *held.owner.identity != *seat.identity;
    app.control
        .desk
        .look(|held, now| held.filter(others).map_or_else(expired, |held| held.locked(now)))
        .into()
}
