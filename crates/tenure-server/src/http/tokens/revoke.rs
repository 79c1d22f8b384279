//! `DELETE /v1/tokens/{id}`: the token counts no more, and the leases of whoever spoke with it end.
//!
//! First it is written down that the token is revoked, and it is forgotten when everything is done. Whatever a crash
//! interrupts is done at the next start.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use tenure_api::{Code, RevokedToken};
use tenure_core::kernel::{
    self, AgentCommand, Cause, Command, Fence, Holder, Phase, Principal, Report, WaitEnd,
};
use tokio::task::JoinSet;

use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::auth::{ADMIN, Caller};
use crate::http::refusal::answered;
use crate::secret_file::SecretFileError;
use crate::tokens::{Now, TokenStore};

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
    params(("id" = String, Path, description = "The token, as `token.id` named it")),
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
    // In this order: until everything is done, the token is known, and whoever got no answer can ask again. Where the
    // first write fails, the leases end all the same, and the last one says so if the disk is still as bad.
    let _ = change(&app, |tokens| tokens.note_revoked(Now::read())).await;
    let detail = format!("the token {} was revoked", token.principal);
    let revoked_leases = end_all(&app, &token.principal, &caller.principal, detail.into()).await?;
    let meaning = "the token counts no more until the next start; ask again";
    let forgotten = change(&app, move |tokens| tokens.forget(&id, Now::read())).await;
    forgotten.map_err(|error| super::not_written(&error, meaning))?;
    Ok(json(StatusCode::OK, &RevokedToken { token: super::shown(&token), revoked_leases }))
}

/// Ends what the last server did not come to before it ended itself. Where that cannot be done, the token is still known as
/// revoked: an admin can revoke it again, and the next start tries again.
pub(crate) async fn finish_revoking(app: &Arc<App>) {
    for token in app.given.revoked() {
        let by = Principal::parse(ADMIN).expect("a name of our own is a name");
        let detail = format!("the token {} was revoked before the server started again", token.principal);
        if end_all(app, &token.principal, &by, detail.into()).await.is_ok() {
            let id = token.id.clone();
            let _ = change(app, move |tokens| tokens.forget(&id, Now::read())).await;
        }
    }
}

/// Changes the file with the tokens, on a thread that may wait for the disk.
async fn change(
    app: &Arc<App>,
    what: impl FnOnce(&TokenStore) -> Result<(), SecretFileError> + Send + 'static,
) -> Result<(), SecretFileError> {
    let app = app.clone();
    let changed = tokio::task::spawn_blocking(move || what(&app.given)).await;
    changed.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

/// Ends what a principal holds and waits for, and says how many leases that were.
async fn end_all(
    app: &Arc<App>,
    principal: &Principal,
    by: &Principal,
    detail: Arc<str>,
) -> Result<usize, Failure> {
    // What was asked before the token was revoked is decided before this is: nothing comes after it.
    ask(app.clone(), Command::Expire { most: 1 }).await?;
    let (mut ended, mut from) = (0, Fence::default());
    for ticket in app.registrar.read(|state| {
        state.tickets().filter(|wait| wait.principal == principal).map(|wait| wait.ticket).collect::<Vec<_>>()
    }) {
        let (principal, end) = (principal.clone(), WaitEnd::Gone);
        ask(app.clone(), Command::Withdraw { ticket, principal, end }).await?;
    }
    for (agent, session) in app.registrar.read(|state| waiting_agents(state, principal)) {
        // Whoever gives up waits for nothing any more. What it holds ends with it: it is this principal's too.
        ended += app.registrar.read(|state| state.leases_of_holder(&agent).count());
        let (principal, phase) = (principal.clone(), Phase::Aborted);
        let report = Report { agent, principal, session, phase, remembers: None };
        ask(app.clone(), Command::Agent(Box::new(AgentCommand::Report(report)))).await?;
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

/// The agents of a principal that wait, and in which session each is.
fn waiting_agents(state: &kernel::State, principal: &Principal) -> Vec<(Holder, Arc<str>)> {
    let agents: BTreeSet<_> = state.pending().map(|pending| &pending.rank.agent).collect();
    let known = agents.into_iter().filter_map(|id| Some((id, state.agent(id)?)));
    let own = known.filter(|(_, agent)| agent.principal == *principal);
    own.map(|(id, agent)| (id.clone(), agent.session.clone())).collect()
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
