//! Authenticates the caller, and checks the permission of the route.

mod permissions;

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::Response;
use tenure_api::Code;
use tenure_core::kernel::Principal;
use tenure_core::rules::overlap::ResourcePattern;

#[cfg(test)]
pub(crate) use self::permissions::routes;
pub(crate) use self::permissions::scopes_of;
use self::permissions::{DEVICE, RoutePermission, permission_of};
use super::response::HttpError;
use crate::app::App;
use crate::intents;
use crate::net::Peer;
use crate::tokens::{StoredToken, TokenClockReading, TokenScope, TokenScopes};

/// The principal of the admin token.
pub(crate) const ADMIN: &str = "admin";
/// What the principal of a local user begins with; the rest is the user id.
pub(crate) const LOCAL: &str = "local-";

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

/// Who speaks. Every request that needs a scope has one: a handler takes it as an argument.
#[derive(Clone)]
pub(crate) struct Caller {
    /// To whom leases and holders belong.
    pub(crate) principal: Principal,
    pub(crate) scopes: TokenScopes,
    /// On what: resources that begin with one of these. None is all of them.
    pub(crate) resources: Arc<[String]>,
    /// The token that it speaks with, if an admin made it: it may end while the request is open.
    token: Option<Arc<StoredToken>>,
}

impl Caller {
    pub(crate) fn new(principal: Principal, scopes: TokenScopes, resources: Arc<[String]>) -> Self {
        Self { principal, scopes, resources, token: None }
    }

    pub(crate) fn admin(principal: Principal) -> Self {
        Self::new(principal, TokenScopes::from_iter([TokenScope::Admin]), Arc::default())
    }

    /// Whoever speaks with this token, for as long as that is good.
    pub(crate) fn with_token(token: Arc<StoredToken>) -> Self {
        let caller = Self::new(token.principal.clone(), token.scopes, token.resources.clone());
        Self { token: Some(token), ..caller }
    }

    /// Refuses a caller without this scope, by saying what is missing. The table of routes has asked already; this is
    /// for what depends on the request.
    pub(crate) fn require(&self, scope: TokenScope) -> Result<(), HttpError> {
        self.require_one_of(&[scope])
    }

    /// The same where one of several is enough.
    pub(crate) fn require_one_of(&self, scopes: &[TokenScope]) -> Result<(), HttpError> {
        self.require_valid()?;
        if scopes.iter().any(|scope| self.scopes.contains(*scope)) {
            return Ok(());
        }
        let have: Vec<_> = self.scopes.explicit_scopes().map(TokenScope::as_str).collect();
        let required: Vec<_> = scopes.iter().map(|scope| format!("`{scope}`")).collect();
        let detail =
            format!("this needs the scope {}; the token has: {}", required.join(" or "), have.join(", "));
        Err(HttpError::new(Code::Forbidden, detail))
    }

    /// Refuses a caller that may not act on this resource. To be asked when the resource is known, right before
    /// anything is done: a token that ended while its body came in is refused here too.
    pub(crate) fn require_resource(&self, resource: &str) -> Result<(), HttpError> {
        self.require_valid()?;
        if self.covers(resource) {
            return Ok(());
        }
        let prefixes = self.resources.join(", ");
        let mut detail = format!("the token may act only on resources that begin with: {prefixes}");
        if self.resources.iter().any(|prefix| resource.starts_with(prefix.as_str())) {
            let means = ResourcePattern::from_name(resource).literal();
            detail.push_str(&format!(
                "; this pattern means whatever begins with {means}, where its first wildcard stands; name what is meant one by one"
            ));
        }
        Err(HttpError::new(Code::Forbidden, detail))
    }

    /// Rejects a caller that is not an admin, and an admin token that is limited to some resources. For requests that
    /// concern the whole server; `action` says which.
    pub(crate) fn require_unlimited_admin(&self, action: &str) -> Result<(), HttpError> {
        self.require(TokenScope::Admin)?;
        if self.resources.is_empty() {
            return Ok(());
        }
        let prefixes = self.resources.join(", ");
        let detail = format!(
            "{action} needs an admin token for all resources; this token is limited to resources that begin with: {prefixes}"
        );
        Err(HttpError::new(Code::Forbidden, detail))
    }

    /// Whether this resource is shown to the caller in lists, queues and events.
    pub(crate) fn can_see(&self, resource: &str) -> bool {
        self.is_valid() && self.covers(resource)
    }

    /// Whether the token still counts; an open stream ends when it does not.
    pub(crate) fn is_valid(&self) -> bool {
        self.token.as_ref().is_none_or(|token| token.is_valid_now())
    }

    /// A pattern is more than its name: `FILE:app/[id]/*` means whatever begins with `FILE:app/`, and all of that counts.
    fn covers(&self, resource: &str) -> bool {
        let is_within = |prefix: &String| {
            resource.starts_with(prefix.as_str())
                && ResourcePattern::from_name(resource)
                    .literal()
                    .starts_with(ResourcePattern::from_name(prefix).literal())
        };
        self.resources.is_empty() || self.resources.iter().any(is_within)
    }

    fn require_valid(&self) -> Result<(), HttpError> {
        if self.is_valid() { Ok(()) } else { Err(unauthorized("the token is no longer good")) }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let found = parts.extensions.get::<Self>().cloned();
        Ok(found.expect("a route without a scope takes no caller, and every other one has it"))
    }
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
