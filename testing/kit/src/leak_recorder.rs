//! Records which secrets a test received and what it saw. `cargo xtask test` says where, and searches afterwards for
//! secrets in what was seen.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use serde_json::Value;

/// Files of a data directory that are secrets by design, and that nobody but their owner can read.
pub const SECRET_FILES: &[&str] = &["admin.token", "token.key", "node.key"];

/// Fields that are secrets by design, in answers to those whose secrets they are.
const SECRET_FIELDS: &[&str] = &["token", "secret", "leaseToken"];

/// A secret that this process got.
pub fn record_secret(text: &str) {
    append("secrets", format!("{}\n", text.trim_end()).as_bytes());
}

/// Something that this process saw, and that everybody may see.
pub fn record_output(bytes: &[u8]) {
    append("seen", bytes);
    append("seen", b"\n");
}

/// A response. What it gives to its caller alone is a secret from then on; all else may be seen.
pub fn record_response(head: &str, body: &str) {
    record_output(head.as_bytes());
    match serde_json::from_str::<Value>(body) {
        Ok(mut json) if head.starts_with("HTTP/1.1 2") => {
            remove_secrets(&mut json, &mut |text| record_secret(text));
            record_output(json.to_string().as_bytes());
        }
        _ => record_output(body.as_bytes()),
    }
}

/// Takes out what is a secret by design: the token of a lease, and the secret of a token.
pub fn remove_secrets(json: &mut Value, got: &mut impl FnMut(&str)) {
    match json {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if SECRET_FIELDS.contains(&name.as_str()) => {
                        got(&std::mem::take(text))
                    }
                    value => remove_secrets(value, got),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| remove_secrets(value, got)),
        _ => {}
    }
}

/// Everything in a data directory: secrets that are secrets by design, and what nothing secret may be in.
pub fn record_directory(folder: &Path) {
    if std::env::var_os("TENURE_TEST_TRACES").is_none() {
        return;
    }
    for (path, content) in files_below(folder) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !SECRET_FILES.contains(&name.as_str()) {
            record_output(&content);
        } else if let Ok(text) = String::from_utf8(content) {
            text.lines().for_each(record_secret);
        }
    }
}

/// Every file below a folder that can be read, with what is in it.
pub fn files_below(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            found.extend(files_below(&entry.path()));
        } else if kind.is_file()
            && let Ok(content) = fs::read(entry.path())
        {
            found.push((entry.path(), content));
        }
    }
    found
}

fn append(ending: &str, bytes: &[u8]) {
    let Some(folder) = std::env::var_os("TENURE_TEST_TRACES") else { return };
    let path = Path::new(&folder).join(format!("{}.{ending}", std::process::id()));
    let mut file = OpenOptions::new().create(true).append(true).open(path).expect("the folder is there");
    file.write_all(bytes).expect("there is room for what the tests saw");
}
