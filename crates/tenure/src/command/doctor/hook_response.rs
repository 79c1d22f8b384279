//! Whether an agent would go on after what its hook said.

use serde_json::Value;
use tenure_gate::coding_agent::CodingAgent;

use super::fake_agent::CommandOutput;

/// Whether the agent would make the change.
pub fn is_allowed(agent: CodingAgent, response: &CommandOutput) -> bool {
    if response.code != Some(0) {
        return false;
    }
    let text = response.output.trim();
    let answer: Value = match serde_json::from_str(text) {
        Ok(answer) => answer,
        Err(_) if text.is_empty() => Value::Null,
        // Text is not understood, and what is not understood is no denial.
        Err(_) => return agent != CodingAgent::Cursor,
    };
    let word = |pointer: &str| answer.pointer(pointer).and_then(Value::as_str);
    let is_denied = word("/hookSpecificOutput/permissionDecision") == Some("deny")
        || matches!(word("/decision"), Some("deny" | "block"))
        || word("/permission") == Some("deny");
    // Cursor's hooks fail closed: they must say it.
    !is_denied && (agent != CodingAgent::Cursor || word("/permission") == Some("allow"))
}

/// What the hook said itself: why not, else whatever there is.
pub fn describe_response(response: &CommandOutput) -> String {
    let answer: Value = serde_json::from_str(response.output.trim()).unwrap_or_default();
    let places = ["/hookSpecificOutput/permissionDecisionReason", "/reason", "/agent_message", "/thrown"];
    let reason = places.iter().find_map(|place| answer.pointer(place)?.as_str());
    let text = [reason.unwrap_or_default(), &response.errors, &response.output];
    let text = text.into_iter().map(str::trim).find(|text| !text.is_empty());
    let ended = match response.code {
        Some(0) => String::new(),
        Some(code) => format!(" (exit code {code})"),
        None => " (it did not end by itself)".to_owned(),
    };
    let text = text.unwrap_or("it said nothing").split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{}{ended}", text.chars().take(400).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(code: i32, output: &str, errors: &str) -> CommandOutput {
        CommandOutput { code: Some(code), output: output.to_owned(), errors: errors.to_owned() }
    }

    #[test]
    fn edit_is_allowed_unless_the_response_denies_it() {
        for output in ["", r#"{"systemMessage":"mind"}"#, r#"{"decision":"allow"}"#, "text"] {
            assert!(is_allowed(CodingAgent::Claude, &response(0, output, "")), "{output}");
        }
        for output in [
            r#"{"hookSpecificOutput":{"permissionDecision":"deny"}}"#,
            r#"{"decision":"deny"}"#,
            r#"{"decision":"block"}"#,
            r#"{"permission":"deny"}"#,
        ] {
            assert!(!is_allowed(CodingAgent::Claude, &response(0, output, "")), "{output}");
        }
        assert!(!is_allowed(CodingAgent::Claude, &response(2, "", "no")));
        assert!(
            !is_allowed(CodingAgent::Cursor, &response(0, "", ""))
                && !is_allowed(CodingAgent::Cursor, &response(0, "{}", ""))
        );
        assert!(is_allowed(CodingAgent::Cursor, &response(0, r#"{"permission":"allow"}"#, "")));
    }

    #[test]
    fn denial_reason_is_shown_if_the_hook_gave_one() {
        let denial =
            r#"{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"held"}}"#;
        assert_eq!(describe_response(&response(0, denial, "noise")), "held");
        assert_eq!(
            describe_response(&response(127, "", "sh: 1: x: not\n found\n")),
            "sh: 1: x: not found (exit code 127)"
        );
        assert_eq!(describe_response(&response(0, "", "")), "it said nothing");
    }
}
