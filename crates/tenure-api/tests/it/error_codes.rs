//! Every code is explained, and means the same everywhere.

use std::fs;
use std::path::Path;

use tenure_api::{Code, Problem};

fn pages() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors")
}

#[test]
fn every_error_page_has_title_status_and_required_sections() {
    for code in Code::ALL {
        let page = fs::read_to_string(pages().join(format!("{}.md", code.as_str()))).unwrap();
        let first = page.lines().next().unwrap();
        assert_eq!(first, format!("# {}: {}", code.as_str(), code.title()));
        let status = format!("HTTP {}", code.status());
        for part in [status.as_str(), "**What happened.**", "**What it means.**", "**What to do.**"] {
            assert!(page.contains(part), "{first} lacks {part:?}");
        }
    }
}

#[test]
fn error_codes_are_serialized_by_name() {
    for code in Code::ALL {
        let text = format!("\"{}\"", code.as_str());
        assert_eq!(serde_json::to_string(code).unwrap(), text);
        assert_eq!(serde_json::from_str::<Code>(&text).unwrap(), *code);
    }
}

#[test]
fn only_transient_error_codes_are_retryable() {
    for code in Code::ALL {
        let may_pass = matches!(code.status(), 408 | 503) && *code != Code::Exhausted
            || [Code::QueueFull, Code::LeaseBusy].contains(code);
        assert_eq!(code.is_retryable(), may_pass, "{code:?}");
    }
}

#[test]
fn problem_json_omits_unset_fields() {
    let mut problem = Problem::new(Code::Held, "deploy:prod is held by ci-42");
    problem.resource = Some("deploy:prod".into());
    problem.holder = Some("ci-42".into());
    problem.remaining_ms = Some(21_870);
    problem.waiting = Some(3);
    let text = serde_json::to_string(&problem).unwrap();
    assert_eq!(
        text,
        r#"{"type":"/errors/HELD","title":"The resource is held","status":409,"code":"HELD","#.to_owned()
            + r#""detail":"deploy:prod is held by ci-42","resource":"deploy:prod","holder":"ci-42","#
            + r#""remainingMs":21870,"waiting":3}"#
    );
    assert_eq!(serde_json::from_str::<Problem>(&text).unwrap(), problem);
}
