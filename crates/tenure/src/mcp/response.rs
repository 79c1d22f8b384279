//! What a model is told: a text that says what to do next, and the same as data for programs.

use std::fmt::Write as _;

use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;
use serde_json::Value;
use tenure_api::{AgentLease, AgentWait};

use crate::duration::format_short;

#[derive(Debug, Default)]
pub struct ToolResponse {
    text: String,
    data: Value,
    is_error: bool,
}

impl ToolResponse {
    pub fn with_data(data: &impl Serialize) -> Self {
        let data = serde_json::to_value(data).unwrap_or_default();
        Self { data, ..Self::default() }
    }

    #[must_use]
    pub fn line(mut self, line: &str) -> Self {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(line);
        self
    }

    #[must_use]
    pub fn lines(self, lines: impl IntoIterator<Item = String>) -> Self {
        lines.into_iter().fold(self, |response, line| response.line(&line))
    }

    /// One more field of the data.
    #[must_use]
    pub fn field(mut self, name: &str, value: impl Into<Value>) -> Self {
        if let Value::Object(fields) = &mut self.data {
            fields.insert(name.to_owned(), value.into());
        }
        self
    }

    /// The model is to see that this did not go well.
    #[must_use]
    pub fn with_error(mut self) -> Self {
        self.is_error = true;
        self
    }

    #[cfg(test)]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// As it goes over the wire.
    pub fn into_result(self) -> CallToolResult {
        let content = vec![ContentBlock::text(self.text)];
        let mut result =
            if self.is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
        result.structured_content = Some(self.data);
        result
    }
}

pub fn lease_line(lease: &AgentLease) -> String {
    let AgentLease { id, resource, predicate, remaining_ms, expires_at, .. } = lease;
    format!(
        "- {resource} ({predicate}): lease {id}, {} left, until {expires_at}",
        format_short(*remaining_ms)
    )
}

pub fn wait_line(wait: &AgentWait) -> String {
    let mut line = "- ".to_owned();
    for (number, request) in wait.wants.iter().enumerate() {
        let comma = if number == 0 { "" } else { ", " };
        write!(line, "{comma}{} ({})", request.resource, request.predicate).expect("writing into a string");
    }
    write!(line, ": until {}, in the way: {}", wait.wait_until, format_names(&wait.blocked_by))
        .expect("writing into a string");
    line
}

pub fn format_names(names: &[String]) -> String {
    if names.is_empty() { "nobody".to_owned() } else { names.join(", ") }
}

/// Whole seconds, never less than said: who comes too early is only told to wait again.
pub fn seconds(milliseconds: u64) -> u64 {
    milliseconds.div_ceil(1_000).max(1)
}

/// How often to send a heartbeat, in milliseconds: a third of the shortest lease's time.
pub fn heartbeat_interval<'a>(leases: impl IntoIterator<Item = &'a AgentLease>) -> Option<u64> {
    leases.into_iter().map(|lease| lease.ttl / 3).min()
}
