//! Requests to somebody else's device: whatever has an address that is not Tenure's own.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use tenure_control::Class;

use super::{envelope, gate};
use crate::app::App;
use crate::control::gateway::Gateway;
use crate::control::lifecycle::may_write;
use crate::http::auth::{Caller, device_caller};
use crate::http::no_such_route;

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
    if class != Class::Reads
        && let Err(problem) = may_write(caller)
    {
        return envelope::failure(&app.control.desk, &problem.into());
    }
    match gate(app, class, request.headers()) {
        Ok(pass) => gateway.forward(pass, request).await,
        Err(refusal) => envelope::failure(&app.control.desk, &refusal.into()),
    }
}
