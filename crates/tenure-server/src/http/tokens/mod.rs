//! Routes of API tokens.

mod handlers;

use std::sync::Arc;

use tenure_api::{Code, Token};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) use self::handlers::finish_revoking;
use super::answer::Failure;
use super::auth::Caller;
use crate::app::App;
use crate::clock::time_for_people;
use crate::secret_file::SecretFileError;
use crate::tokens::Given;

/// The routes of tokens.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(handlers::list, handlers::create)).routes(routes!(handlers::revoke))
}

/// Rejects a limited token: with it, a token without limits could be made.
fn must_be_unlimited(caller: &Caller) -> Result<(), Failure> {
    caller.require_unlimited_admin("managing tokens")
}

fn shown(token: &Given) -> Token {
    let name = token.principal.as_str().to_owned();
    Token {
        id: token.id.clone(),
        name: name.clone(),
        principal: name,
        scopes: token.scopes.named().map(|scope| scope.as_str().to_owned()).collect(),
        resources: token.resources.to_vec(),
        created_at: time_for_people(token.created_ms),
        expires_at: token.expires_ms.map(time_for_people),
        last_used_at: token.last_used_ms().map(time_for_people),
    }
}

/// The file cannot be written. What that means is `meaning`.
fn not_written(error: &SecretFileError, meaning: &str) -> Failure {
    let source = std::error::Error::source(error).map(|source| format!(" ({source})")).unwrap_or_default();
    Failure::new(Code::Unavailable, format!("the file with the tokens cannot be written{source}; {meaning}"))
}
