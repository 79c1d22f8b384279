//! Who speaks, and whether that is enough.

mod caller;
mod permissions;

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::Response;
use tenure_api::Code;
use tenure_core::kernel::Principal;

pub(crate) use self::caller::Caller;
#[cfg(test)]
pub(crate) use self::permissions::routes;
pub(crate) use self::permissions::scopes_of;
use self::permissions::{DEVICE, RoutePermission, permission_of};
use super::accept::Peer;
use super::response::HttpError;
use crate::app::App;
use crate::intents;
use crate::tokens::{TokenClockReading, TokenScope, TokenScopes};

/// The principal of the admin token.
pub(in crate::http) const ADMIN: &str = "admin";
/// What the principal of a local user begins with; the rest is the user id.
pub(super) const LOCAL: &str = "local-";

/// Lets a request on only if its caller may do what it asks for, and notes who that is.
///
/// Who asks for what does not exist hears so, whoever it is.
pub(crate) async fn require_permission(
    State(app): State<Arc<App>>,
    mut request: Request,
    next: Next,
) -> Result<Response, HttpError> {
    let Some(route) = request.extensions().get::<MatchedPath>() else { return Ok(next.run(request).await) };
    let permission = match permission_of(request.method(), route.as_str()) {
        Ok(permission) => permission,
        Err(response) => return Ok(*response),
    };
    let enough: &[TokenScope] = match &permission {
        RoutePermission::Public => return Ok(next.run(request).await),
        RoutePermission::Scope(scope) => std::slice::from_ref(scope),
        RoutePermission::Device => &DEVICE,
    };
    let caller = caller(&app, &request)?;
    caller.require_one_of(enough)?;
    request.extensions_mut().insert(caller);
    Ok(next.run(request).await)
}

/// Who speaks to a device behind this server, whose addresses are in no table.
pub(crate) fn device_caller(app: &App, request: &Request) -> Result<Caller, HttpError> {
    let caller = caller(app, request)?;
    caller.require_one_of(&DEVICE)?;
    Ok(caller)
}

fn caller(app: &App, request: &Request) -> Result<Caller, HttpError> {
    let Some(token) = bearer(request.headers()) else {
        let peer = request.extensions().get().copied().unwrap_or(Peer::Network { address: None });
        return match peer {
            Peer::Local { uid, .. } if !has_credentials(request.headers()) => local(app, uid),
            _ => Err(unauthorized("there is no bearer token")),
        };
    };
    caller_of(app, token)
}

pub(crate) fn caller_of(app: &App, token: &str) -> Result<Caller, HttpError> {
    if app.admin.matches(token) {
        return Ok(Caller::admin(Principal::parse(ADMIN)?));
    }
    let token = app.api_tokens.find(token, TokenClockReading::read());
    // A token from before sessions were may have a name that is the server's own by now.
    let token = token.filter(|token| !token.principal.as_str().starts_with(intents::DOMAIN));
    let token = token.ok_or_else(|| unauthorized("the bearer token is not known, or no longer good"))?;
    Ok(Caller::with_token(token))
}

/// A user of this machine, on the local socket. The system says which one it is.
fn local(app: &App, uid: u32) -> Result<Caller, HttpError> {
    let principal = Principal::parse(&format!("{LOCAL}{uid}"))?;
    let scopes = rights(uid, rustix::process::geteuid().as_raw(), &app.local_users).ok_or_else(|| {
        let detail = "may not use this socket; `[socket] users` in the configuration says who may";
        HttpError::new(Code::Forbidden, format!("the user {uid} {detail}"))
    })?;
    Ok(Caller::new(principal, scopes, Arc::default()))
}

/// What a user of this machine may do; nothing at all where nobody let it in.
fn rights(uid: u32, own: u32, allowed_users: &[u32]) -> Option<TokenScopes> {
    if uid == 0 || uid == own {
        return Some(TokenScopes::from_iter([TokenScope::Admin]));
    }
    allowed_users
        .contains(&uid)
        .then(|| TokenScopes::from_iter([TokenScope::LeasesRead, TokenScope::LeasesWrite]))
}

/// Whether the caller wants to be known by more than its user, though that cannot be read.
fn has_credentials(headers: &HeaderMap) -> bool {
    headers.contains_key(header::AUTHORIZATION) || headers.contains_key("x-api-key")
}

/// The refusal of somebody who does not say who speaks.
fn unauthorized(what: &str) -> HttpError {
    let remedy = "send the header `Authorization: Bearer …` with a token that an admin made, or with the one from \
                  admin.token in the data directory";
    HttpError::new(Code::Unauthorized, format!("{what}; {remedy}"))
}

/// The bearer token, if there is exactly one. Clients of devices call it an API key, and know another header for it.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    if !headers.contains_key(header::AUTHORIZATION) {
        let mut keys = headers.get_all("x-api-key").iter();
        let (Some(only), None) = (keys.next(), keys.next()) else { return None };
        return only.to_str().ok();
    }
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(only), None) = (all.next(), all.next()) else { return None };
    let (scheme, token) = only.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("Bearer").then(|| token.trim_start_matches(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_and_the_server_user_are_admins_and_listed_users_get_lease_scopes() {
        let admin = Some(TokenScopes::from_iter([TokenScope::Admin]));
        assert_eq!((rights(0, 1000, &[]), rights(1000, 1000, &[])), (admin, admin));
        assert_eq!(rights(1001, 1000, &[]), None);
        let user = rights(1001, 1000, &[1002, 1001]).unwrap();
        assert!(user.contains(TokenScope::LeasesRead) && user.contains(TokenScope::LeasesWrite));
        assert!(!user.contains(TokenScope::Admin));
    }
}
