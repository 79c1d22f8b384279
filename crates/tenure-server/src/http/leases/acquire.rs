//! `POST /v1/leases`.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use tenure_api::{Acquire, Code, Granted};
use tenure_core::kernel::{
    self, Answer, Command, Contention, Digest, Holder, Labels, Mode, Nonce, Principal, RequestKey, Resource,
    Span, Want,
};

use super::show::find;
use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::body::JsonBody;
use crate::http::fields::Fields;
use crate::http::refusal::{answered, unexpected};

/// The longest resource and holder that the plain API takes, in bytes: what is stored is then what was asked for.
const MOST_NAME_BYTES: usize = 128;
/// The longest idempotency key.
const MOST_KEY_BYTES: usize = 255;

pub(super) async fn acquire(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    headers: HeaderMap,
    body: JsonBody,
) -> Result<Response, Failure> {
    let key = request_key(&headers, body.digest)?;
    let asked = read(body.fields)?;
    let command = command(&asked, principal, key)?;
    let response = app.registrar.ask(command).await;
    let (answer, stamp) = answered(response.reply.clone(), || app.registrar.now())?;
    let Answer::Granted { leases } = answer else { return Err(unexpected()) };
    let [fence] = leases[..] else { return Err(unexpected()) };
    // A client counts from when it sent the request, which was before the stamp.
    let granted = app.registrar.read(|state| {
        let expires_at = state.lease(fence).map(|lease| lease.expires_at);
        let expires_at = expires_at.or_else(|| state.ended(fence).map(|lease| lease.expires_at))?;
        let nonce = state.lease(fence).map(|lease| lease.nonce);
        let nonce = nonce.or_else(|| state.ended(fence).map(|lease| lease.nonce))?;
        let lease = find(state, fence, stamp)?;
        let token = app.tokens.lease_token(&lease.id, nonce).to_string();
        Some((lease, token, expires_at.since(stamp).as_millis()))
    });
    let (lease, token, valid_for_ms) = granted.ok_or_else(unexpected)?;
    let passport = app.registrar.passport(&response, fence);
    Ok(json(StatusCode::CREATED, &Granted { lease, token, passport, valid_for_ms }))
}

fn read(mut fields: Fields) -> Result<Acquire, Failure> {
    let asked = Acquire {
        resource: fields.text("resource")?,
        holder: fields.text("holder")?,
        ttl_ms: fields.number("ttlMs")?,
        mode: fields.optional_text("mode")?,
        wait_ms: fields.optional_number("waitMs")?.unwrap_or(0),
        labels: fields.texts("labels")?,
    };
    fields.finish()?;
    Ok(asked)
}

fn command(asked: &Acquire, principal: Principal, key: Option<RequestKey>) -> Result<Command, Failure> {
    if asked.wait_ms > 0 {
        return Err(Failure::invalid(
            "waitMs",
            "this version does not wait; leave it out, and ask again later",
        ));
    }
    for (field, name) in [("resource", &asked.resource), ("holder", &asked.holder)] {
        if name.len() > MOST_NAME_BYTES {
            let reason = format!("has {} bytes; at most {MOST_NAME_BYTES} are allowed", name.len());
            return Err(Failure::invalid(field, &reason));
        }
    }
    let mode = match asked.mode.as_deref() {
        None => Mode::Exclusive,
        Some(name) => [Mode::Exclusive, Mode::Shared]
            .into_iter()
            .find(|mode| mode.as_str() == name)
            .ok_or_else(|| Failure::invalid("mode", "must be `exclusive` or `shared`"))?,
    };
    let labels = asked.labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let want = Want {
        resource: Resource::parse(&asked.resource)?,
        others: Default::default(),
        mode,
        ttl: Span::from_millis(asked.ttl_ms),
        nonce: nonce()?,
        labels: Labels::parse(labels)?,
    };
    Ok(Command::Acquire(kernel::Acquire {
        principal,
        holder: Holder::parse(&asked.holder)?,
        wants: vec![want],
        contention: Contention::Refuse,
        key,
    }))
}

fn nonce() -> Result<Nonce, Failure> {
    let mut bytes = [0; 16];
    let failed = |_| Failure::new(Code::Internal, "the system gives no random bytes; nothing happened");
    getrandom::fill(&mut bytes).map_err(failed)?;
    Ok(Nonce(bytes))
}

/// What the header `Idempotency-Key` comes down to.
fn request_key(headers: &HeaderMap, body: Digest) -> Result<Option<RequestKey>, Failure> {
    let mut all = headers.get_all("idempotency-key").iter();
    let Some(value) = all.next() else { return Ok(None) };
    let key = value.as_bytes();
    let is_fit = (1..=MOST_KEY_BYTES).contains(&key.len()) && key.iter().all(u8::is_ascii_graphic);
    if !is_fit || all.next().is_some() {
        let reason = format!("must stand once and have 1 to {MOST_KEY_BYTES} visible ASCII characters");
        return Err(Failure::invalid("Idempotency-Key", &reason));
    }
    Ok(Some(RequestKey { key: Digest::of(key), body }))
}
