//! Routes of API tokens.

mod handlers;

use std::sync::Arc;

use tenure_api::{ApiTokenView, Code};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) use self::handlers::finish_revoking;
use super::auth::Caller;
use super::response::HttpError;
use crate::app::App;
use crate::clock::format_unix_ms;
use crate::secret_file::SecretFileError;
use crate::tokens::StoredToken;

/// The routes of tokens.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(handlers::list, handlers::create)).routes(routes!(handlers::revoke))
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
