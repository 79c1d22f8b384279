//! Golden files: text that is compared with a committed file, so that a change of it is seen in review.
//!
//! `TENURE_WRITE_GOLDEN=1` writes the files instead. Tests of other crates include this file.

use std::path::Path;
use std::{env, fs};

/// Compares `text` with the file `name` in the folder `tests/golden` of the crate under test.
#[track_caller]
pub fn assert_golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if env::var_os("TENURE_WRITE_GOLDEN").is_some_and(|value| value == "1") {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        return;
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    if golden == text {
        return;
    }
    let differing = golden.lines().zip(text.lines()).position(|(golden, line)| golden != line);
    let at = differing.unwrap_or_else(|| golden.lines().count().min(text.lines().count()));
    panic!(
        "{} differs in line {}\n golden: {}\n    now: {}\nhint: if the change is intended, run the test with TENURE_WRITE_GOLDEN=1",
        path.display(),
        at + 1,
        golden.lines().nth(at).unwrap_or("(no such line)"),
        text.lines().nth(at).unwrap_or("(no such line)"),
    );
}
