//! The guide says what is true: its examples are carried out, and its tables are compared with those of the program.

use serde_json::{Map, Value};
use tenure_control::{COMMANDS, Problem};
use tenure_device::light::parameters::ParameterRange;
use tenure_device::light::{EFFECTS, PALETTES, PARAMETERS};

use crate::support::{device, tick_at_millis};

const GUIDE: &str = include_str!("../../../../docs/guides/device.md");

/// Request and answer of each example.
fn examples() -> Vec<(Map<String, Value>, Value)> {
    let blocks = GUIDE.split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default());
    blocks
        .map(|block| {
            let mut lines = block.lines().map(|line| serde_json::from_str::<Value>(line).expect(line));
            let (request, answer) = (lines.next().expect("a request"), lines.next().expect("an answer"));
            assert!(lines.next().is_none(), "{block}");
            (request.as_object().expect("an object").clone(), answer)
        })
        .collect()
}

/// Whether something is as the guide says, where `…` stands for what is left out.
fn fits(expected: &Value, actual: &Value) -> bool {
    match (expected, actual) {
        (Value::String(omitted), _) if omitted == "…" => true,
        (Value::Object(expected), Value::Object(actual)) => {
            let known = expected.iter().filter(|(name, _)| *name != "…");
            let all_fit = known
                .clone()
                .all(|(name, expected)| actual.get(name).is_some_and(|actual| fits(expected, actual)));
            all_fit && (expected.contains_key("…") || known.count() == actual.len())
        }
        (Value::Array(expected), Value::Array(actual)) => {
            let is_cut = expected.last().is_some_and(|last| last == "…");
            (is_cut || expected.len() == actual.len())
                && expected.iter().zip(actual).all(|(expected, actual)| fits(expected, actual))
        }
        _ => expected == actual,
    }
}

fn as_error(problem: &Problem) -> Value {
    let mut error = serde_json::json!({ "code": problem.code.as_str(), "message": problem.message });
    if let Some(field) = &problem.field {
        error["field"] = Value::from(field.as_str());
    }
    error
}

#[test]
fn guide_examples_match_the_device() {
    let mut device = device();
    for (mut request, answer) in examples() {
        let command = request.remove("type").expect("a type");
        let id = request.remove("requestId").expect("a number");
        let command = command.as_str().expect("a text");
        // Each example a tenth of a second after the one before.
        let number = id.as_str().and_then(|id| id.parse::<u64>().ok()).expect("a number");
        assert_eq!(answer["requestId"], id);
        match device.execute(command, request, tick_at_millis(number * 100)) {
            Ok(done) => {
                assert_eq!(answer["type"], command);
                assert!(fits(&answer["data"], &done.data), "{command}: {}", done.data);
            }
            Err(problem) => {
                assert_eq!(answer["type"], "error", "{command}: {problem}");
                assert!(fits(&answer["error"], &as_error(&problem)), "{command}: {problem}");
            }
        }
    }
}

#[test]
fn every_device_command_has_a_guide_example_and_its_routes() {
    let examples = examples();
    let in_one_request = ["ota.upload", "ota.token", "ota.tokens"];
    for row in COMMANDS.iter().filter(|row| !in_one_request.contains(&row.name)) {
        if row.name.starts_with("control.") || row.name.starts_with("auth.") {
            continue;
        }
        assert!(examples.iter().any(|(request, _)| request["type"] == row.name), "{}", row.name);
        let heading = GUIDE.lines().find(|line| line.starts_with(&format!("### {}", row.name)));
        let heading = heading.unwrap_or_else(|| panic!("{} has no heading", row.name));
        for rest in row.rest {
            assert!(heading.contains(rest.method) && heading.contains(rest.path), "{heading} {rest:?}");
        }
    }
}

#[test]
fn guide_tables_match_effects_and_parameters() {
    let has_row = |cells: &[&str]| {
        GUIDE.lines().any(|line| {
            let mut found = line.trim_matches('|').split('|').map(str::trim);
            cells.iter().all(|cell| found.next() == Some(cell))
        })
    };
    for (number, row) in EFFECTS.iter().enumerate() {
        assert!(has_row(&[&number.to_string(), &format!("`{}`", row.name)]), "{}", row.name);
    }
    let palettes = PALETTES.iter().map(|row| format!("`{}`", row.name)).collect::<Vec<_>>().join(", ");
    for row in PARAMETERS {
        let range = match row.range {
            ParameterRange::Number(min, max) => format!("{min} to {max}"),
            ParameterRange::Palette => palettes.clone(),
            ParameterRange::Flag => "`true`, `false`".to_owned(),
        };
        assert!(has_row(&[&format!("`{}`", row.name), &range]), "{}", row.name);
    }
}
