//! `auth.*`: who speaks on a connection.

use serde::Serialize;
use serde_json::{Map, Value};
use tenure_control::{Problem, ProblemCode};
use zeroize::Zeroizing;

use super::command_fields::CommandFields;
use super::connection::Connection;
use super::message::CommandError;
use crate::app::App;
use crate::http::auth::{Caller, caller_of};
use crate::tokens::TokenScope;

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
    let token = Zeroizing::new(CommandFields(fields).text("token")?);
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
