//! Who speaks, and what that one may do.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use tenure_api::Code;
use tenure_core::kernel::Principal;
use tenure_core::rules::overlap::ResourcePattern;

use crate::http::response::HttpError;
use crate::tokens::{StoredToken, TokenScope, TokenScopes};

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
        if self.is_valid() { Ok(()) } else { Err(super::unauthorized("the token is no longer good")) }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let found = parts.extensions.get::<Self>().cloned();
        Ok(found.expect("a route without a scope takes no caller, and every other one has it"))
    }
}
