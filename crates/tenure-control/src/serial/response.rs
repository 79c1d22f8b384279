//! What the port is told: one line of JSON, in the shapes that a WebSocket is told.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::problem::Problem;
use crate::rejection::{ControlRejection, ControlRejectionBody};

/// Fields in the order in which clients are shown them.
#[derive(Serialize)]
struct SerialResponse<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(rename = "requestId", skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ResponseError<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ResponseError<'a> {
    Rejection(ControlRejectionBody<'a>),
    Problem {
        code: &'a str,
        message: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        field: Option<&'a str>,
    },
}

pub fn format_success(command: &str, id: Option<&str>, data: &Value) -> String {
    line(&SerialResponse { kind: command, id, success: true, data: Some(data), error: None })
}

/// The lease keeps a command out.
pub fn format_rejection(id: Option<&str>, rejection: &ControlRejection) -> String {
    error(id, ResponseError::Rejection(rejection.websocket_body()))
}

/// A line makes no sense, or the device cannot do what it says.
pub fn format_problem(id: Option<&str>, problem: &Problem) -> String {
    let Problem { code, message, field } = problem;
    error(id, ResponseError::Problem { code: code.as_str(), message, field: field.as_deref() })
}

/// Which commands there are, and how a line is written.
pub fn format_help(id: Option<&str>) -> String {
    let commands: Map<_, _> =
        super::commands().map(|row| (row.name.to_owned(), Value::from(row.summary))).collect();
    let data = serde_json::json!({
        "line": "COMMAND FIELD=VALUE …, or the object that a WebSocket would send",
        "examples": ["status", "parameters.set brightness=128", "presets.save name=\"at night\""],
        "commands": commands,
    });
    format_success("help", id, &data)
}

fn error(id: Option<&str>, reason: ResponseError<'_>) -> String {
    line(&SerialResponse { kind: "error", id, success: false, data: None, error: Some(reason) })
}

fn line(answer: &SerialResponse<'_>) -> String {
    serde_json::to_string(answer).expect("names are text, so it has a form in JSON")
}
