//! `DELETE /v1/tokens/{id}`: the token counts no more, and the leases of whoever spoke with it end.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use tenure_api::{Code, RevokedToken};
use tenure_core::kernel::{Cause, Command, Fence, Principal, WaitEnd};
use tokio::task::JoinSet;

use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;
use crate::http::refusal::answered;

/// How many leases are looked at while nobody else can, and how many are ended at once.
const AT_ONCE: usize = 1_024;

/// Revoke a token.
///
/// It counts from the next request on. The leases of its principal end.
#[utoipa::path(
    delete,
    path = "/v1/tokens/{id}",
    tag = "tokens",
    operation_id = "revokeToken",
    params(
        ("id" = String, Path, description = "The token, as `token.id` named it"),
    ),
    responses((status = 200, description = "It is no longer good", body = tenure_api::RevokedToken)),
    extensions(("x-codes" = json!(["NOT_FOUND"])))
)]
pub(super) async fn revoke(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response, Failure> {
    super::must_be_unlimited(&caller)?;
    let unknown = || Failure::new(Code::NotFound, "there is no such token, or it is no longer good");
    let token = app.given.revoke(&id).ok_or_else(unknown)?;
    // In this order: until everything is done, the token is known, and whoever got no answer can ask again.
    let revoked_leases = end_all(&app, &token.principal, &caller.principal).await?;
    let (now, forgetting) = (app.now(), app.clone());
    let forgotten = tokio::task::spawn_blocking(move || forgetting.given.forget(&id, now)).await;
    let forgotten = forgotten.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
    let meaning = "the token counts no more until the next start; ask again";
    forgotten.map_err(|error| super::not_written(&error, meaning))?;
    Ok(json(StatusCode::OK, &RevokedToken { token: super::shown(&token), revoked_leases }))
}

/// Ends what a principal holds and waits for, and says how many leases that were.
async fn end_all(app: &Arc<App>, principal: &Principal, by: &Principal) -> Result<usize, Failure> {
    // What was asked before the token was revoked is decided before this is: nothing comes after it.
    ask(app.clone(), Command::Expire { most: 1 }).await?;
    let detail: Arc<str> = format!("the token {principal} was revoked").into();
    let (mut ended, mut from) = (0, Fence::default());
    for ticket in app.registrar.read(|state| {
        state.tickets().filter(|wait| wait.principal == principal).map(|wait| wait.ticket).collect::<Vec<_>>()
    }) {
        let (principal, end) = (principal.clone(), WaitEnd::Gone);
        ask(app.clone(), Command::Withdraw { ticket, principal, end }).await?;
    }
    loop {
        let (leases, next) = app.registrar.read(|state| {
            let part: Vec<_> = state.leases_from(from).take(AT_ONCE).collect();
            let theirs = part.iter().filter(|lease| lease.principal == principal);
            (theirs.map(|lease| lease.fence).collect::<Vec<_>>(), part.last().map(|lease| lease.fence))
        });
        let mut tasks = JoinSet::new();
        for lease in leases {
            let (by, detail) = (by.clone(), detail.clone());
            tasks.spawn(ask(app.clone(), Command::Revoke { lease, cause: Cause::Revoked, by, detail }));
        }
        while let Some(done) = tasks.join_next().await {
            ended += done.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))?;
        }
        match next {
            Some(fence) if fence > from => from = fence,
            _ => return Ok(ended),
        }
    }
}

/// Asks for an end: 1 if there was one, 0 if it had come already.
async fn ask(app: Arc<App>, command: Command) -> Result<usize, Failure> {
    let reply = app.registrar.ask(command).await.reply;
    match answered(reply, || app.registrar.now()) {
        Ok(_) => Ok(1),
        Err(failure) if matches!(failure.0.code, Code::Expired | Code::NotFound) => Ok(0),
        Err(failure) => Err(failure),
    }
}
