//! Every code of every face has its page in docs/errors, and every page its code.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tenure_api::Code;
use tenure_control::{ControlRejectionCode, ProblemCode};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors")
}

/// Every code with its status. One that several faces have means the same, and has one status.
fn codes() -> BTreeMap<&'static str, u16> {
    let plain = Code::ALL.iter().map(|code| (code.as_str(), code.status()));
    let denials = ControlRejectionCode::ALL.into_iter().map(|code| (code.as_str(), code.status()));
    let problems = ProblemCode::ALL.into_iter().map(|code| (code.as_str(), code.status()));
    let mut codes = BTreeMap::new();
    for (code, status) in plain.chain(denials).chain(problems) {
        assert_eq!(*codes.entry(code).or_insert(status), status, "{code} has two statuses");
    }
    codes
}

#[test]
fn every_code_has_its_page_and_every_page_its_code() {
    let names =
        fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut pages: Vec<_> = names.map(|name| name.strip_suffix(".md").unwrap().to_owned()).collect();
    pages.sort();
    assert_eq!(pages, codes().into_keys().collect::<Vec<_>>());
}

#[test]
fn every_error_page_has_the_required_sections() {
    for (code, status) in codes() {
        let page = fs::read_to_string(folder().join(format!("{code}.md"))).unwrap();
        let status = format!("\n\nHTTP {status}\n\n");
        assert!(page.starts_with(&format!("# {code}: ")), "{code}");
        for part in [status.as_str(), "**What happened.**", "**What it means.**", "**What to do.**"] {
            assert!(page.contains(part), "{code} lacks {part:?}");
        }
    }
}
