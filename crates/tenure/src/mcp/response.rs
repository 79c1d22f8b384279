//! What a model is told: a text that says what to do next, and the same as data for programs.

use std::fmt::Write as _;

use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tenure_api::{AgentLease, AgentWait, Code, Problem};
use tenure_client::Error;

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

/// Why a tool did not do what it was called for.
#[derive(Debug)]
pub struct ToolError {
    response: ToolResponse,
    code: Option<Code>,
    priority: Option<u64>,
}

impl ToolError {
    pub fn invalid_argument(what: &str) -> Self {
        Self::new(Code::Invalid.as_str(), what, "Call the tool again with arguments as its schema says.")
    }

    /// What was found wrong in the arguments, or in the one of this name, without the values: one may be a secret.
    pub fn unreadable_argument(error: &serde_json::Error, name: Option<&str>) -> Self {
        let text = error.to_string();
        // `invalid type: string "…", expected u64`: what was expected is all that helps.
        let names_a_field = text.starts_with("unknown field") || text.starts_with("missing field");
        let name = name.map_or_else(|| "an argument".to_owned(), |name| format!("`{name}`"));
        let what = match text.split_once(", expected ") {
            _ if names_a_field => text,
            Some((_, expected)) => format!("{name} is not as it should be: expected {expected}"),
            None => format!("{name} is not as it should be"),
        };
        Self::invalid_argument(&what)
    }

    /// `what` happened; `remedy` says what to do.
    pub fn new(code: &str, what: &str, remedy: &str) -> Self {
        let response =
            ToolResponse::with_data(&json!({"error": {"code": code, "detail": what, "remedy": remedy}}))
                .line(&format!("{what} ({code})"))
                .line(&format!("What to do: {remedy}"))
                .with_error();
        Self { response, code: None, priority: None }
    }

    /// The code, if the Tenure server said no.
    pub fn code(&self) -> Option<Code> {
        self.code
    }

    /// The priority that the agent has, where that was the reason.
    pub fn agent_priority(&self) -> Option<u64> {
        self.priority
    }

    #[cfg(test)]
    pub fn text(&self) -> &str {
        self.response.text()
    }

    pub fn into_response(self) -> ToolResponse {
        self.response
    }
}

impl From<Error> for ToolError {
    fn from(error: Error) -> Self {
        match &error {
            Error::Problem(problem) => of_problem(problem),
            Error::Unreachable { .. } => Self::new(
                "UNREACHABLE",
                &error.to_string(),
                "You hold nothing new: do not edit. Ask your user to start the server with `tenure serve`, or to set \
                 TENURE_URL and TENURE_TOKEN for `tenure mcp`; then call this tool again.",
            ),
            Error::OutcomeUnknown { .. } => Self::new(
                "OUTCOME_UNKNOWN",
                &error.to_string(),
                "Call this tool again with the same arguments: that is safe, and says what is true. Do not edit before.",
            ),
            _ => Self::new(
                "PROTOCOL",
                &error.to_string(),
                "Do not edit. Ask your user which server TENURE_URL names, and whether it is as new as this program.",
            ),
        }
    }
}

fn of_problem(problem: &Problem) -> ToolError {
    let code = problem.code;
    let detail = if problem.detail.is_empty() { &problem.title } else { &problem.detail };
    let mut refused = ToolError::new(code.as_str(), detail, &remedy(code));
    let mut more = Map::new();
    if let Some(seconds) = code.retry_after_seconds() {
        more.insert("retryAfterMs".into(), (u64::from(seconds) * 1_000).into());
    }
    if let Some(priority) = problem.priority_timestamp {
        more.insert("priority_timestamp".into(), priority.into());
    }
    if let Some(outside) = &problem.outside {
        more.insert("outside".into(), json!(outside));
        let lines = outside.iter().map(|touched| format!("- {} ({})", touched.resource, touched.predicate));
        refused.response = refused.response.line("Outside of your leases:").lines(lines);
    }
    for (name, value) in more {
        refused.response = refused.response.field(&name, value);
    }
    refused.code = Some(code);
    refused.priority = problem.priority_timestamp;
    refused
}

fn remedy(code: Code) -> String {
    let text = match code {
        Code::Invalid | Code::TooLarge => "Call the tool again with arguments as its schema says.",
        Code::TtlOutOfRange => "Call `declare` again with another `ttl_seconds`, or without it.",
        Code::Unauthorized => {
            "Ask your user for a valid token: it belongs into TENURE_TOKEN of `tenure mcp`, or into the Authorization \
             header where it is reached over HTTP. Do not edit before."
        }
        Code::Forbidden => {
            "Ask your user for a token with the scopes leases:read and leases:write for these resources. Do not edit \
             before."
        }
        Code::HolderTaken => "Another user's agent has this agent_id. Choose another, and keep it.",
        Code::PriorityFixed => {
            "Call `declare` again without `priority_timestamp`: what you have keeps its age until all of it is released."
        }
        Code::LeaseTimeUsed => {
            "You have held leases for as long as one attempt may. Stop editing, call `report` with the state ABORTED, then \
             `declare` again what you still need: you come back as a younger agent."
        }
        Code::ScopeViolation => {
            "Stop. Undo what you changed there, or call `declare` for it and go on only when it is GRANTED."
        }
        Code::DigestStale => "Forget what you remember: call `status`, then `declare` what you need.",
        Code::QuotaExceeded => "Release what you no longer need, then call `declare` again.",
        Code::NotFound => "Nothing is known under this name: look at its spelling, or `declare` first.",
        Code::Expired => "It is no longer yours: stop touching it, and `declare` it again.",
        code => {
            let again = match code.retry_after_seconds() {
                Some(seconds) => format!("call this tool again after {seconds} s"),
                None => "tell your user".to_owned(),
            };
            return format!("You hold nothing new: do not edit. Then {again}.");
        }
    };
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn every_error_code_has_a_remedy() {
        for code in Code::ALL {
            let refused = ToolError::from(Error::Problem(Box::new(Problem::new(*code, "this happened"))));
            let text = refused.text().to_owned();
            assert!(text.contains("this happened") && text.contains(code.as_str()), "{text}");
            assert!(text.contains("What to do: "), "{text}");
            let result = refused.into_response().into_result();
            assert_eq!(result.is_error, Some(true));
            assert_eq!(result.structured_content.unwrap()["error"]["code"], code.as_str());
        }
    }

    #[test]
    fn unreachable_server_error_says_how_to_start_one() {
        let source = io::Error::from(io::ErrorKind::ConnectionRefused);
        let refused = ToolError::from(Error::Unreachable { address: "unix:/nowhere".into(), source });
        assert!(
            refused.text().contains("tenure serve") && refused.text().contains("do not edit"),
            "{}",
            refused.text()
        );
    }

    #[test]
    fn argument_error_does_not_repeat_the_value() {
        let error = serde_json::from_value::<u64>(json!("hunter2")).unwrap_err();
        let refused = ToolError::unreadable_argument(&error, Some("ttl_seconds"));
        assert!(refused.text().contains("`ttl_seconds` is not as it should be: expected u64"));
        assert!(!refused.text().contains("hunter2"), "{}", refused.text());
    }
}
