//! The serial port, for people at a terminal: one command a line, one line of JSON for an answer.
//!
//! ```text
//! effects.setCurrent effectId=3
//! presets.save name="at night"
//! {"type":"parameters.set","requestId":"7","brightness":128}
//! status
//! help
//! ```
//!
//! A port can hold no lease. What it may send is what the matrix lets it send; all else does not exist here.

mod line_decoder;
#[cfg(test)]
mod tests;

pub use line_decoder::{LineDecoder, MAX_LINE_BYTES, SerialLine};
use serde::Serialize;
use serde_json::{Map, Value};
use tenure_control::commands::{COMMANDS, CommandDefinition, find_command};
use tenure_control::permission_matrix::{CommandSource, OwnershipStatus, PermissionVerdict, evaluate};
use tenure_control::problem::{Problem, ProblemCode};
use tenure_control::rejection::{CommandError, ErrorBody};

/// Short words for what people ask most.
const ALIASES: &[(&str, &str)] = &[("status", "device.status")];

#[derive(Debug, Clone)]
pub struct SerialConsoleCommand {
    /// What the answer carries, so that programs know what it belongs to.
    pub id: Option<String>,
    pub action: SerialAction,
}

#[derive(Debug, Clone)]
pub enum SerialAction {
    Help,
    Command {
        row: &'static CommandDefinition,
        /// Its fields, or what is wrong with them. The lease is asked before anybody looks: as everywhere, it answers
        /// first.
        fields: Result<Map<String, Value>, Problem>,
    },
}

/// A line that asks for nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedLine {
    /// What the answer carries, as far as it was understood.
    pub id: Option<String>,
    pub problem: Problem,
}

pub fn parse_line(line: &str) -> Result<SerialConsoleCommand, RejectedLine> {
    let line = line.trim_matches(' ');
    if line.starts_with('{') {
        return read_json(line);
    }
    let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
    let mut id = None;
    let fields = line_decoder::parse_fields(rest, &mut id);
    parse_command(name, id, fields)
}

fn read_json(line: &str) -> Result<SerialConsoleCommand, RejectedLine> {
    let unread = |id, problem| Err(RejectedLine { id, problem });
    let Ok(line_decoder::DuplicateCheckedObject { fields: mut all, duplicate: is_twice }) =
        serde_json::from_str(line)
    else {
        let message = "The line begins like JSON and is not one object; `help` shows what a line can be";
        return unread(None, Problem::new(ProblemCode::InvalidJson, message));
    };
    let (name, id) = (all.remove("type"), all.remove(line_decoder::REQUEST_ID));
    let id = match id {
        None => None,
        Some(Value::String(id)) => Some(id),
        Some(_) => return unread(None, not_text(line_decoder::REQUEST_ID)),
    };
    let fields = match is_twice {
        Some(field) => Err(line_decoder::duplicate_field(&field)),
        None => Ok(all),
    };
    match name {
        Some(Value::String(name)) => parse_command(&name, id, fields),
        Some(_) => unread(id, not_text("type")),
        None => {
            let problem = Problem::of_field(ProblemCode::MissingField, "type", "is missing: which command?");
            unread(id, problem)
        }
    }
}

fn parse_command(
    name: &str,
    id: Option<String>,
    fields: Result<Map<String, Value>, Problem>,
) -> Result<SerialConsoleCommand, RejectedLine> {
    if name == "help" || name == "?" {
        return Ok(SerialConsoleCommand { id, action: SerialAction::Help });
    }
    let name = ALIASES.iter().find(|(short, _)| *short == name).map_or(name, |(_, long)| long);
    let problem = match find_command(name) {
        Some(row) if is_for_serial(row) => {
            return Ok(SerialConsoleCommand { id, action: SerialAction::Command { row, fields } });
        }
        Some(row) => Problem::new(
            ProblemCode::Forbidden,
            format!(
                "{} cannot be sent over a serial port, which can hold no lease; use a WebSocket",
                row.name
            ),
        ),
        None => Problem::new(ProblemCode::UnknownCommand, "There is no such command; `help` lists all"),
    };
    Err(RejectedLine { id, problem })
}

fn not_text(field: &str) -> Problem {
    Problem::of_field(ProblemCode::InvalidType, field, "must be text")
}

/// Whether the matrix ever lets a serial port send this.
fn is_for_serial(row: &CommandDefinition) -> bool {
    evaluate(CommandSource::Serial, row.class, OwnershipStatus::Inactive) == PermissionVerdict::Allow
}

/// Every command that a serial port can send.
pub fn commands() -> impl Iterator<Item = &'static CommandDefinition> {
    COMMANDS.iter().filter(|row| is_for_serial(row))
}

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
    error: Option<ErrorBody<'a>>,
}

pub fn format_success(command: &str, id: Option<&str>, data: &Value) -> String {
    line(&SerialResponse { kind: command, id, success: true, data: Some(data), error: None })
}

pub fn format_error(id: Option<&str>, error: &CommandError) -> String {
    line(&SerialResponse { kind: "error", id, success: false, data: None, error: Some(error.body()) })
}

/// Which commands there are, and how a line is written.
pub fn format_help(id: Option<&str>) -> String {
    let commands: Map<_, _> = commands().map(|row| (row.name.to_owned(), Value::from(row.summary))).collect();
    let data = serde_json::json!({
        "line": "COMMAND FIELD=VALUE …, or the object that a WebSocket would send",
        "examples": ["status", "parameters.set brightness=128", "presets.save name=\"at night\""],
        "commands": commands,
    });
    format_success("help", id, &data)
}

fn line(answer: &SerialResponse<'_>) -> String {
    serde_json::to_string(answer).expect("names are text, so it has a form in JSON")
}
