//! Envelopes of the device's REST answers, uploads, and requests that are passed on.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use http_body_util::BodyExt as _;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tenure_control::firmware::ImageChecker;
use tenure_control::rejection::VERSION;
use tenure_control::{CommandClass, Permit, Problem, ProblemCode};
use tokio::time::timeout;

use super::{envelope, permit};
use crate::app::App;
use crate::control::Controller;
use crate::control::gateway::Gateway;
use crate::control::lease_commands::require_control_permission;
use crate::control::message::CommandError;
use crate::http::auth::{Caller, device_caller};
use crate::http::no_such_route;
use crate::http::response::json;

#[derive(Serialize)]
struct Envelope<'a> {
    success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a RawValue>,
    timestamp: u32,
    version: &'a str,
}

pub(super) fn answer(controller: &Controller, data: &RawValue) -> Response {
    json(StatusCode::OK, &envelope(millis(controller), true, Some(data), None))
}

pub(super) fn failure(controller: &Controller, blocked: &CommandError) -> Response {
    failure_response_at(blocked, millis(controller))
}

/// The same, at this time of the device's clock.
pub(in crate::control) fn failure_response_at(blocked: &CommandError, millis: u32) -> Response {
    let status = StatusCode::from_u16(blocked.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json(status, &envelope(millis, false, None, Some(&blocked.rest_body())));
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

fn millis(controller: &Controller) -> u32 {
    controller.uptime.at(controller.now()).0
}

fn envelope<'a>(
    timestamp: u32,
    success: bool,
    data: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
) -> Envelope<'a> {
    Envelope { success, data, error, timestamp, version: VERSION }
}

/// An upload that brings nothing for so long is over.
const UPLOAD_IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// Checks what is uploaded, and lets the device keep it.
pub(super) async fn upload(app: &App, pass: Permit, request: Request) -> Result<Value, CommandError> {
    let image = check(request.into_body()).await?;
    app.control.controller.run_on_device(pass, |device, now| device.accept_firmware(image, now)).await
}

async fn check(mut body: Body) -> Result<tenure_control::firmware::FirmwareInfo, Problem> {
    let mut check = ImageChecker::new();
    let too_slow =
        |_| Problem::new(ProblemCode::FirmwareInvalid, "nothing came for 10 s; send the image again");
    while let Some(frame) = timeout(UPLOAD_IDLE_TIMEOUT, body.frame()).await.map_err(too_slow)? {
        let cut_short = |_| {
            Problem::new(
                ProblemCode::FirmwareInvalid,
                "the image ended before it was complete; send it again",
            )
        };
        let Ok(data) = frame.map_err(cut_short)?.into_data() else { continue };
        check.feed(&data)?;
    }
    Ok(check.finish()?)
}

/// An address that is none of ours: the device's, if there is one behind this server.
pub(crate) async fn fallback(State(app): State<Arc<App>>, request: Request) -> Response {
    let Some(gateway) = &app.control.gateway else { return no_such_route().into_response() };
    match device_caller(&app, &request) {
        Ok(caller) => forward(&app, gateway, &caller, request).await,
        Err(failure) => failure.into_response(),
    }
}

/// Sends a request on, if who speaks and the lease allow it.
pub(super) async fn forward(app: &App, gateway: &Gateway, caller: &Caller, request: Request) -> Response {
    let class = gateway.classify_request(&request);
    if class != CommandClass::Reads
        && let Err(problem) = require_control_permission(caller)
    {
        return envelope::failure(&app.control.controller, &problem.into());
    }
    match permit(app, class, request.headers()) {
        Ok(pass) => gateway.forward(pass, request).await,
        Err(rejection) => envelope::failure(&app.control.controller, &rejection.into()),
    }
}
