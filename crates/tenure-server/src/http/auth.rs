//! Who speaks.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::Response;
use tenure_api::Code;
use tenure_core::kernel::Principal;

use super::answer::Failure;
use crate::app::App;

/// The principal of the admin token.
const ADMIN: &str = "admin";

/// Lets a request on only if it says who speaks, and notes who that is.
pub(crate) async fn require(
    State(app): State<Arc<App>>,
    mut request: Request,
    next: Next,
) -> Result<Response, Failure> {
    let token = bearer(request.headers());
    if !token.is_some_and(|token| app.admin.is(token)) {
        let what = if token.is_some() { "the bearer token is not known" } else { "there is no bearer token" };
        let remedy =
            "send the header `Authorization: Bearer …` with the token from admin.token in the data directory";
        return Err(Failure::new(Code::Unauthorized, format!("{what}; {remedy}")));
    }
    request.extensions_mut().insert(Principal::parse(ADMIN)?);
    Ok(next.run(request).await)
}

/// The bearer token, if there is exactly one.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(only), None) = (all.next(), all.next()) else { return None };
    let (scheme, token) = only.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("Bearer").then(|| token.trim_start_matches(' '))
}
