//! Every row of the table that ships, and every way around it.

use tenure_control::permission_matrix::CommandClass::{self, Exempt, Mutates, Reads};

use super::super::device_rules;
use super::{DeviceMessage, RequestHead, Rules, is_for_tenure};

/// What `GET /path?query` does, to whom the table is `rules`; a method with `+` has a body.
fn class_by(rules: &Rules, line: &str) -> CommandClass {
    let (method, target) = line.split_once(' ').unwrap();
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let has_body = method.ends_with('+');
    rules.classify_request(&RequestHead { method: method.trim_end_matches('+'), path, query, has_body })
}

fn class(line: &str) -> CommandClass {
    class_by(&Rules::wled(), line)
}

// S0-63
#[test]
fn every_line_of_the_bundled_wled_table_classifies_as_written() {
    let mut lines = 0;
    for line in device_rules::TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let words: Vec<_> = line.split_whitespace().collect();
        let expected = match words[0] {
            "reads" => Reads,
            "exempt" => Exempt,
            _ => Mutates,
        };
        lines += 1;
        match (words[1], words.get(2)) {
            ("TEXT", Some(text)) => {
                assert_eq!(Rules::wled().classify_message(DeviceMessage::Text(text)), expected, "{line}")
            }
            ("BINARY", None) => {
                assert_eq!(Rules::wled().classify_message(DeviceMessage::Binary), expected, "{line}")
            }
            (methods, Some(path)) => {
                for method in methods.replace("ANY", "GET,POST,DELETE").split(',') {
                    let path = path.split('?').next().unwrap();
                    assert_eq!(class(&format!("{method} {path}")), expected, "{line}");
                }
            }
            _ => panic!("{line}"),
        }
    }
    let (requests, messages) = Rules::wled().rule_counts();
    assert_eq!(lines, requests + messages, "nothing was left out");
}

// S0-63 S0-77
#[test]
fn get_requests_that_set_values_mutate() {
    for line in [
        "GET /win&A=255",
        "GET /win&T=2",
        "GET /win?A=255",
        "GET /win?",
        "GET /win/",
        "GET /win&",
        "GET /json?win&A=1",
        "GET /json/state?on=false",
        "GET /json/state/",
        "GET /json/win&A=1",
        "GET /anything-with-win&A=1",
        "GET /reset",
        "GET /edit?edit=/presets.json",
        "GET /edit",
        "GET /u",
        "GET /json/palx?page=1&on=1",
        "GET /json/palx?page=1%26on",
        "GET /",
    ] {
        assert_eq!(class(line), Mutates, "{line}");
    }
}

// S0-63
#[test]
fn writing_methods_mutate_whatever_their_body() {
    for line in [
        "POST+ /json/state",
        "POST /json/state",
        "PUT+ /json/state",
        "PATCH+ /json",
        "POST+ /json/si",
        "POST+ /json/cfg",
        "POST+ /settings/wifi",
        "POST+ /settings",
        "POST+ /upload",
        "POST+ /edit",
        "DELETE /presets.json",
        "DELETE /edit?path=/presets.json",
        "GET+ /json/state",
        "get /json/state",
        "OPTIONS /json/state",
        "SING /json/state",
    ] {
        assert_eq!(class(line), Mutates, "{line}");
    }
}

#[test]
fn unusual_spellings_of_harmless_paths_mutate() {
    for line in [
        "GET /json/%73tate",
        "GET /json%2Fstate",
        "GET /json//state",
        "GET //json/state",
        "GET /json/./state",
        "GET /json/../json/state",
        "GET /json/%2e%2e/win&A=1",
        "GET /JSON/state",
        "GET /json/STATE",
        "GET /json\\state",
        "GET /json;a=b/state",
        "GET /json/state%00",
        "GET /json/state%3Fon=1",
        "GET /json/state#on",
        "GET /presets.json/../win&A=1",
        "GET /settings/../reset",
        "GET /%77in&A=1",
        "GET http://wled/json/state",
        "GET *",
        "GET json/state",
        "GET /jsön",
        "POST /update/../json/state",
        "POST /Update",
        "POST /update?then=/reset",
    ] {
        assert_eq!(class(line), Mutates, "{line}");
    }
}

// S0-77 S0-84
#[test]
fn requests_listed_as_reads_or_exempt_are_allowed() {
    for line in
        ["GET /json/state", "HEAD /json/state", "GET /win", "GET /json/palx?page=2", "GET /settings/led"]
    {
        assert_eq!(class(line), Reads, "{line}");
    }
    assert_eq!((class("GET /update"), class("POST+ /update")), (Exempt, Exempt));
}

// S0-63 S0-77
#[test]
fn only_listed_websocket_messages_read_and_the_rest_mutate() {
    let of = |text: &str| Rules::wled().classify_message(DeviceMessage::Text(text));
    for text in [r#"{"v":true}"#, " { \"v\" : true }\n", r#"{"lv":true}"#, r#"{"lv": false}"#, "p"] {
        assert_eq!(of(text), Reads, "{text}");
    }
    for text in [
        r#"{"on":true}"#,
        r#"{"v":true,"on":false}"#,
        r#"{"lv":true,"lv":true}"#,
        r#"{"lv":{"on":true},"lv":true}"#,
        r#"{"\u0076":true}"#,
        r#"{"v ":true}"#,
        r#"{"v":"true"}"#,
        r#"{"V":true}"#,
        r#"{"v":true}{"on":true}"#,
        r#"{"v":true}/**/"#,
        "{'v':true}",
        "{v:true}",
        "[{\"v\":true}]",
        "p ",
        "P",
        "win&A=1",
        "",
        "{}",
    ] {
        assert_eq!(of(text), Mutates, "{text}");
    }
    assert_eq!(of(&format!("{{\"v\":{}true}}", " ".repeat(300))), Mutates, "nobody writes it like this");
    assert_eq!(Rules::wled().classify_message(DeviceMessage::Binary), Mutates);
}

#[test]
fn without_a_table_everything_mutates() {
    let nothing = Rules::parse("# nothing is known\n\n").unwrap();
    assert_eq!(class_by(&nothing, "GET /json/state"), Mutates);
    assert_eq!(nothing.classify_message(DeviceMessage::Text("p")), Mutates);
    assert_eq!(nothing.classify_message(DeviceMessage::Binary), Mutates);
}

#[test]
fn the_strictest_matching_line_wins() {
    for table in [
        "reads GET /**\nmutates GET /reset\nexempt ANY /**",
        "mutates GET /reset\nexempt ANY /**\nreads GET /**",
    ] {
        let rules = Rules::parse(table).unwrap();
        for (line, expected) in [
            ("GET /a/b", Reads),
            ("GET /", Reads),
            ("POST+ /a", Exempt),
            ("GET /reset", Mutates),
            ("GET /RESET", Mutates),
            ("GET /reset/now", Mutates),
            ("GET /reset?x", Mutates),
            ("GET /%72eset", Mutates),
            ("GET /a/../reset", Mutates),
        ] {
            assert_eq!(class_by(&rules, line), expected, "{line}");
        }
    }
    let rules = Rules::parse("reads GET,POST /a/*/c").unwrap();
    assert_eq!((class_by(&rules, "POST /a/b/c"), class_by(&rules, "GET /a/b/d")), (Reads, Mutates));
    assert_eq!((class_by(&rules, "GET /a/b"), class_by(&rules, "GET /a/b/c/d")), (Mutates, Mutates));
}

#[test]
fn invalid_lines_are_rejected_with_their_line_number() {
    for (table, line, reason) in [
        ("\n# x\nread GET /a", 3, "`read` is no class"),
        ("reads", 1, "nothing else"),
        ("reads GET", 1, "no path"),
        ("reads GET a", 1, "no path"),
        ("reads GET /a//b", 1, "no path"),
        ("reads GET /a/", 1, "no path"),
        ("reads GET /a/../b", 1, "no path"),
        ("reads GET /%41", 1, "no path"),
        ("reads GET /a b", 1, "a space"),
        ("reads get /a", 1, "no method"),
        ("reads HEAD /a", 1, "write GET"),
        ("reads GET /a?b c", 1, "a space"),
        ("reads GET /a?b=c", 1, "no name of a parameter"),
        ("reads TEXT", 1, "without a text"),
        ("reads TEXT {\"a\":", 1, "no JSON"),
        ("reads TEXT {\"a\":1,\"a\":1}", 1, "more simply"),
        ("reads BINARY x", 1, "stands alone"),
    ] {
        let error = Rules::parse(table).unwrap_err();
        assert_eq!(error.line, line, "{table}: {error}");
        assert!(error.reason.contains(reason), "{table}: {error}");
    }
    assert!(Rules::parse(&"#\n".repeat(1 << 20)).is_err());
}

// S0-78 S0-82
#[test]
fn control_and_auth_messages_are_for_tenure_and_the_rest_for_the_device() {
    for text in
        [r#"{"type":"control.acquire","clientName":"a"}"#, r#"{"requestId":"1","type":"auth.status"}"#]
    {
        assert!(is_for_tenure(text), "{text}");
    }
    for text in [
        r#"{"type":"controls"}"#,
        r#"{"type":1}"#,
        r#"{"on":true}"#,
        r#"["control.acquire"]"#,
        "p",
        "",
        "control.",
    ] {
        assert!(!is_for_tenure(text), "{text}");
    }
}
