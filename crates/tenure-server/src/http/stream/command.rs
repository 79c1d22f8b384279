//! One command of a frame: the same code as the route of its name.

use tenure_core::kernel::RequestKey;

use super::frame::{Answer, Asked};
use crate::app::App;
use crate::http::answer::Failure;
use crate::http::auth::Caller;
use crate::http::fields::Fields;
use crate::http::leases::{LeaseId, acquire_one, release_one, renew_one, request_key_of};
use crate::tokens::Scope;

/// Does it, and says what came of it. Dropped, it is as if the connection of a request had ended.
pub(super) async fn carry_out(app: &App, caller: &Caller, asked: Asked) -> Answer {
    let Asked { id, verb, fields } = asked;
    let done = match verb.as_str() {
        "acquire" => acquire(app, caller, id, fields).await,
        "renew" => renew(app, caller, id, fields).await,
        "release" => release(app, caller, id, fields).await,
        _ => Err(Failure::invalid("do", "must be `acquire`, `renew`, `release` or `watch`")),
    };
    done.unwrap_or_else(|failure| Answer::refused(Some(id), failure))
}

async fn acquire(app: &App, caller: &Caller, id: u64, mut fields: Fields) -> Result<Answer, Failure> {
    caller.require(Scope::LeasesWrite)?;
    let key = key(&mut fields)?;
    let (granted, undelivered) = acquire_one(app, caller, fields, key).await?;
    Ok(Answer::ok(id, &granted).with(undelivered))
}

async fn renew(app: &App, caller: &Caller, id: u64, mut fields: Fields) -> Result<Answer, Failure> {
    caller.require(Scope::LeasesWrite)?;
    let lease = LeaseId(fields.text("lease")?);
    Ok(Answer::ok(id, &renew_one(app, caller, &lease, fields).await?))
}

async fn release(app: &App, caller: &Caller, id: u64, mut fields: Fields) -> Result<Answer, Failure> {
    caller.require(Scope::LeasesWrite)?;
    let lease = LeaseId(fields.text("lease")?);
    Ok(Answer::ok(id, &release_one(app, caller, &lease, fields).await?))
}

/// What would be the header `Idempotency-Key`. The rest of the fields is what must be the same.
fn key(fields: &mut Fields) -> Result<Option<RequestKey>, Failure> {
    let Some(key) = fields.optional_text("key")? else { return Ok(None) };
    request_key_of("key", key.as_bytes(), fields.digest()).map(Some)
}
