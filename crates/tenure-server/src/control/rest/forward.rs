//! Requests to somebody else's device: whatever has an address that is not Tenure's own.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use tenure_control::{Class, Problem, ProblemCode};

use super::{envelope, header};
use crate::app::App;
use crate::control::desk::RESOURCE;
use crate::control::gateway::Gateway;
use crate::control::message::Blocked;
use crate::http::auth::{Caller, device_caller};
use crate::http::no_such_route;
use crate::tokens::Scope;

/// An address that is none of ours: the device's, if there is one behind this server.
pub(crate) async fn elsewhere(State(app): State<Arc<App>>, request: Request) -> Response {
    let Some(gateway) = &app.control.gateway else { return no_such_route().into_response() };
    match device_caller(&app, &request) {
        Ok(caller) => forward(&app, gateway, &caller, request).await,
        Err(failure) => failure.into_response(),
    }
}

/// Sends a request on, if who speaks and the lease allow it.
pub(super) async fn forward(app: &App, gateway: &Gateway, caller: &Caller, request: Request) -> Response {
    let class = gateway.classify_request(&request);
    if let Err(blocked) = may(caller, class) {
        return envelope::failure(&app.control.desk, &blocked);
    }
    let (token, id) =
        (header(request.headers(), "x-control-lease"), header(request.headers(), "x-control-lease-id"));
    match app.control.desk.pass_rest(token, id, class) {
        Ok(pass) => gateway.forward(pass, request).await,
        Err(refusal) => envelope::failure(&app.control.desk, &refusal.into()),
    }
}

fn may(caller: &Caller, class: Class) -> Result<(), Blocked> {
    if class == Class::Reads {
        return Ok(());
    }
    let allowed = caller.require(Scope::ControlWrite).and_then(|()| caller.require_resource(RESOURCE));
    Ok(allowed.map_err(|failure| Problem::new(ProblemCode::Forbidden, failure.0.detail.clone()))?)
}
