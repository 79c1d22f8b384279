//! The commands of the device under their addresses. The order is always the same: who speaks, the lease, the body.

pub(super) mod openapi;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{MatchedPath, RawPathParams, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use axum::routing::{MethodFilter, MethodRouter, on};
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tenure_control::commands::CommandDefinition;
use tenure_control::rejection::{ErrorBody, VERSION};
use tenure_control::{
    COMMANDS, CommandClass, CommandError, ControlRejection, Permit, Problem, ProblemCode, TokenDigest,
    commands,
};
use tenure_core::kernel::{Tick, TickDuration};
use tenure_device::DeviceCommandFields;
use tenure_device::firmware::ImageChecker;
use tenure_gateway::Gateway;
use tokio::time::timeout;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use zeroize::Zeroizing;

use super::connection::new_token;
use super::message::to_raw_json;
use super::{connection, lease_commands, websocket};
use crate::app::App;
use crate::control::lease_commands::require_control_permission;
use crate::http::auth::{Caller, device_caller};
use crate::http::body::read_object;
use crate::http::response::{HttpError, json};
use crate::http::{body, no_such_route};
use crate::net::Peer;

/// Every route of the face.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    let mut by_path: BTreeMap<&str, MethodRouter<Arc<App>>> = BTreeMap::new();
    for rest in COMMANDS.iter().flat_map(|row| row.rest) {
        let method = Method::from_bytes(rest.method.as_bytes()).expect("the table has methods");
        let filter = MethodFilter::try_from(method).expect("axum knows them");
        let router = by_path.remove(rest.path).unwrap_or_default();
        by_path.insert(rest.path, router.merge(on(filter, command)));
    }
    let router = OpenApiRouter::new().routes(routes!(websocket::websocket));
    by_path.into_iter().fold(router, |router, (path, methods)| router.route(path, methods))
}

/// One command.
async fn command(
    State(app): State<Arc<App>>,
    caller: Caller,
    path: MatchedPath,
    parameters: Result<RawPathParams, RawPathParamsRejection>,
    request: Request,
) -> Response {
    // Who may GET may HEAD.
    let method = if *request.method() == Method::HEAD { Method::GET } else { request.method().clone() };
    let row = commands::find_command_by_route(method.as_str(), path.as_str())
        .expect("only addresses of the table lead here");
    if let Some(gateway) = &app.control.gateway
        && !is_ours(row)
    {
        let response = forward(&app, gateway, &caller, request).await;
        return response.unwrap_or_else(|error| failure(&app, &error));
    }
    let fields = match &parameters {
        Ok(parameters) => {
            Ok(parameters.iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect())
        }
        Err(_) => Err(Problem::new(
            ProblemCode::InvalidValue,
            "the address is no text: it must be UTF-8, percent-encoded",
        )),
    };
    let response = obey(&app, &caller, row, fields, request).await;
    response.map_or_else(|error| failure(&app, &error), |data| answer(&app, &data))
}

/// Whether a command is Tenure's own, whatever device is behind it.
fn is_ours(row: &CommandDefinition) -> bool {
    row.name.starts_with("control.") || row.name.starts_with("auth.")
}

async fn obey(
    app: &App,
    caller: &Caller,
    row: &'static CommandDefinition,
    fields: Result<Map<String, Value>, Problem>,
    request: Request,
) -> Result<Box<serde_json::value::RawValue>, CommandError> {
    let shows_right = row.name == "ota.upload"
        && header(request.headers(), HEADER)
            .is_some_and(|token| app.control.ota_token.redeem(token, app.control.controller.now()));
    if row.may_change && !shows_right {
        lease_commands::require_control_permission(caller)?;
    }
    let pass = permit(app, row.class, request.headers())?;
    let mut fields = fields?;
    if row.name == "ota.upload" {
        return Ok(to_raw_json(&upload(app, pass, request).await?));
    }
    for (field, value) in read(request).await? {
        if fields.contains_key(&field) {
            return Err(
                Problem::of_field(ProblemCode::UnknownField, &field, "is in the address already").into()
            );
        }
        fields.insert(field, value);
    }
    let control = &app.control;
    if !["control.status", "auth.status", "ota.token", "ota.tokens"].contains(&row.name) {
        return Ok(to_raw_json(&control.controller.execute(pass, row.name, fields).await?));
    }
    DeviceCommandFields::new(fields).finish(&[])?;
    let now = control.controller.now();
    Ok(match row.name {
        "control.status" => lease_commands::status(app),
        "auth.status" => to_raw_json(&connection::status(caller)),
        "ota.token" => to_raw_json(&OtaToken::issued_view(&control.ota_token.make(now)?)),
        _ => to_raw_json(&control.ota_token.status(now)),
    })
}

/// Whether the lease lets this in, before a byte of the body is read.
fn permit(app: &App, class: CommandClass, headers: &HeaderMap) -> Result<Permit, ControlRejection> {
    let (token, lease_id) = (header(headers, "x-control-lease"), header(headers, "x-control-lease-id"));
    app.control.controller.permit_rest(token, lease_id, class)
}

/// The value of a header. One that stands twice or cannot be read is shown, but is nobody's.
fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (None, _) => None,
        (Some(only), None) => Some(only.to_str().unwrap_or_default()),
        _ => Some(""),
    }
}

/// The fields of a body; none where there is no body.
async fn read(request: Request) -> Result<Map<String, Value>, CommandError> {
    let is_json = body::is_json(request.headers());
    let bytes = body::bytes(request.into_body()).await?;
    if bytes.is_empty() {
        return Ok(Map::new());
    }
    if !is_json {
        let detail = "send JSON, with `Content-Type: application/json`";
        return Err(Problem::new(ProblemCode::InvalidType, detail).into());
    }
    Ok(read_object(&bytes)?)
}

#[derive(Serialize)]
struct Envelope<'a> {
    success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorBody<'a>>,
    timestamp: u32,
    version: &'a str,
}

fn answer(app: &App, data: &RawValue) -> Response {
    json(StatusCode::OK, &envelope(millis(app), true, Some(data), None))
}

fn failure(app: &App, error: &CommandError) -> Response {
    failure_response_at(error, millis(app))
}

/// The same, at this time of the device's clock.
fn failure_response_at(blocked: &CommandError, millis: u32) -> Response {
    let status = StatusCode::from_u16(blocked.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json(status, &envelope(millis, false, None, Some(blocked.rest_body())));
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

fn millis(app: &App) -> u32 {
    app.control.controller.uptime.at(app.control.controller.now()).0
}

fn envelope<'a>(
    timestamp: u32,
    success: bool,
    data: Option<&'a RawValue>,
    error: Option<ErrorBody<'a>>,
) -> Envelope<'a> {
    Envelope { success, data, error, timestamp, version: VERSION }
}

/// An upload that brings nothing for so long is over.
const UPLOAD_IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// Checks what is uploaded, and lets the device keep it.
async fn upload(app: &App, pass: Permit, request: Request) -> Result<Value, CommandError> {
    let image = check(request.into_body()).await?;
    app.control.controller.run_on_device(pass, |device, now| device.accept_firmware(image, now)).await
}

async fn check(mut body: Body) -> Result<tenure_device::firmware::FirmwareInfo, Problem> {
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
pub(crate) async fn fallback(State(app): State<Arc<App>>, request: Request) -> Result<Response, HttpError> {
    let gateway = app.control.gateway.as_ref().ok_or_else(no_such_route)?;
    let caller = device_caller(&app, &request)?;
    Ok(forward(&app, gateway, &caller, request).await.unwrap_or_else(|error| failure(&app, &error)))
}

/// Sends a request on, if who speaks and the lease allow it.
async fn forward(
    app: &App,
    gateway: &Gateway,
    caller: &Caller,
    request: Request,
) -> Result<Response, CommandError> {
    let class = gateway.classify_request(&request);
    if class != CommandClass::Reads {
        require_control_permission(caller)?;
    }
    let permit = permit(app, class, request.headers())?;
    let client = match request.extensions().get() {
        Some(Peer::Network { address }) => *address,
        _ => None,
    };
    gateway.forward(permit, request, client).await
}

/// How long such a right lasts.
const LIFE: TickDuration = TickDuration::from_secs(300);

/// The right that is out, if one is.
#[derive(Default)]
pub(super) struct OtaToken(Mutex<Option<(TokenDigest, Tick)>>);

/// What whoever asked for it is told, once.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct IssuedOtaToken<'a> {
    token: &'a str,
    expires_in_ms: u64,
    header: &'a str,
}

/// What anybody is told of it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OtaTokenStatus {
    active: bool,
    expires_in_ms: u64,
}

pub(super) const HEADER: &str = "X-OTA-Token";

impl OtaToken {
    /// A new one. The one before is worth nothing from now on.
    pub(super) fn make(&self, now: Tick) -> Result<Zeroizing<String>, HttpError> {
        let token = new_token()?;
        *self.0.lock() = Some((TokenDigest::of(&token), now.saturating_add(LIFE)));
        Ok(token)
    }

    pub(super) fn issued_view(token: &str) -> IssuedOtaToken<'_> {
        IssuedOtaToken { token, expires_in_ms: LIFE.as_millis(), header: HEADER }
    }

    pub(super) fn status(&self, now: Tick) -> OtaTokenStatus {
        let remaining_ms = self.0.lock().as_ref().map_or(0, |(_, until)| until.since(now).as_millis());
        OtaTokenStatus { active: remaining_ms > 0, expires_in_ms: remaining_ms }
    }

    /// Uses it up, if this is the one.
    pub(super) fn redeem(&self, token: &str, now: Tick) -> bool {
        let mut out = self.0.lock();
        let is_this = out.as_ref().is_some_and(|(digest, until)| now < *until && digest.matches(token));
        if is_this {
            *out = None;
        }
        is_this
    }
}

#[cfg(test)]
mod tests {
    use tenure_control::rejection::{BLOCKED, ControlRejection, ControlRejectionCode};

    use super::*;

    fn locked() -> CommandError {
        let (code, owner_client_name) = (ControlRejectionCode::ControlLocked, "K1 Composer".to_owned());
        ControlRejection { code, message: BLOCKED, owner_client_name, remaining_ms: 1_820 }.into()
    }

    async fn text(response: Response) -> String {
        String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
    }

    // S0-71
    #[tokio::test]
    async fn a_request_blocked_after_admission_gets_the_same_response_as_one_blocked_before() {
        let expected = r#"{"success":false,"error":{"code":"CONTROL_LOCKED","message":"Command blocked by active control lease","ownerClientName":"K1 Composer","remainingMs":1820,"scope":"global","requiredHeader":"X-Control-Lease"},"timestamp":1208600,"version":"2.0"}"#;
        assert_eq!(text(failure_response_at(&locked(), 1_208_600)).await, expected);
        let gone = Problem::new(ProblemCode::Unavailable, "gone").into();
        assert_eq!(failure_response_at(&gone, 1).headers()[header::RETRY_AFTER], "1");
    }

    #[test]
    fn an_ota_token_is_redeemed_once_and_only_before_it_expires() {
        let (tokens, now) = (OtaToken::default(), Tick(7));
        let first = tokens.make(now).unwrap();
        let second = tokens.make(now).unwrap();
        assert!(!tokens.redeem(&first, now) && tokens.status(now).active);
        assert!(tokens.redeem(&second, now) && !tokens.redeem(&second, now) && !tokens.status(now).active);
        let third = tokens.make(now).unwrap();
        assert!(!tokens.redeem(&third, now.saturating_add(LIFE)));
    }
}
