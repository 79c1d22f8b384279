//! Which new names are temporary files, which need no lease.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

/// Whether a new file of this name is somebody's temporary one. `beside` says whether there is a file of another name in the same
/// folder: names that end in a random part belong to one that has the rest as its name.
pub fn is_temporary_name(name: &OsStr, beside: impl Fn(&OsStr) -> bool) -> bool {
    let name = name.as_bytes();
    let Ok(name) = str::from_utf8(name.strip_prefix(b".").unwrap_or(name)) else { return false };
    // An editor tries whether it may write in a folder.
    let is_trial = name == "4913";
    // `sedAb3xYz`, `tmpab12cd34`, `.goutputstream-AB12CD`.
    let begins = ["sed", "tmp", "tmp.", "goutputstream-", "perlio"]
        .iter()
        .filter_map(|begin| name.strip_prefix(begin))
        .any(|rest| (6..=12).contains(&rest.len()) && is_random(rest));
    // `file.swp`, `file~`, `#file#`, `.#file`.
    let is_editors = ["~", ".swp", ".swo", ".swx", ".swpx"].iter().any(|end| name.ends_with(end))
        || name.len() > 2 && name.starts_with('#');
    // `file.tmp`, `file.tmp.1234.ab12`, `file.1234567890`, `.file.Ab3xYz`.
    let parts: Vec<&str> = name.split('.').collect();
    let is_marked = parts.iter().enumerate().skip(1).any(|(place, part)| {
        // `nav.partial.html` is somebody's.
        let is_last = parts.get(place + 1).is_none_or(|next| is_random(next) && has_mixture(next));
        matches!(*part, "tmp" | "temp" | "part" | "partial") && is_last
    });
    let last = parts.last().copied().unwrap_or_default();
    let stem = name.strip_suffix(last).and_then(|stem| stem.strip_suffix('.')).unwrap_or_default();
    let is_numbered = !stem.is_empty()
        && last.len() >= 6
        && is_random(last)
        && has_mixture(last)
        && beside(OsStr::new(stem));
    is_trial || begins || is_editors || is_marked || is_numbered
}

fn is_random(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// Letters and digits, or large and small letters, or digits alone: an ending like `markdown` has none of that.
fn has_mixture(text: &str) -> bool {
    let has = |is: fn(&u8) -> bool| text.as_bytes().iter().any(is);
    let (digit, small, large) =
        (has(u8::is_ascii_digit), has(u8::is_ascii_lowercase), has(u8::is_ascii_uppercase));
    digit || small && large
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_file_names_are_recognized() {
        for name in [
            "sedAb3xYz",
            "tmpx1y2z3w4",
            "tmp.Qr5tUv",
            ".a.txt.Ab3xYz",
            "a.txt.tmp",
            "a.txt.tmp.4242.deadbeef",
            ".a.txt.swp",
            "a.txt~",
            "#a.txt#",
            ".#a.txt",
            "4913",
            ".goutputstream-AB12CD",
            "package.json.1234567",
            "a.part",
        ] {
            assert!(is_temporary_name(OsStr::new(name), |_| true), "{name}");
        }
    }

    #[test]
    fn ordinary_file_names_are_not_taken_for_temporary() {
        for name in [
            "a.txt",
            "main.rs",
            "README.markdown",
            "Cargo.lock",
            "sed.md",
            "template.html",
            "tmp",
            "tmpfile.c",
            ".gitignore",
            "x.properties",
            "temporary.rs",
            "sediment",
            "Makefile",
            "a.tar.gz",
            "",
            ".",
            "v1.2.3",
            "nav.partial.html",
            "page.tmp.md",
        ] {
            assert!(!is_temporary_name(OsStr::new(name), |_| true), "{name}");
        }
        for name in ["README.Debian", "sums.sha256", "db.sqlite3", "schema.20240101", "Dockerfile.Production"]
        {
            assert!(
                !is_temporary_name(OsStr::new(name), |_| false),
                "{name}: there is no file of the name before the dot"
            );
        }
    }
}
