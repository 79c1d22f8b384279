//! The life of the lease: acquire, heartbeat, release, status. Only a WebSocket gets here.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tenure_control::device_clock::whole_millis;
use tenure_control::ownership::expired_rejection;
use tenure_control::rejection::SCOPE;
use tenure_control::{
    CommandError, ControlLease, ControlOwner, ControlRejection, ControlRejectionCode, Problem, ProblemCode,
    TokenDigest,
};
use tenure_core::kernel;
use tenure_core::kernel::{
    Acquire, Command, CommandOutcome, ContentionPolicy, Fence, Labels, LeaseMode, LeaseRequest, Nonce,
    Resource, Tick,
};
use tenure_core::lease::ReleaseReason;
use tenure_core::rules::remaining;
use tenure_device::{DeviceCommandFields, required};
use tenure_registrar::Reply;

use super::connection::{Connection, ConnectionLease, new_token, random};
use super::controller::{RESOURCE, RegisteredConnection};
use super::message;
use super::message::{AcquireResponse, HeartbeatAck, ReleaseResponse, command_error, to_raw_json};
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::response::{HttpError, unexpected};
use crate::tokens::TokenScope;

/// The longest name of a client, and of an instance of it, in bytes.
const MAX_NAME_BYTES: usize = 64;
/// How a lease is given back by who says nothing.
const DEFAULT_REASON: &str = "user_release";

/// `control.acquire`.
pub(super) async fn acquire(
    app: &App,
    connection: &mut Connection,
    fields: Map<String, Value>,
) -> Result<Box<RawValue>, CommandError> {
    let mut fields = DeviceCommandFields::new(fields);
    let client_name = required(name(&mut fields, "clientName")?, "clientName", "a text")?;
    let instance_id = required(name(&mut fields, "clientInstanceId")?, "clientInstanceId", "a text")?;
    if fields.text("scope")?.is_some_and(|scope| scope != SCOPE) {
        let problem = Problem::of_field(ProblemCode::InvalidValue, "scope", "must be \"global\"");
        return Err(problem.into());
    }
    require_control_permission(&connection.caller)?;
    let labels = Labels::parse([("client", &*client_name), ("instance", &*instance_id)])
        .map_err(|invalid| Problem::of_field(ProblemCode::InvalidValue, "clientName", invalid.reason))?;
    let token = new_token()?;
    let owner = ControlOwner {
        identity: connection.identity.clone(),
        websocket_client_id: connection.client_id,
        client_name: client_name.into(),
        instance_id: instance_id.into(),
        token_digest: TokenDigest::of(&token),
    };
    let controller = &app.control.controller;
    controller.register_connection(RegisteredConnection { owner, reason: None, is_acquiring: true });
    let fence = acquire_lease(app, connection, labels).await?;
    // Whoever had it before can do nothing any more, also on its way to the device.
    app.control.drain().await;
    let held = controller.read(|held, now| {
        // Whoever was waited for may have taken longer than the lease lasts.
        held.filter(|held| held.fence == fence && !held.is_expired(now)).cloned()
    });
    let held = held.ok_or_else(expired_rejection)?;
    if connection.lease.as_ref().is_none_or(|lease| lease.fence != fence) {
        connection.lease =
            Some(ConnectionLease { fence, token, principal: connection.caller.principal.clone() });
    }
    let token = &connection.lease.as_ref().expect("it was just put there").token;
    Ok(to_raw_json(&AcquireResponse::new(
        &held,
        token,
        controller.terms.heartbeat_interval_ms,
        controller.uptime,
    )))
}

/// Asks the registrar. Somebody else's lease that has less than a millisecond left is waited for: whoever was told that
/// nothing remains was told that it is free.
async fn acquire_lease(app: &App, connection: &Connection, labels: Labels) -> Result<Fence, CommandError> {
    let mut tries = 0;
    loop {
        tries += 1;
        let reply = app
            .registrar
            .submit(Command::Acquire(lease_request(app, connection, labels.clone())?))
            .await
            .reply;
        match reply {
            Reply::Answered { answer: CommandOutcome::Granted { leases }, .. } => {
                return leases.first().copied().ok_or_else(|| unexpected().into());
            }
            Reply::Answered {
                answer: CommandOutcome::Rejected(kernel::Rejection::Held { until, .. }),
                ..
            } => {
                let now = app.control.controller.now();
                let remaining = remaining(now.0, until.0);
                if remaining >= 1_000 || tries > 3 {
                    return Err(locked(app, until).into());
                }
                tokio::time::sleep(Duration::from_micros(remaining)).await;
            }
            reply => return Err(command_error(reply)),
        }
    }
}

fn lease_request(app: &App, connection: &Connection, labels: Labels) -> Result<Acquire, HttpError> {
    let request = LeaseRequest {
        resource: Resource::parse(RESOURCE).expect("it is a name"),
        alternatives: Default::default(),
        mode: LeaseMode::Exclusive,
        ttl: app.control.controller.terms.ttl,
        nonce: Nonce(random()?),
        labels,
    };
    Ok(Acquire {
        principal: connection.caller.principal.clone(),
        holder: connection.holder(),
        requests: vec![request],
        contention_policy: ContentionPolicy::RefreshOwn,
        key: None,
    })
}

/// `control.heartbeat`. What is asked first: is there a lease, is it this connection's, is it the one that is named.
pub(super) async fn heartbeat(
    app: &App,
    connection: &Connection,
    fields: Map<String, Value>,
) -> Result<Box<RawValue>, CommandError> {
    let mut fields = DeviceCommandFields::new(fields);
    let (lease_id, token) = (fields.text("leaseId")?, fields.text("leaseToken")?);
    let controller = &app.control.controller;
    let (lease, principal, shown) = controller.read(|held, now| {
        let held = held.ok_or_else(expired_rejection)?;
        let lease = own(connection, held).ok_or_else(|| held.locked_rejection(now))?;
        is_shown(held, lease_id, token, now)?;
        Ok::<_, CommandError>((lease.fence, lease.principal.clone(), held.lease_id.clone()))
    })?;
    controller.update_lease_request(&connection.identity, None, false);
    let claim = connection.lease_credential(&principal);
    let reply = app.registrar.submit(Command::Renew { lease, credential: claim, ttl: None }).await.reply;
    let Reply::Answered { answer: CommandOutcome::Renewed { expires_at, .. }, .. } = reply else {
        return Err(ended(app, connection, reply));
    };
    let ttl_ms = whole_millis(controller.terms.ttl);
    let expires_at_ms = controller.uptime.at(expires_at).0;
    Ok(to_raw_json(&HeartbeatAck { lease_id: &shown, ttl_ms, remaining_ms: ttl_ms, expires_at_ms }))
}

/// `control.release`. Where there is no lease, it is released already.
pub(super) async fn release(
    app: &App,
    connection: &Connection,
    fields: Map<String, Value>,
) -> Result<Box<RawValue>, CommandError> {
    let mut fields = DeviceCommandFields::new(fields);
    let (lease_id, token) = (fields.text("leaseId")?, fields.text("leaseToken")?);
    let reason = name(&mut fields, "reason")?;
    let controller = &app.control.controller;
    let shown = lease_id.clone().unwrap_or_default();
    let mine = controller.read(|held, now| {
        let Some(held) = held.filter(|held| !held.is_expired(now)) else { return Ok(None) };
        let Some(lease) = own(connection, held) else {
            return Err(CommandError::from(held.invalid_rejection(now)));
        };
        is_shown(held, lease_id, token, now)?;
        Ok(Some((lease.fence, lease.principal.clone())))
    })?;
    let reason: Arc<str> = reason.as_deref().unwrap_or(DEFAULT_REASON).into();
    if let Some((lease, principal)) = mine {
        controller.update_lease_request(&connection.identity, Some(reason.clone()), false);
        let command = Command::Release {
            lease,
            claim: connection.lease_credential(&principal),
            reason: ReleaseReason::Completed,
        };
        match app.registrar.submit(command).await.reply {
            Reply::Answered { answer: CommandOutcome::Released { .. }, .. } => {}
            // It ran out meanwhile: released all the same.
            Reply::Answered { answer: CommandOutcome::Rejected(kernel::Rejection::Ended { .. }), .. } => {}
            reply => return Err(command_error(reply)),
        }
    }
    let released_at_ms = controller.uptime.at(controller.now()).0;
    Ok(to_raw_json(&ReleaseResponse { released: true, lease_id: &shown, released_at_ms, reason: &reason }))
}

/// `control.status`.
pub(super) fn status(app: &App) -> Box<RawValue> {
    let controller = &app.control.controller;
    let ttl_ms = whole_millis(controller.terms.ttl);
    controller.read(|held, now| {
        to_raw_json(&message::status(held, now, ttl_ms, controller.terms.heartbeat_interval_ms))
    })
}

/// Rejects a caller that is not permitted to control the device.
pub(super) fn require_control_permission(caller: &Caller) -> Result<(), Problem> {
    let allowed = caller.require(TokenScope::ControlWrite).and_then(|()| caller.require_resource(RESOURCE));
    // Also a token that is no longer valid: on a connection that is open, it forbids.
    allowed.map_err(|failure| Problem::new(ProblemCode::Forbidden, failure.0.detail))
}

/// This connection's lease, if it is this one.
fn own<'a>(connection: &'a Connection, held: &ControlLease) -> Option<&'a ConnectionLease> {
    let is_own = *held.owner.identity == *connection.identity;
    connection.lease.as_ref().filter(|lease| is_own && lease.fence == held.fence)
}

/// Whether a heartbeat or release names this lease.
fn is_shown(
    held: &ControlLease,
    id: Option<String>,
    token: Option<String>,
    now: Tick,
) -> Result<(), CommandError> {
    let id = required(id, "leaseId", "the id of the lease")?;
    let token = required(token.map(zeroize::Zeroizing::new), "leaseToken", "the token of the lease")?;
    // Both are looked at, whatever the first one says.
    let is_this = *id == *held.lease_id;
    let is_right = held.owner.token_digest.matches(&token);
    if is_this & is_right { Ok(()) } else { Err(held.invalid_rejection(now).into()) }
}

/// Why somebody else's lease is in the way.
fn locked(app: &App, until: Tick) -> ControlRejection {
    app.control.controller.read(|held, now| match held {
        Some(held) => held.locked_rejection(now),
        // From before this server's start, and not ended yet.
        None => ControlRejection {
            code: ControlRejectionCode::ControlLocked,
            message: tenure_control::rejection::HELD,
            owner_client_name: String::new(),
            remaining_ms: whole_millis(until.since(now)),
        },
    })
}

fn ended(app: &App, connection: &Connection, reply: Reply) -> CommandError {
    let Reply::Answered { answer: CommandOutcome::Rejected(_), .. } = reply else {
        return command_error(reply);
    };
    let is_foreign = |held: &&ControlLease| *held.owner.identity != *connection.identity;
    app.control
        .controller
        .read(|held, now| {
            held.filter(is_foreign).map_or_else(expired_rejection, |held| held.locked_rejection(now))
        })
        .into()
}

/// A name of a client, or its reason to release the lease.
fn name(fields: &mut DeviceCommandFields, field: &str) -> Result<Option<String>, Problem> {
    let Some(text) = fields.text(field)? else { return Ok(None) };
    let wrong = |why: String| Err(Problem::of_field(ProblemCode::InvalidValue, field, why));
    if text.is_empty() || text.len() > MAX_NAME_BYTES {
        return wrong(format!("has from 1 to {MAX_NAME_BYTES} bytes"));
    }
    if text.chars().any(char::is_control) {
        return wrong("has no control characters".to_owned());
    }
    Ok(Some(text))
}
