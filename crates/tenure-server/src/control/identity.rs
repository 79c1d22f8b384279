//! `auth.*`: who speaks on a connection.

use serde::Serialize;
use serde_json::{Map, Value};
use tenure_control::{Problem, ProblemCode};
use zeroize::Zeroizing;

use super::fields::Fields;
use super::message::Blocked;
use super::seat::Seat;
use crate::app::App;
use crate::http::auth::{Caller, caller_of};
use crate::tokens::Scope;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Who {
    authenticated: bool,
    principal: String,
    scopes: Vec<&'static str>,
    /// On which resources; none is all of them.
    resources: Vec<String>,
    may_control: bool,
}

/// `auth.status`.
pub(super) fn status(caller: &Caller) -> Who {
    Who {
        authenticated: true,
        principal: caller.principal.as_str().to_owned(),
        scopes: caller.scopes.named().map(Scope::as_str).collect(),
        resources: caller.resources.to_vec(),
        may_control: caller.scopes.contain(Scope::ControlWrite) && caller.may_see(super::desk::RESOURCE),
    }
}

/// `auth.login`: speak as this token's principal from now on.
pub(super) fn login(app: &App, seat: &mut Seat, fields: Map<String, Value>) -> Result<Who, Blocked> {
    let token = Zeroizing::new(Fields(fields).text("token")?);
    let unknown = |_| Problem::new(ProblemCode::Unauthorized, "the token is not known, or no longer good");
    let caller = caller_of(app, &token).map_err(unknown)?;
    speak_as(app, seat, caller)
}

/// `auth.logout`: speak as who the connection was opened for.
pub(super) fn logout(app: &App, seat: &mut Seat) -> Result<Who, Blocked> {
    let caller = seat.opened_by.clone();
    speak_as(app, seat, caller)
}

fn speak_as(app: &App, seat: &mut Seat, caller: Caller) -> Result<Who, Blocked> {
    let is_another = caller.principal != seat.caller.principal;
    let is_owner =
        app.control.desk.look(|held, _| held.is_some_and(|held| *held.owner.identity == *seat.identity));
    let who = status(&caller);
    if is_owner && (is_another || !who.may_control) {
        let detail =
            "this connection has the control lease, which was granted to who spoke before; release it first";
        return Err(Problem::new(ProblemCode::Conflict, detail).into());
    }
    if is_another {
        seat.rename()?;
    }
    seat.caller = caller;
    Ok(who)
}
