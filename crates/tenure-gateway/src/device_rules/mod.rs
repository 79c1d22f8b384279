//! Device rules: which requests and messages move the device.
//!
//! ```text
//! request_rule  a row of the table, for HTTP requests and for WebSocket messages
//! wled.rules    the table for WLED, which ships with Tenure
//! ```
//!
//! **Unknown means mutates.** A row can only declare something harmless. What is spelt in an unusual way (percent-encoded,
//! with empty or dotted segments, in other letters, with parameters that no row has) matches no row, even if the device
//! would accept it.

pub mod request_rule;
#[cfg(test)]
mod tests;

use std::fmt;

pub use request_rule::{DeviceMessage, RequestHead, is_for_tenure};
use request_rule::{MessageRule, RequestRule};
use tenure_control::permission_matrix::CommandClass;

/// The most bytes of a table: whoever names another file by mistake hears of it, and waits for nothing.
pub const MAX_TABLE_BYTES: usize = 256 << 10;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rules {
    requests: Vec<RequestRule>,
    messages: Vec<MessageRule>,
}

/// A line that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulesError {
    /// Which one, from 1.
    pub line: usize,
    /// What is wrong with it, and what would be right.
    pub reason: String,
}

impl fmt::Display for RulesError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}: {}", self.line, self.reason)
    }
}

impl std::error::Error for RulesError {}

impl Rules {
    /// Reads a table. A line that is not understood is refused: it was written to say something.
    pub fn parse(text: &str) -> Result<Self, RulesError> {
        if text.len() > MAX_TABLE_BYTES {
            let reason = format!("a table has at most {MAX_TABLE_BYTES} bytes");
            return Err(RulesError { line: 1, reason });
        }
        let mut rules = Self::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                rules.add(line).map_err(|reason| RulesError { line: index + 1, reason })?;
            }
        }
        Ok(rules)
    }

    pub fn wled() -> Self {
        Self::parse(TABLE).expect("a test reads the table that ships")
    }

    fn add(&mut self, line: &str) -> Result<(), String> {
        let (class, rest) = word(line);
        let (how, what) = word(rest);
        let class = match class {
            "reads" => CommandClass::Reads,
            "mutates" => CommandClass::Mutates,
            "exempt" => CommandClass::Exempt,
            other => {
                return Err(format!("`{other}` is no class; a line begins with reads, mutates or exempt"));
            }
        };
        match how {
            "" => {
                return Err(
                    "has a class and nothing else; after it comes GET, another method, TEXT or BINARY".into(),
                );
            }
            "TEXT" | "BINARY" => self.messages.push(MessageRule::parse(class, how, what)?),
            methods => self.requests.push(RequestRule::parse(class, methods, what)?),
        }
        Ok(())
    }

    /// What a request does to the device.
    pub fn classify_request(&self, request: &RequestHead<'_>) -> CommandClass {
        strictest(self.requests.iter().filter(|row| row.matches(request)).map(|row| row.class))
    }

    /// What a message does to the device.
    pub fn classify_message(&self, message: DeviceMessage<'_>) -> CommandClass {
        strictest(self.messages.iter().filter(|row| row.matches(message)).map(|row| row.class))
    }

    /// How many lines there are about requests, and about messages.
    pub fn rule_counts(&self) -> (usize, usize) {
        (self.requests.len(), self.messages.len())
    }
}

/// Whatever no line is about mutates. Between lines that differ the strict one counts, wherever it stands: a table is
/// no program.
fn strictest(classes: impl Iterator<Item = CommandClass>) -> CommandClass {
    let severity = |class: &CommandClass| match class {
        CommandClass::Mutates | CommandClass::Streams => 2,
        CommandClass::Reads => 1,
        CommandClass::Exempt => 0,
    };
    classes.max_by_key(severity).unwrap_or(CommandClass::Mutates)
}

fn word(line: &str) -> (&str, &str) {
    let line = line.trim_start();
    let end = line.find(char::is_whitespace).unwrap_or(line.len());
    (&line[..end], line[end..].trim())
}

/// What `[control.gateway] rules` calls it.
pub const NAME: &str = "wled";

pub const TABLE: &str = include_str!("wled.rules");
