//! One command of a frame: the same code as the route of its name.

use tenure_core::kernel::IdempotencyKey;

use super::frame::{StreamAnswer, StreamCommand};
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::fields::Fields;
use crate::http::leases::{LeaseId, acquire_one, derive_idempotency_key, release_one, renew_one};
use crate::http::response::HttpError;
use crate::tokens::TokenScope;

/// Does it, and says what came of it. Dropped, it is as if the connection of a request had ended.
pub(super) async fn execute(app: &App, caller: &Caller, command: StreamCommand) -> StreamAnswer {
    let StreamCommand { id, verb, fields } = command;
    let done = match verb.as_str() {
        "acquire" => acquire(app, caller, id, fields).await,
        "renew" => renew(app, caller, id, fields).await,
        "release" => release(app, caller, id, fields).await,
        _ => Err(HttpError::invalid("do", "must be `acquire`, `renew`, `release` or `watch`")),
    };
    done.unwrap_or_else(|failure| StreamAnswer::error(Some(id), failure))
}

async fn acquire(app: &App, caller: &Caller, id: u64, mut fields: Fields) -> Result<StreamAnswer, HttpError> {
    caller.require(TokenScope::LeasesWrite)?;
    let key = key(&mut fields)?;
    let (granted, revoke_on_drop) = acquire_one(app, caller, fields, key).await?;
    Ok(StreamAnswer::ok(id, &granted).with_revoke_on_drop(revoke_on_drop))
}

async fn renew(app: &App, caller: &Caller, id: u64, mut fields: Fields) -> Result<StreamAnswer, HttpError> {
    caller.require(TokenScope::LeasesWrite)?;
    let lease = LeaseId(fields.text("lease")?);
    Ok(StreamAnswer::ok(id, &renew_one(app, caller, &lease, fields).await?))
}

async fn release(app: &App, caller: &Caller, id: u64, mut fields: Fields) -> Result<StreamAnswer, HttpError> {
    caller.require(TokenScope::LeasesWrite)?;
    let lease = LeaseId(fields.text("lease")?);
    Ok(StreamAnswer::ok(id, &release_one(app, caller, &lease, fields).await?))
}

/// What would be the header `Idempotency-Key`. The rest of the fields is what must be the same.
fn key(fields: &mut Fields) -> Result<Option<IdempotencyKey>, HttpError> {
    let Some(key) = fields.optional_text("key")? else { return Ok(None) };
    derive_idempotency_key("key", key.as_bytes(), fields.digest()).map(Some)
}
