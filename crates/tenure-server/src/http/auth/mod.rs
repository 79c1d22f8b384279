//! Who speaks, and whether that is enough.

mod caller;
mod needs;

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::Response;
use tenure_api::Code;
use tenure_core::kernel::Principal;

pub(crate) use self::caller::Caller;
#[cfg(test)]
pub(crate) use self::needs::routes;
pub(crate) use self::needs::scope_of;
use self::needs::{Need, need_of};
use super::answer::Failure;
use crate::app::App;

/// The principal of the admin token.
const ADMIN: &str = "admin";

/// Lets a request on only if its caller may do what it asks for, and notes who that is.
///
/// Who asks for what does not exist hears so, whoever it is.
pub(crate) async fn require(
    State(app): State<Arc<App>>,
    mut request: Request,
    next: Next,
) -> Result<Response, Failure> {
    let Some(route) = request.extensions().get::<MatchedPath>() else { return Ok(next.run(request).await) };
    let need = match need_of(request.method(), route.as_str()) {
        Ok(need) => need,
        Err(response) => return Ok(*response),
    };
    if let Need::Scope(scope) = need {
        let caller = caller(&app, &request)?;
        caller.require(scope)?;
        request.extensions_mut().insert(caller.principal.clone());
        request.extensions_mut().insert(caller);
    }
    Ok(next.run(request).await)
}

/// Who speaks.
fn caller(app: &App, request: &Request) -> Result<Caller, Failure> {
    let token = bearer(request.headers());
    if token.is_some_and(|token| app.admin.is(token)) {
        return Ok(Caller::admin(Principal::parse(ADMIN)?));
    }
    Err(unauthorized(if token.is_some() {
        "the bearer token is not known"
    } else {
        "there is no bearer token"
    }))
}

/// The refusal of somebody who does not say who speaks.
fn unauthorized(what: &str) -> Failure {
    let remedy = "send the header `Authorization: Bearer …` with a token that an admin made, or with the one from \
                  admin.token in the data directory";
    Failure::new(Code::Unauthorized, format!("{what}; {remedy}"))
}

/// The bearer token, if there is exactly one.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(only), None) = (all.next(), all.next()) else { return None };
    let (scheme, token) = only.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("Bearer").then(|| token.trim_start_matches(' '))
}
