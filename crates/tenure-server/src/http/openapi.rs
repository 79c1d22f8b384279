//! `GET /openapi.json`: the description of everything here. It is made from the code: each route's part of it stands beside
//! the route, and what all have in common is added in one place, here.

use std::sync::OnceLock;

use axum::body::Bytes;
use axum::http::{Method, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Map, Value, json};
use tenure_api::{Code, Problem, ServerEvent};
use tenure_control::ProblemCode;
use utoipa::OpenApi;

use super::auth::scopes_of;
use crate::{control, intents};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Tenure",
        description = "Leases on resources that need coordinated access, such as deployments, migrations, devices and files. \
                       Every error has a stable `code`."
    ),
    tags(
        (name = "leases", description = "Acquire, renew and release leases."),
        (name = "work", description = "Leases with a scope and a budget."),
        (name = "watching", description = "Inspect holders and waiters, and stream events."),
        (name = "agents", description = "Lease all resources of an agent's manifest at once."),
        (name = "intents", description = "Submit intents and follow their sessions."),
        (name = "worker", description = "Execute intents as the only worker."),
        (name = "control", description = "Control a device with one owner at a time."),
        (name = "tokens", description = "Manage API tokens."),
        (name = "service", description = "Health, metrics and this document."),
    ),
    components(schemas(Code, Problem, ServerEvent))
)]
struct ApiDescription;

/// The field in which a route names the codes of its own. It does not go out.
const CODES: &str = "x-codes";

/// Where in a response its codes are.
const CODES_OF_RESPONSE: &str = "/content/application~1problem+json/schema/allOf/1/properties/code/enum";

/// What any request may meet.
const COMMON_CODES: &[Code] =
    &[Code::ForeignOrigin, Code::ForeignHost, Code::Internal, Code::TooManyConnections];
/// What any request may meet that needs a token.
const TOKEN_CODES: &[Code] = &[Code::Unauthorized, Code::Forbidden];
/// What any request with a body may meet.
const BODY_CODES: &[Code] = &[Code::Invalid, Code::TooSlow, Code::TooLarge, Code::UnsupportedType];
/// What any request may meet that changes something.
const WRITE_CODES: &[Code] = &[
    Code::Busy,
    Code::TooLate,
    Code::Unavailable,
    Code::OutcomeUnknown,
    Code::NoSpace,
    Code::HeldBack,
    Code::Exhausted,
];

/// Get this OpenAPI document.
///
/// It contains no data of the server.
#[utoipa::path(
    get,
    path = "/openapi.json",
    tag = "service",
    responses((status = 200, description = "The OpenAPI document", content_type = "application/json", body = Object))
)]
pub(super) async fn openapi() -> Response {
    static TEXT: OnceLock<Bytes> = OnceLock::new();
    let text = TEXT.get_or_init(|| text().into()).clone();
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

/// The description as it goes out, and as it is kept in `docs/openapi.json`.
fn text() -> String {
    let (_, routes) = super::documented_routes().split_for_parts();
    let mut described = ApiDescription::openapi();
    described.merge(routes);
    let mut document = serde_json::to_value(&described).expect("a description is JSON");
    control::complete_description(&mut document);
    complete(&mut document);
    share_error_responses(&mut document);
    let mut text = serde_json::to_string_pretty(&document).expect("a description is JSON");
    text.push('\n');
    text
}

/// Adds what all routes have in common.
fn complete(document: &mut Value) {
    document["components"]["securitySchemes"] = json!({ "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "API token, or the token in admin.token. Not needed on the Unix socket, which identifies the user.",
    }});
    for (path, item) in fields(&mut document["paths"]) {
        for (method, operation) in fields(item) {
            complete_operation(&path, &method, operation);
        }
    }
    for (_, schema) in fields(&mut document["components"]["schemas"]) {
        tidy(schema);
    }
    // The one field that is there when it is nothing.
    document["components"]["schemas"]["LeasePage"]["properties"]["next"]["type"] = json!(["string", "null"]);
}

fn complete_operation(path: &str, method: &str, operation: &mut Value) {
    let method = Method::from_bytes(method.to_uppercase().as_bytes()).expect("utoipa knows methods");
    let mut codes: Vec<Code> = COMMON_CODES.to_vec();
    let scopes: Vec<_> = scopes_of(&method, path).iter().map(|scope| format!("`{scope}`")).collect();
    if !scopes.is_empty() {
        codes.extend(TOKEN_CODES);
        operation["security"] = json!([{ "bearer": [] }]);
        let description =
            operation["description"].as_str().map(|text| format!("{text}\n\n")).unwrap_or_default();
        operation["description"] = format!("{description}Requires scope {}.", scopes.join(" or ")).into();
    }
    if path.starts_with(intents::BELOW) {
        codes.push(Code::LanOnly);
    }
    let has_own_shape =
        operation.as_object_mut().and_then(|fields| fields.remove(control::OWN_SHAPE)).is_some();
    if operation.get("requestBody").is_some() && !has_own_shape {
        codes.extend(BODY_CODES);
    }
    if method != Method::GET && !has_own_shape {
        codes.extend(WRITE_CODES);
    }
    if let Some(Value::Array(own)) = operation.as_object_mut().and_then(|fields| fields.remove(CODES)) {
        codes.extend(own.iter().map(|name| named(name.as_str().unwrap_or_default())));
    }
    for code in Code::ALL.iter().filter(|code| codes.contains(code)) {
        add_problem(&mut operation["responses"][code.status().to_string()], *code);
    }
}

fn named(name: &str) -> Code {
    *Code::ALL.iter().find(|code| code.as_str() == name).unwrap_or_else(|| panic!("{name} is no code"))
}

/// Adds a code to the answers of its status.
fn add_problem(response: &mut Value, code: Code) {
    let line = format!("`{}`: {}", code.as_str(), code.title());
    let before = response["description"].as_str().map(|text| format!("{text}\n\n")).unwrap_or_default();
    response["description"] = format!("{before}{line}").into();
    let schema = &mut response["content"][Problem::MEDIA_TYPE]["schema"];
    if schema.is_null() {
        let own = json!({ "properties": { "code": { "enum": [] }, "status": { "const": code.status() } } });
        *schema = json!({ "allOf": [{ "$ref": "#/components/schemas/Problem" }, own] });
    }
    if let Some(names) = schema["allOf"][1]["properties"]["code"]["enum"].as_array_mut() {
        names.push(code.as_str().into());
    }
    if code.is_retryable() {
        let seconds =
            json!({ "description": "Delay before a retry, in seconds", "schema": { "type": "integer" } });
        response["headers"]["Retry-After"] = seconds;
    }
    if code == Code::Unauthorized {
        response["headers"]["WWW-Authenticate"] =
            json!({ "description": "The scheme `Bearer`", "schema": { "type": "string" } });
    }
}

/// Moves error responses into `components.responses`: many routes have the same ones.
fn share_error_responses(document: &mut Value) {
    let mut shared = Map::new();
    for (_, item) in fields(&mut document["paths"]) {
        for (_, operation) in fields(item) {
            let responses = fields(&mut operation["responses"]);
            for (_, response) in responses.filter(|(status, _)| status.starts_with(['4', '5'])) {
                let name = response_name(response);
                let reference = json!({ "$ref": format!("#/components/responses/{name}") });
                let response = std::mem::replace(response, reference);
                let known = shared.entry(&name).or_insert_with(|| response.clone());
                assert!(*known == response, "two different responses are called {name}");
            }
        }
    }
    for (name, response) in shared {
        document["components"]["responses"][name] = response;
    }
}

/// Names an error response after the codes that only some routes have, or else after one that many have.
fn response_name(response: &Value) -> String {
    let codes_at = |pointer| response.pointer(pointer).and_then(Value::as_array);
    let (prefix, codes) = match codes_at(control::CODES_OF_RESPONSE) {
        Some(codes) => ("Device", Some(codes)),
        None => ("", codes_at(CODES_OF_RESPONSE)),
    };
    let codes: Vec<_> = codes.into_iter().flatten().filter_map(Value::as_str).collect();
    let is_in = |code: &str, group: &[Code]| group.iter().any(|known| known.as_str() == code);
    let is_common = |code: &str| {
        let of_device = ProblemCode::ALL.iter().any(|known| known.as_str() == code);
        of_device
            || [COMMON_CODES, TOKEN_CODES, BODY_CODES, WRITE_CODES].iter().any(|group| is_in(code, group))
    };
    let mut naming: Vec<_> = codes.iter().filter(|code| !is_common(code)).collect();
    if naming.is_empty() {
        naming.extend(codes.iter().find(|code| !is_in(code, COMMON_CODES)).or(codes.first()));
    }
    let words = naming.iter().flat_map(|code| code.split('_'));
    words.fold(prefix.to_owned(), |name, word| name + &word[..1] + &word[1..].to_ascii_lowercase())
}

/// What is not there is left out, never `null`; and what is said to programmers of this server is not said to others.
fn tidy(schema: &mut Value) {
    if let Some(text) = schema["description"].as_str() {
        let description = text.split(" It has no `Debug`").next().unwrap_or_default().to_owned();
        schema["description"] = description.into();
    }
    let Some(properties) = schema.get_mut("properties") else { return };
    for (_, property) in fields(properties) {
        let types = property.get("type").and_then(Value::as_array);
        if let Some(only) = types.and_then(|types| types.iter().find(|name| *name != "null")) {
            property["type"] = only.clone();
        }
        let choices = property.get("oneOf").and_then(Value::as_array);
        let is_null = |alternative: &&Value| alternative.get("type").is_none_or(|name| name != "null");
        if let Some(only) = choices.and_then(|choices| choices.iter().find(is_null)) {
            *property = only.clone();
        }
    }
}

/// The fields of an object, with their names.
fn fields(object: &mut Value) -> impl Iterator<Item = (String, &mut Value)> {
    object.as_object_mut().into_iter().flat_map(Map::iter_mut).map(|(name, value)| (name.clone(), value))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// `cargo xtask openapi --write` sets this.
    const WRITE: &str = "TENURE_WRITE_OPENAPI";

    #[test]
    fn the_openapi_file_in_docs_is_up_to_date() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
        if std::env::var_os(WRITE).is_some() {
            std::fs::write(&path, text()).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            kept == text(),
            "docs/openapi.json is not what the code says; run `cargo xtask openapi --write`"
        );
    }

    fn document() -> Value {
        serde_json::from_str(&text()).unwrap()
    }

    #[test]
    fn the_described_routes_are_the_served_routes() {
        let document = document();
        let mut described = Vec::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            described.extend(
                item.as_object().unwrap().keys().map(|method| format!("{} {path}", method.to_uppercase())),
            );
        }
        let mut served: Vec<_> =
            crate::http::auth::routes().map(|(method, path)| format!("{method} {path}")).collect();
        described.sort();
        served.sort();
        assert_eq!(described, served);
    }

    #[test]
    fn every_operation_documents_its_responses_and_security() {
        let document = document();
        assert!(document["openapi"].as_str().unwrap().starts_with("3.1"), "{}", document["openapi"]);
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                let place = format!("{method} {path}");
                assert!(operation["summary"].is_string(), "{place} has no summary");
                assert!(operation["operationId"].is_string() && operation["tags"].is_array(), "{place}");
                assert!(operation.get(CODES).is_none(), "{place}");
                let responses = operation["responses"].as_object().unwrap();
                assert!(responses.contains_key("421") && responses.contains_key("500"), "{place}");
                assert_eq!(responses.contains_key("401"), operation.get("security").is_some(), "{place}");
                for (status, response) in responses {
                    let shared = response["$ref"].as_str().map(|name| document.pointer(&name[1..]).unwrap());
                    let response = shared.unwrap_or(response);
                    assert!(response["description"].is_string(), "{place} {status}");
                    let problem = &response["content"][Problem::MEDIA_TYPE];
                    // The device has a shape of its own for what goes wrong with it.
                    let of_device = &response["content"]["application/json"]["schema"]["allOf"];
                    let is_success = status.starts_with('2') || status == "101";
                    let is_refused = problem.is_object() || of_device.is_array();
                    assert_eq!(is_refused, !is_success, "{place} {status}");
                }
            }
        }
    }
}
