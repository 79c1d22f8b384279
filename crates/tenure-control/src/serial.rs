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

mod answer;
mod line;
mod words;

pub use answer::{done, help, refused, wrong};
pub use line::{LONGEST, Line, Lines};

use serde_json::{Map, Value};

use crate::matrix::{Source, Standing, Verdict, judge};
use crate::problem::{Problem, ProblemCode};
use crate::table::{COMMANDS, CommandRow, command};

/// Short words for what people ask most.
const SHORT: &[(&str, &str)] = &[("status", "device.status")];

#[derive(Debug, Clone)]
pub struct Request {
    /// What the answer carries, so that programs know what it belongs to.
    pub id: Option<String>,
    pub wish: Wish,
}

#[derive(Debug, Clone)]
pub enum Wish {
    Help,
    Command {
        row: &'static CommandRow,
        /// Its fields, or what is wrong with them. The lease is asked before anybody looks: as everywhere, it answers
        /// first.
        fields: Result<Map<String, Value>, Problem>,
    },
}

/// A line that asks for nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// What the answer carries, as far as it was understood.
    pub id: Option<String>,
    pub problem: Problem,
}

pub fn read(line: &str) -> Result<Request, Unread> {
    let line = line.trim_matches(' ');
    if line.starts_with('{') {
        return read_json(line);
    }
    let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
    let mut id = None;
    let fields = words::fields(rest, &mut id);
    request(name, id, fields)
}

fn read_json(line: &str) -> Result<Request, Unread> {
    let unread = |id, problem| Err(Unread { id, problem });
    let Ok(words::Object { fields: mut all, is_twice }) = serde_json::from_str(line) else {
        let message = "The line begins like JSON and is not one object; `help` shows what a line can be";
        return unread(None, Problem::new(ProblemCode::InvalidJson, message));
    };
    let (name, id) = (all.remove("type"), all.remove(words::REQUEST_ID));
    let id = match id {
        None => None,
        Some(Value::String(id)) => Some(id),
        Some(_) => return unread(None, not_text(words::REQUEST_ID)),
    };
    let fields = match is_twice {
        Some(field) => Err(words::twice(&field)),
        None => Ok(all),
    };
    match name {
        Some(Value::String(name)) => request(&name, id, fields),
        Some(_) => unread(id, not_text("type")),
        None => {
            let problem = Problem::of_field(ProblemCode::MissingField, "type", "is missing: which command?");
            unread(id, problem)
        }
    }
}

fn request(
    name: &str,
    id: Option<String>,
    fields: Result<Map<String, Value>, Problem>,
) -> Result<Request, Unread> {
    if name == "help" || name == "?" {
        return Ok(Request { id, wish: Wish::Help });
    }
    let name = SHORT.iter().find(|(short, _)| *short == name).map_or(name, |(_, long)| long);
    let problem = match command(name) {
        Some(row) if is_for_serial(row) => return Ok(Request { id, wish: Wish::Command { row, fields } }),
        Some(row) => Problem::new(
            ProblemCode::Forbidden,
            format!(
                "{} cannot be sent over a serial port, which can hold no lease; use a WebSocket",
                row.name
            ),
        ),
        None => Problem::new(ProblemCode::UnknownCommand, "There is no such command; `help` lists all"),
    };
    Err(Unread { id, problem })
}

fn not_text(field: &str) -> Problem {
    Problem::of_field(ProblemCode::InvalidType, field, "must be text")
}

/// Whether the matrix ever lets a serial port send this.
fn is_for_serial(row: &CommandRow) -> bool {
    judge(Source::Serial, row.class, Standing::Inactive) == Verdict::Allow
}

/// Every command that a serial port can send.
pub fn commands() -> impl Iterator<Item = &'static CommandRow> {
    COMMANDS.iter().filter(|row| is_for_serial(row))
}

#[cfg(test)]
mod tests;
