//! Switches in an agent's settings by which a person turns hooks off. Ours are silent then too.

use serde_json::Value;

use crate::agent::Agent;

/// What Gemini CLI calls our hooks: by this name a person can switch them off.
pub const GEMINI_NAME: &str = "tenure";

/// The switch in these settings, if there is one, that turns ours off.
pub fn switched_off(agent: Agent, text: &str) -> Option<&'static str> {
    switches(agent, text).into_iter().find(|(_, is_off)| *is_off).map(|(name, _)| name)
}

/// The switches that these settings set, and whether each turns our hooks off. A list of what is off says it only where it names
/// ours: lists of several files add up.
pub fn switches(agent: Agent, text: &str) -> Vec<(&'static str, bool)> {
    let known: &[(&str, &str, bool)] = match agent {
        Agent::Claude => &[("/disableAllHooks", "disableAllHooks", true)],
        Agent::Gemini => &[
            ("/hooksConfig/enabled", "hooksConfig.enabled", false),
            ("/hooks/enabled", "hooks.enabled", false),
            ("/tools/enableHooks", "tools.enableHooks", false),
        ],
        Agent::Codex | Agent::Cursor | Agent::OpenCode => &[],
    };
    let Ok(settings) = serde_json::from_str::<Value>(text) else { return Vec::new() };
    let said = |pointer: &str| settings.pointer(pointer).and_then(Value::as_bool);
    let mut found: Vec<_> =
        known.iter().filter_map(|(pointer, name, off)| Some((*name, said(pointer)? == *off))).collect();
    if agent == Agent::Gemini {
        let lists =
            [("/hooksConfig/disabled", "hooksConfig.disabled"), ("/hooks/disabled", "hooks.disabled")];
        let names_ours = |pointer| {
            let names = settings.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
            names.filter_map(Value::as_str).any(|name| name == GEMINI_NAME)
        };
        found.extend(lists.into_iter().filter(|(list, _)| names_ours(list)).map(|(_, name)| (name, true)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_is_known_by_its_value_and_a_list_by_our_name_in_it() {
        for (agent, text, off) in [
            (Agent::Claude, r#"{"disableAllHooks": true}"#, Some("disableAllHooks")),
            (Agent::Claude, r#"{"disableAllHooks": false}"#, None),
            (Agent::Gemini, r#"{"hooksConfig": {"enabled": false}}"#, Some("hooksConfig.enabled")),
            (Agent::Gemini, r#"{"hooksConfig": {"disabled": ["tenure"]}}"#, Some("hooksConfig.disabled")),
            (Agent::Gemini, r#"{"hooksConfig": {"disabled": ["tenures", 7]}}"#, None),
            (Agent::Gemini, r#"{"hooks": {"disabled": ["a", "tenure"]}}"#, Some("hooks.disabled")),
            (Agent::Codex, r#"{"hooks": {"disabled": ["tenure"]}}"#, None),
            (Agent::Claude, "{", None),
        ] {
            assert_eq!(switched_off(agent, text), off, "{text}");
        }
    }
}
