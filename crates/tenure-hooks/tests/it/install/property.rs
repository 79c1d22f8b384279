//! Over all settings that anybody could have: installing and uninstalling is as if nothing had been.

use proptest::prelude::*;
use serde_json::{Map, Value};
use tenure_hooks::install::InstallTarget;
use tenure_host::coding_agent::CodingAgent;

use crate::install::support::TestProject;

const AGENTS: [(CodingAgent, &str); 4] = [
    (CodingAgent::Claude, ".claude/settings.json"),
    (CodingAgent::Codex, ".codex/hooks.json"),
    (CodingAgent::Gemini, ".gemini/settings.json"),
    (CodingAgent::Cursor, ".cursor/hooks.json"),
];

/// Any JSON value, small.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |element| {
        prop_oneof![
            prop::collection::vec(element.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key(), element, 0..4)
                .prop_map(|members| members.into_iter().collect()),
        ]
    })
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z\"\\\\{}\\[\\]:, é]{0,6}", Just("command".to_owned()), Just("matcher".to_owned())]
}

/// Somebody's hooks: arrays of groups or of anything else.
fn any_hooks() -> impl Strategy<Value = Value> {
    let event = prop::sample::select(vec!["PreToolUse", "Stop", "BeforeTool", "preToolUse", "stop", "Other"]);
    let run =
        prop::sample::select(vec!["x", "other hook claude", "tenure", "/x/tenure hook", "tenure hook git"])
            .prop_map(|command| serde_json::json!({"type": "command", "command": command}));
    let group = prop_oneof![
        prop::collection::vec(run.clone(), 0..3).prop_map(|runs| serde_json::json!({"hooks": runs})),
        run,
        any_value(),
    ];
    let entries = prop::collection::vec(group, 0..3).prop_map(Value::from);
    prop::collection::btree_map(event.prop_map(str::to_owned), entries, 0..4)
        .prop_map(|events| events.into_iter().collect())
}

/// Somebody's variables, and perhaps a shell among them.
fn any_variables() -> impl Strategy<Value = Value> {
    let name = prop_oneof![key(), Just("CLAUDE_CODE_SHELL".to_owned())];
    let value = prop_oneof![".{0,8}".prop_map(Value::from), Just(Value::from("/bin/zsh")), any_value()];
    prop::collection::btree_map(name, value, 0..4).prop_map(|variables| variables.into_iter().collect())
}

fn any_settings() -> impl Strategy<Value = Value> {
    let other = prop::collection::btree_map(key(), any_value(), 0..4);
    let hooks = prop::option::of(any_hooks());
    let variables = prop::option::of(any_variables());
    (other, hooks, variables, prop::option::of(0_u64..3)).prop_map(|(other, hooks, variables, version)| {
        let mut settings: Map<String, Value> = other.into_iter().filter(|(key, _)| key != "hooks").collect();
        settings.extend(hooks.map(|hooks| ("hooks".to_owned(), hooks)));
        settings.extend(variables.map(|variables| ("env".to_owned(), variables)));
        settings.extend(version.map(|version| ("version".to_owned(), version.into())));
        Value::Object(settings)
    })
}

/// As people lay it out.
fn laid_out(value: &Value, layout: usize) -> String {
    let indent: &[u8] = match layout {
        0 => return value.to_string(),
        1 => return value.to_string().replace("\":", "\": "),
        2 => b"  ",
        3 => b"    ",
        _ => b"\t",
    };
    let mut text = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(indent);
    serde::Serialize::serialize(value, &mut serde_json::Serializer::with_formatter(&mut text, formatter))
        .unwrap();
    let text = String::from_utf8(text).unwrap() + "\n";
    if layout == 5 { text.replace('\n', "\r\n") } else { text }
}

proptest! {
    #[test]
    fn installing_and_uninstalling_restores_arbitrary_settings(
        settings in any_settings(),
        layout in 0..6_usize,
        (agent, path) in prop::sample::select(AGENTS.to_vec()),
    ) {
        let text = laid_out(&settings, layout);
        prop_assume!(serde_json::from_str::<Value>(&text).is_ok_and(|read| read == settings));
        let project = TestProject::new();
        project.write(path, &text);
        project.install(InstallTarget::Agent(agent));
        let installed = project.read(path);

        // What was there is still there, and the rest is ours.
        let read: Value = serde_json::from_str(&installed).unwrap();
        let is_shared = |key: &str| ["hooks", "env"].contains(&key);
        for (key, value) in settings.as_object().unwrap().iter().filter(|(key, _)| !is_shared(key)) {
            prop_assert_eq!(&read[key], value);
        }
        for (name, value) in settings["env"].as_object().into_iter().flatten() {
            prop_assert_eq!(&read["env"][name], value);
        }
        let has_ours = read["env"]["CLAUDE_CODE_SHELL"].as_str().is_some_and(|shell| shell.ends_with("/bin/tenure-bash"));
        let chose = settings["env"].get("CLAUDE_CODE_SHELL").is_some()
            || settings.get("env").is_some_and(|env| !env.is_object());
        prop_assert_eq!(has_ours, agent == CodingAgent::Claude && !chose);
        for (event, entries) in settings["hooks"].as_object().into_iter().flatten() {
            let entries = entries.as_array().unwrap();
            prop_assert_eq!(&read["hooks"][event].as_array().unwrap()[..entries.len()], entries.as_slice());
        }
        prop_assert_eq!(project.install(InstallTarget::Agent(agent)).changes, []);

        // Somebody changed the file and changed it back in another layout: only the bytes differ.
        project.write(path, format!("{installed}\n"));
        project.uninstall(InstallTarget::Agent(agent));
        let remaining: Value = serde_json::from_str(&project.read(path)).unwrap();
        prop_assert_eq!(&remaining, &settings);

        project.write(path, &text);
        project.install(InstallTarget::Agent(agent));
        project.uninstall(InstallTarget::Agent(agent));
        prop_assert_eq!(project.read(path), text);
        prop_assert!(project.has_no_records());
    }
}
