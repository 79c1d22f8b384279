//! Routes of API tokens.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use tenure_api::{ApiTokenList, ApiTokenRequest, ApiTokenView, Code, CreatedApiToken, RevokedApiToken};
use tenure_core::kernel;
use tenure_core::kernel::{
    AgentCommand, AgentPhase, AgentReport, Command, Fence, Holder, Principal, Resource, RevocationCause,
    WaitEnd,
};
use tokio::task::JoinSet;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::{App, format_unix_ms};
use crate::http::auth::{ADMIN, Caller};
use crate::http::body::RequestBody;
use crate::http::response::{HttpError, answer_from_reply, json};
use crate::secret_file::SecretFileError;
use crate::tokens::{
    CreateError, NewToken, StoredToken, TokenClockReading, TokenScope, TokenScopes, TokenStore,
};

/// The routes of tokens.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(revoke))
}

/// Rejects a limited token: with it, a token without limits could be made.
fn must_be_unlimited(caller: &Caller) -> Result<(), HttpError> {
    caller.require_unlimited_admin("managing tokens")
}

fn token_view(token: &StoredToken) -> ApiTokenView {
    let name = token.principal.as_str().to_owned();
    ApiTokenView {
        id: token.id.clone(),
        name: name.clone(),
        principal: name,
        scopes: token.scopes.explicit_scopes().map(|scope| scope.as_str().to_owned()).collect(),
        resources: token.resources.to_vec(),
        created_at: format_unix_ms(token.created_ms),
        expires_at: token.expires_ms.map(format_unix_ms),
        last_used_at: token.last_used_ms().map(format_unix_ms),
    }
}

/// The file cannot be written. What that means is `meaning`.
fn not_written(error: &SecretFileError, meaning: &str) -> HttpError {
    let source = std::error::Error::source(error).map(|source| format!(" ({source})")).unwrap_or_default();
    HttpError::new(
        Code::Unavailable,
        format!("the file with the tokens cannot be written{source}; {meaning}"),
    )
}

/// The longest name, and the longest prefix: as long as a resource of the plain API.
const MAX_NAME_BYTES: usize = 128;
/// The most prefixes that one token is limited to.
const MAX_PREFIXES: usize = 64;
/// A hundred years: more is for ever, which is asked for by leaving it out.
const MAX_LIFETIME_MS: u64 = 100 * 365 * 24 * 60 * 60 * 1_000;

/// Create an API token.
///
/// The secret is returned only in this response.
#[utoipa::path(
    post,
    path = "/v1/tokens",
    tag = "tokens",
    operation_id = "createToken",
    request_body = tenure_api::ApiTokenRequest,
    responses((status = 201, description = "Token was created", body = tenure_api::CreatedApiToken)),
    extensions(("x-codes" = json!(["NAME_TAKEN", "QUOTA_EXCEEDED"])))
)]
async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    body: RequestBody<ApiTokenRequest>,
) -> Result<Response, HttpError> {
    must_be_unlimited(&caller)?;
    let request = new_token(body.request)?;
    // After the body, which may have taken its time.
    must_be_unlimited(&caller)?;
    let created =
        tokio::task::spawn_blocking(move || app.api_tokens.create(request, TokenClockReading::read())).await;
    let created = created.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
    let (token, secret) = created.map_err(refused)?;
    let created = CreatedApiToken { token: token_view(&token), secret: secret.to_string() };
    Ok(json(StatusCode::CREATED, &created))
}

fn new_token(request: ApiTokenRequest) -> Result<NewToken, HttpError> {
    let principal =
        Principal::parse(&request.name).map_err(|error| HttpError::invalid("name", &error.reason))?;
    if request.name.len() > MAX_NAME_BYTES {
        return Err(HttpError::invalid("name", &format!("has more than {MAX_NAME_BYTES} bytes")));
    }
    let own = [crate::http::auth::LOCAL, crate::intents::DOMAIN];
    if request.name == crate::http::auth::ADMIN || own.iter().any(|own| request.name.starts_with(own)) {
        let reason =
            "`admin` and what begins with `local-` or `system:` are the server's own; choose another";
        return Err(HttpError::invalid("name", reason));
    }
    let unknown = || {
        HttpError::invalid(
            "scopes",
            &format!("must be some of: {}", TokenScope::ALL.map(TokenScope::as_str).join(", ")),
        )
    };
    let scopes: Option<TokenScopes> = request.scopes.iter().map(|name| TokenScope::parse(name)).collect();
    let scopes = scopes.filter(|scopes| !scopes.is_empty()).ok_or_else(unknown)?;
    let is_prefix = |text: &String| text.len() <= MAX_NAME_BYTES && Resource::parse(text).is_ok();
    if request.resources.len() > MAX_PREFIXES || !request.resources.iter().all(is_prefix) {
        let reason = format!(
            "must be at most {MAX_PREFIXES} beginnings of resources, each with 1 to {MAX_NAME_BYTES} bytes and \
             without control characters"
        );
        return Err(HttpError::invalid("resources", &reason));
    }
    if request.expires_in_ms.is_some_and(|span| !(1..=MAX_LIFETIME_MS).contains(&span)) {
        return Err(HttpError::invalid("expiresInMs", &format!("must be from 1 to {MAX_LIFETIME_MS}")));
    }
    Ok(NewToken { principal, scopes, resources: request.resources, expires_in_ms: request.expires_in_ms })
}

fn refused(error: CreateError) -> HttpError {
    match error {
        CreateError::NameTaken => HttpError::new(
            Code::NameTaken,
            "a token with this name is good, or its leases are being ended; revoke it first (`tenure token revoke`), or \
             choose another name",
        ),
        CreateError::TooMany => {
            HttpError::new(Code::QuotaExceeded, "there are as many tokens as may be; revoke some")
        }
        CreateError::File(error) => not_written(&error, "no token was made"),
    }
}

/// List valid API tokens, without their secrets.
#[utoipa::path(
    get,
    path = "/v1/tokens",
    tag = "tokens",
    operation_id = "tokens",
    responses((status = 200, description = "List of valid tokens", body = tenure_api::ApiTokenList)),
)]
async fn list(State(app): State<Arc<App>>, caller: Caller) -> Result<Response, HttpError> {
    must_be_unlimited(&caller)?;
    let tokens =
        app.api_tokens.list(TokenClockReading::read()).iter().map(|token| token_view(token)).collect();
    Ok(json(StatusCode::OK, &ApiTokenList { tokens }))
}

/// How many leases are looked at while nobody else can, and how many are ended at once.
const BATCH_SIZE: usize = 1_024;

/// Revoke an API token.
///
/// Takes effect with the next request. Ends the leases and waits of its principal.
#[utoipa::path(
    delete,
    path = "/v1/tokens/{id}",
    tag = "tokens",
    operation_id = "revokeToken",
    params(("id" = String, Path, description = "Token id, as returned in `token.id`")),
    responses((status = 200, description = "Token was revoked", body = tenure_api::RevokedApiToken)),
    extensions(("x-codes" = json!(["NOT_FOUND"])))
)]
async fn revoke(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response, HttpError> {
    must_be_unlimited(&caller)?;
    let unknown = || HttpError::new(Code::NotFound, "there is no such token, or it is no longer good");
    let token = app.api_tokens.revoke(&id).ok_or_else(unknown)?;
    // In this order: until everything is done, the token is known, and whoever got no answer can ask again. Where the
    // first write fails, the leases end all the same, and the last one says so if the disk is still as bad.
    let _ = change(&app, |tokens| tokens.persist_revocations(TokenClockReading::read())).await;
    let detail = format!("the token {} was revoked", token.principal);
    let revoked_leases = end_all(&app, &token.principal, &caller.principal, detail.into()).await?;
    let meaning = "the token counts no more until the next start; ask again";
    let forgotten = change(&app, move |tokens| tokens.forget(&id, TokenClockReading::read())).await;
    forgotten.map_err(|error| not_written(&error, meaning))?;
    Ok(json(StatusCode::OK, &RevokedApiToken { token: token_view(&token), revoked_leases }))
}

/// Ends what the last server did not come to before it ended itself. Where that cannot be done, the token is still known as
/// revoked: an admin can revoke it again, and the next start tries again.
pub(crate) async fn finish_revoking(app: &Arc<App>) {
    for token in app.api_tokens.revoked() {
        let by = Principal::parse(ADMIN).expect("a name of our own is a name");
        let detail = format!("the token {} was revoked before the server started again", token.principal);
        if end_all(app, &token.principal, &by, detail.into()).await.is_ok() {
            let id = token.id.clone();
            let _ = change(app, move |tokens| tokens.forget(&id, TokenClockReading::read())).await;
        }
    }
}

/// Changes the file with the tokens, on a thread that may wait for the disk.
async fn change(
    app: &Arc<App>,
    what: impl FnOnce(&TokenStore) -> Result<(), SecretFileError> + Send + 'static,
) -> Result<(), SecretFileError> {
    let app = app.clone();
    let changed = tokio::task::spawn_blocking(move || what(&app.api_tokens)).await;
    changed.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

/// Ends what a principal holds and waits for, and says how many leases that were.
async fn end_all(
    app: &Arc<App>,
    principal: &Principal,
    by: &Principal,
    detail: Arc<str>,
) -> Result<usize, HttpError> {
    // What was asked before the token was revoked is decided before this is: nothing comes after it.
    submit(app.clone(), Command::Expire { max_ended: 1 }).await?;
    let (mut ended, mut from) = (0, Fence::default());
    for ticket in app.registrar.read(|state| {
        state
            .queue_tickets()
            .filter(|wait| wait.principal == principal)
            .map(|wait| wait.ticket)
            .collect::<Vec<_>>()
    }) {
        let (principal, end) = (principal.clone(), WaitEnd::Gone);
        submit(app.clone(), Command::Withdraw { ticket, principal, end }).await?;
    }
    for (agent, session) in app.registrar.read(|state| waiting_agents(state, principal)) {
        // Whoever gives up waits for nothing any more. What it holds ends with it: it is this principal's too.
        ended += app.registrar.read(|state| state.leases_of_holder(&agent).count());
        let (principal, phase) = (principal.clone(), AgentPhase::Aborted);
        let report = AgentReport { agent, principal, session, phase, memory: None };
        submit(app.clone(), Command::Agent(Box::new(AgentCommand::Report(report)))).await?;
    }
    loop {
        let (leases, next) = app.registrar.read(|state| {
            let part: Vec<_> = state.leases_from(from).take(BATCH_SIZE).collect();
            let theirs = part.iter().filter(|lease| lease.principal == principal);
            (theirs.map(|lease| lease.fence).collect::<Vec<_>>(), part.last().map(|lease| lease.fence))
        });
        let mut tasks = JoinSet::new();
        for lease in leases {
            let (by, detail) = (by.clone(), detail.clone());
            tasks.spawn(submit(
                app.clone(),
                Command::Revoke { lease, cause: RevocationCause::Revoked, by, detail },
            ));
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
fn waiting_agents(state: &kernel::KernelState, principal: &Principal) -> Vec<(Holder, Arc<str>)> {
    let agents: BTreeSet<_> = state.waiting_agents().map(|pending| &pending.rank.agent).collect();
    let known = agents.into_iter().filter_map(|id| Some((id, state.agent(id)?)));
    let own = known.filter(|(_, agent)| agent.principal == *principal);
    own.map(|(id, agent)| (id.clone(), agent.session.clone())).collect()
}

/// Asks for an end: 1 if there was one, 0 if it had come already.
async fn submit(app: Arc<App>, command: Command) -> Result<usize, HttpError> {
    let reply = app.registrar.submit(command).await.reply;
    match answer_from_reply(reply, || app.registrar.now()) {
        Ok(_) => Ok(1),
        Err(failure) if matches!(failure.0.code, Code::Expired | Code::NotFound) => Ok(0),
        Err(failure) => Err(failure),
    }
}
