//! One control connection: its identity, its caller and its lease.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::Serialize;
use serde_json::{Map, Value};
use tenure_api::Code;
use tenure_control::{CommandError, Problem, ProblemCode};
use tenure_core::kernel::{Command, Fence, Holder, LeaseCredential, Principal, RevocationCause};
use tenure_device::{DeviceCommandFields, required};
use zeroize::Zeroizing;

use crate::app::App;
use crate::http::auth::{Caller, caller_of};
use crate::http::response::HttpError;
use crate::tokens::TokenScope;

/// A connection. When it goes, what it has ends. It has no `Debug`: it knows the token.
pub(super) struct Connection {
    app: Arc<App>,
    /// A random name that no other connection ever has.
    pub(super) identity: Arc<str>,
    pub(super) client_id: u32,
    /// Who opened it, and who speaks now.
    pub(super) opened_by: Caller,
    pub(super) caller: Caller,
    /// The lease, if this connection has one; perhaps it is over.
    pub(super) lease: Option<ConnectionLease>,
}

/// What a connection knows of its lease.
pub(super) struct ConnectionLease {
    pub(super) fence: Fence,
    pub(super) token: Zeroizing<String>,
    pub(super) principal: Principal,
}

impl Connection {
    pub(super) fn new(app: Arc<App>, caller: Caller) -> Result<Self, HttpError> {
        let identity = new_identity()?;
        let client_id = app.control.controller.next_client_id();
        Ok(Self { app, identity, client_id, opened_by: caller.clone(), caller, lease: None })
    }

    /// Another principal speaks: a name in the ledger belongs to the one that first used it.
    pub(super) fn renew_identity(&mut self) -> Result<(), HttpError> {
        self.app.control.controller.remove_connection(&self.identity);
        self.identity = new_identity()?;
        self.lease = None;
        Ok(())
    }

    /// This connection, as the ledger knows it.
    pub(super) fn holder(&self) -> Holder {
        Holder::parse(&self.identity).expect("letters, digits, `-` and `_` are a name")
    }

    /// Why this connection may act on its lease: the face vouches for it.
    pub(super) fn lease_credential(&self, principal: &Principal) -> LeaseCredential {
        LeaseCredential::Holder { holder: self.holder(), principal: principal.clone() }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let Some(lease) = self.app.control.controller.remove_connection(&self.identity) else { return };
        let (by, detail) = (self.caller.principal.clone(), Arc::from("its connection ended"));
        self.app.registrar.submit_with_retry(Command::Revoke {
            lease,
            cause: RevocationCause::Disconnected,
            by,
            detail,
        });
    }
}

fn new_identity() -> Result<Arc<str>, HttpError> {
    Ok(format!("ws-{}", BASE64_URL_SAFE_NO_PAD.encode(random()?)).into())
}

/// A token for a lease: 128 bits that nobody can guess.
pub(super) fn new_token() -> Result<Zeroizing<String>, HttpError> {
    let bytes = Zeroizing::new(random()?);
    Ok(Zeroizing::new(BASE64_URL_SAFE_NO_PAD.encode(bytes.as_slice())))
}

pub(super) fn random() -> Result<[u8; 16], HttpError> {
    let mut bytes = [0; 16];
    let detail = "the system gives no random bytes; nothing happened, ask again";
    getrandom::fill(&mut bytes).map_err(|_| HttpError::new(Code::Unavailable, detail))?;
    Ok(bytes)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AuthStatus {
    authenticated: bool,
    principal: String,
    scopes: Vec<&'static str>,
    /// On which resources; none is all of them.
    resources: Vec<String>,
    may_control: bool,
}

/// `auth.status`.
pub(super) fn status(caller: &Caller) -> AuthStatus {
    AuthStatus {
        authenticated: true,
        principal: caller.principal.as_str().to_owned(),
        scopes: caller.scopes.explicit_scopes().map(TokenScope::as_str).collect(),
        resources: caller.resources.to_vec(),
        may_control: caller.scopes.contains(TokenScope::ControlWrite)
            && caller.can_see(super::controller::RESOURCE),
    }
}

/// `auth.login`: speak as this token's principal from now on.
pub(super) fn login(
    app: &App,
    connection: &mut Connection,
    fields: Map<String, Value>,
) -> Result<AuthStatus, CommandError> {
    let token = DeviceCommandFields::new(fields).text("token")?;
    let token = Zeroizing::new(required(token, "token", "an API token")?);
    let unknown = |_| Problem::new(ProblemCode::Unauthorized, "the token is not known, or no longer good");
    let caller = caller_of(app, &token).map_err(unknown)?;
    switch_caller(app, connection, caller)
}

/// `auth.logout`: speak as who the connection was opened for.
pub(super) fn logout(app: &App, connection: &mut Connection) -> Result<AuthStatus, CommandError> {
    let caller = connection.opened_by.clone();
    switch_caller(app, connection, caller)
}

fn switch_caller(app: &App, connection: &mut Connection, caller: Caller) -> Result<AuthStatus, CommandError> {
    let is_new_principal = caller.principal != connection.caller.principal;
    let is_owner = app
        .control
        .controller
        .read(|held, _| held.is_some_and(|held| *held.owner.identity == *connection.identity));
    let status = status(&caller);
    if is_owner && (is_new_principal || !status.may_control) {
        let detail =
            "this connection has the control lease, which was granted to who spoke before; release it first";
        return Err(Problem::new(ProblemCode::Conflict, detail).into());
    }
    if is_new_principal {
        connection.renew_identity()?;
    }
    connection.caller = caller;
    Ok(status)
}
