//! The commands of the device under their addresses. The order is always the same: who speaks, the lease, the body.

pub(super) mod envelope;
pub(super) mod openapi;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{MatchedPath, RawPathParams, Request, State};
use axum::http::{HeaderMap, Method};
use axum::response::Response;
use axum::routing::{MethodFilter, MethodRouter, on};
use serde_json::{Map, Value};
use tenure_control::commands::{self, CommandDefinition};
use tenure_control::{COMMANDS, CommandClass, ControlRejection, Permit, Problem, ProblemCode};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::envelope::{answer, failure};
use super::message::{CommandError, to_raw_json};
use super::ota_token::{self, OtaToken};
use super::{authentication, lease_commands, websocket};
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::{body, json};

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
        return envelope::forward(&app, gateway, &caller, request).await;
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
    match obey(&app, &caller, row, fields, request).await {
        Ok(data) => answer(&app.control.controller, &data),
        Err(blocked) => failure(&app.control.controller, &blocked),
    }
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
        && header(request.headers(), ota_token::HEADER)
            .is_some_and(|token| app.control.ota_token.redeem(token, app.control.controller.now()));
    if row.may_change && !shows_right {
        lease_commands::require_control_permission(caller)?;
    }
    let pass = permit(app, row.class, request.headers())?;
    let mut fields = fields?;
    match row.name {
        "control.status" => Ok(lease_commands::status(app)),
        "auth.status" => Ok(to_raw_json(&authentication::status(caller))),
        "ota.token" => {
            let token = app.control.ota_token.make(app.control.controller.now())?;
            Ok(to_raw_json(&OtaToken::issued_view(&token)))
        }
        "ota.tokens" => Ok(to_raw_json(&app.control.ota_token.status(app.control.controller.now()))),
        "ota.upload" => Ok(to_raw_json(&envelope::upload(app, pass, request).await?)),
        name => {
            for (field, value) in read(request).await? {
                if fields.contains_key(&field) {
                    let twice =
                        Problem::of_field(ProblemCode::UnknownField, &field, "is in the address already");
                    return Err(twice.into());
                }
                fields.insert(field, value);
            }
            Ok(to_raw_json(&app.control.controller.execute(pass, name, fields).await?))
        }
    }
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
async fn read(request: Request) -> Result<Map<String, Value>, Problem> {
    let is_json = body::is_json(request.headers());
    let bytes = body::bytes(request.into_body()).await.map_err(problem_of)?;
    if bytes.is_empty() {
        return Ok(Map::new());
    }
    if !is_json {
        let detail = "send JSON, with `Content-Type: application/json`";
        return Err(Problem::new(ProblemCode::InvalidType, detail));
    }
    match json::parse(&bytes) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(Problem::new(ProblemCode::InvalidJson, "the body must be a JSON object")),
        Err(error) => Err(Problem::new(
            ProblemCode::InvalidJson,
            format!("the body is not JSON as we read it: {error}"),
        )),
    }
}

/// What is wrong with a body that could not be read.
fn problem_of(failure: crate::http::response::HttpError) -> Problem {
    let code = match failure.0.code {
        tenure_api::Code::TooLarge => ProblemCode::TooLarge,
        _ => ProblemCode::InvalidJson,
    };
    Problem::new(code, failure.0.detail)
}
