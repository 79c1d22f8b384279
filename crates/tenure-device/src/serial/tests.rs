use serde_json::json;
use tenure_control::permission_matrix::CommandClass;
use tenure_control::rejection::{BLOCKED, ControlRejection, ControlRejectionCode};

use super::*;

/// The command, its fields and the id of a line.
fn parse_ok(line: &str) -> (&'static str, Value, Option<String>) {
    let SerialConsoleCommand { id, action } =
        parse_line(line).unwrap_or_else(|unread| panic!("{line}: {unread:?}"));
    match action {
        SerialAction::Help => ("help", Value::Null, id),
        SerialAction::Command { row, fields } => (row.name, fields.expect(line).into(), id),
    }
}

/// The code of what is wrong with a line, and whether the command was understood all the same.
fn rejection_code(line: &str) -> (ProblemCode, bool) {
    match parse_line(line) {
        Err(unread) => (unread.problem.code, false),
        Ok(SerialConsoleCommand { action: SerialAction::Command { fields: Err(problem), .. }, .. }) => {
            (problem.code, true)
        }
        Ok(found) => panic!("{line}: {found:?}"),
    }
}

#[test]
fn a_line_is_a_command_and_its_fields() {
    for (line, command, fields) in [
        ("effects.setCurrent effectId=3", "effects.setCurrent", json!({ "effectId": 3 })),
        (
            "parameters.set brightness=128 speed=20",
            "parameters.set",
            json!({ "brightness": 128, "speed": 20 }),
        ),
        ("  parameters.set   brightness=-1.5  ", "parameters.set", json!({ "brightness": -1.5 })),
        ("presets.save name=\"at \\\"night\\\"\"", "presets.save", json!({ "name": "at \"night\"" })),
        ("presets.save name=2nd", "presets.save", json!({ "name": "2nd" })),
        ("presets.save name=a=b", "presets.save", json!({ "name": "a=b" })),
        ("presets.save name=\"2\" id=\"\"", "presets.save", json!({ "name": "2", "id": "" })),
        ("settings.set dim=true", "settings.set", json!({ "dim": true })),
        ("status", "device.status", json!({})),
        (r#"{"type":"status"}"#, "device.status", json!({})),
        (r#" {"type":"parameters.set","speed":20} "#, "parameters.set", json!({ "speed": 20 })),
    ] {
        assert_eq!(parse_ok(line), (command, fields, None), "{line}");
    }
    assert_eq!(parse_ok("help").0, "help");
    assert_eq!(parse_ok("?").0, "help");
}

#[test]
fn the_request_id_is_not_a_command_field() {
    let id = Some("7".to_owned());
    for line in [r#"{"type":"status","requestId":"7"}"#, "status requestId=7", "status requestId=\"7\""] {
        assert_eq!(parse_ok(line), ("device.status", json!({}), id.clone()), "{line}");
    }
    let unread = parse_line("nonsense requestId=7 x").expect_err("there is no such command");
    assert_eq!(unread.id, id, "also where the rest makes no sense");
}

#[test]
fn ambiguous_lines_are_rejected_with_their_error_code() {
    for (line, code, is_command) in [
        ("reboot", ProblemCode::UnknownCommand, false),
        ("Status", ProblemCode::UnknownCommand, false),
        ("parameters.set brightness", ProblemCode::InvalidValue, true),
        ("parameters.set brightness=", ProblemCode::InvalidValue, true),
        ("parameters.set =3", ProblemCode::InvalidValue, true),
        ("parameters.set 3=3", ProblemCode::InvalidValue, true),
        ("parameters.set brightness=null", ProblemCode::InvalidValue, true),
        ("parameters.set brightness={\"a\":1}", ProblemCode::InvalidValue, true),
        ("presets.save name=\"open", ProblemCode::InvalidValue, true),
        ("presets.save name=\"a\"b", ProblemCode::InvalidValue, true),
        ("parameters.set brightness=1 brightness=1", ProblemCode::UnknownField, true),
        (r#"{"type":"parameters.set","speed":1,"speed":1}"#, ProblemCode::UnknownField, true),
        (r#"{"type":"parameters.set""#, ProblemCode::InvalidJson, false),
        (r#"{"type":"status"} {}"#, ProblemCode::InvalidJson, false),
        (r#"{"speed":1}"#, ProblemCode::MissingField, false),
        (r#"{"type":3}"#, ProblemCode::InvalidType, false),
        (r#"{"type":"status","requestId":7}"#, ProblemCode::InvalidType, false),
    ] {
        assert_eq!(rejection_code(line), (code, is_command), "{line}");
    }
}

// S0-76, S0-77
#[test]
fn serial_accepts_only_commands_that_the_matrix_allows() {
    for row in COMMANDS {
        match row.class {
            CommandClass::Reads | CommandClass::Mutates => assert_eq!(parse_ok(row.name).0, row.name),
            CommandClass::Streams | CommandClass::Exempt => {
                assert_eq!(rejection_code(row.name), (ProblemCode::Forbidden, false), "{}", row.name);
            }
        }
    }
}

// S0-72
#[test]
fn serial_responses_have_the_websocket_shape() {
    let rejection = ControlRejection {
        code: ControlRejectionCode::ControlLocked,
        message: BLOCKED,
        owner_client_name: "K1 Composer".into(),
        remaining_ms: 1820,
    };
    assert_eq!(
        format_error(Some("req-201"), &rejection.into()),
        r#"{"type":"error","requestId":"req-201","success":false,"error":{"code":"CONTROL_LOCKED","#
            .to_owned()
            + r#""message":"Command blocked by active control lease","ownerClientName":"K1 Composer","#
            + r#""remainingMs":1820,"scope":"global"}}"#
    );
    let data = json!({ "effectId": 3 });
    assert_eq!(
        format_success("effects.setCurrent", None, &data),
        r#"{"type":"effects.setCurrent","success":true,"data":{"effectId":3}}"#
    );
    let problem = Problem::of_field(ProblemCode::OutOfRange, "brightness", "must be from 0 to 255");
    assert_eq!(
        format_error(None, &problem.into()),
        r#"{"type":"error","success":false,"error":{"code":"OUT_OF_RANGE","#.to_owned()
            + r#""message":"`brightness` must be from 0 to 255","field":"brightness"}}"#
    );
}

#[test]
fn help_names_every_command_in_one_line() {
    let text = format_help(None);
    assert!(!text.contains(char::is_control));
    let help: Value = serde_json::from_str(&text).unwrap();
    let named = help["data"]["commands"].as_object().unwrap();
    assert_eq!(named.len(), commands().count());
    assert!(named.contains_key("effects.setCurrent") && !named.contains_key("control.acquire"));
    for example in help["data"]["examples"].as_array().unwrap() {
        parse_ok(example.as_str().unwrap());
    }
}
