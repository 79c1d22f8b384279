//! A path as part of a resource's name, such that no two paths have one name and no name means more than one path.
//!
//! The kernel takes `FILE:` names with `*`, `?` or braces for patterns and refuses control characters. A file may be
//! called any of that, so those are written as `%` and two digits for each byte.

use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// The longest name of a resource, in bytes. A longer one is replaced by its digest.
const MAX_RESOURCE_BYTES: usize = 4096;

/// Below it are the digests of paths that are too long to be names.
const LONG_PATH_PREFIX: &str = ".long";

/// The resource of this path below `tree`, given by its components.
pub(super) fn resource<Component: AsRef<OsStr>>(tree: &str, components: &[Component]) -> String {
    let path = escape(components);
    let plain = format!("FILE:{tree}/{path}");
    if plain.len() <= MAX_RESOURCE_BYTES {
        plain
    } else {
        format!("FILE:{tree}/{LONG_PATH_PREFIX}/{}", blake3::hash(path.as_bytes()))
    }
}

/// The path as it stands in a resource's name.
pub(super) fn escape<Component: AsRef<OsStr>>(components: &[Component]) -> String {
    let mut escaped = String::new();
    for (place, component) in components.iter().enumerate() {
        let component = component.as_ref();
        if place > 0 {
            escaped.push('/');
        }
        let mut bytes = component.as_bytes();
        // A folder that is really called so must not meet a digest.
        if place == 0 && component == LONG_PATH_PREFIX {
            escape_bytes(&bytes[..1], &mut escaped);
            bytes = &bytes[1..];
        }
        for chunk in bytes.utf8_chunks() {
            for character in chunk.valid().chars() {
                if is_plain(character) {
                    escaped.push(character);
                } else {
                    escape_bytes(character.encode_utf8(&mut [0; 4]).as_bytes(), &mut escaped);
                }
            }
            escape_bytes(chunk.invalid(), &mut escaped);
        }
    }
    escaped
}

/// The path that stands behind `FILE:`, the tree's id and a slash in a resource's name. It may be folded: see
/// [`FileKey`](super::FileKey). Of a path that was too long nothing but its digest is left.
///
/// ```
/// use tenure_gate::paths::unescape;
/// assert_eq!(unescape("app/%5Bid%5D.tsx"), std::path::Path::new("app/[id].tsx"));
/// ```
pub fn unescape(resource_path: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(resource_path.len());
    let mut rest = resource_path.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *first == b'%');
        let byte = digits.and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

/// Whether a character stands for itself.
fn is_plain(character: char) -> bool {
    let has_a_meaning = matches!(character, '%' | '*' | '?' | '[' | ']' | '{' | '}');
    // They end a line for some who show names, and nobody sees them.
    let ends_a_line = matches!(character, '\u{2028}' | '\u{2029}');
    !(has_a_meaning || ends_a_line || character.is_control())
}

fn escape_bytes(bytes: &[u8], escaped: &mut String) {
    for byte in bytes {
        // Writing into a text cannot fail.
        let _ = write!(escaped, "%{byte:02X}");
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;

    fn escaped(path: &str) -> String {
        escape(&path.split('/').collect::<Vec<_>>())
    }

    #[test]
    fn special_characters_are_escaped() {
        assert_eq!(escaped("src/lib.rs"), "src/lib.rs");
        assert_eq!(escaped("a b/ü/日本.md"), "a b/ü/日本.md");
        assert_eq!(escaped("app/[id].tsx"), "app/%5Bid%5D.tsx");
        assert_eq!(escaped("*?{a,b}"), "%2A%3F%7Ba,b%7D");
        assert_eq!(escaped("100%"), "100%25");
        assert_eq!(escaped("a\nb\u{7f}\u{85}\u{2028}"), "a%0Ab%7F%C2%85%E2%80%A8");
        assert_eq!(escape(&[OsStr::from_bytes(b"a\xffb")]), "a%FFb");
        assert_ne!(escape(&[OsStr::from_bytes(b"a\xffb")]), escaped("a%FFb"));
    }

    #[test]
    fn a_path_that_is_too_long_becomes_a_unique_digest() {
        let long = vec!["x".repeat(255); 20];
        let digest = resource("tree", &long);
        assert!(digest.starts_with("FILE:tree/.long/") && digest.len() < 100, "{digest}");
        let mut other = long.clone();
        other[19].pop();
        assert_ne!(resource("tree", &other), digest);
        let same = ["FILE:tree".len() + 1, ".long".len() + 1].iter().sum::<usize>();
        assert_ne!(resource("tree", &[".long", &digest[same..]]), digest);
        assert_eq!(unescape(&escaped(".long/x")), Path::new(".long/x"));
    }

    #[test]
    fn resource_names_are_limited_to_four_kibibytes() {
        let fitting = "y".repeat(4096 - "FILE:t/".len());
        assert_eq!(resource("t", &[&fitting]).len(), 4096);
        assert!(resource("t", &[format!("{fitting}y")]).starts_with("FILE:t/.long/"));
    }

    fn components() -> impl Strategy<Value = Vec<OsString>> {
        let byte = prop_oneof![Just(b'%'), Just(b'2'), Just(b'E'), Just(b'.'), 1_u8..=255];
        let component = proptest::collection::vec(byte, 1..6).prop_map(|mut bytes| {
            bytes.iter_mut().filter(|byte| **byte == b'/').for_each(|byte| *byte = b'*');
            OsString::from_vec(bytes)
        });
        proptest::collection::vec(component, 1..4)
    }

    proptest! {
        #[test]
        fn escaping_round_trips(path in components()) {
            let escaped = escape(&path);
            prop_assert!(!escaped.chars().any(|one| one.is_control() || "*?[]{}".contains(one)), "{escaped:?}");
            let whole: PathBuf = path.iter().collect();
            prop_assert_eq!(unescape(&escaped).into_os_string(), whole.into_os_string());
        }
    }
}
