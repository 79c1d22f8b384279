//! From a real path to the resources that stand for the file.

use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{lstat, stat};

use super::mounts::Mounts;
use super::normalized_path::{NormalizedPath, is_case_insensitive, machine_digest};
use super::resolve::{ResolvedPath, resolve, resolve_nofollow};
use super::work_tree::{file_identity, find_tree_above};
use super::{FileKey, PathError, PathTarget, WorkTree};

pub(super) fn target_of_path(whole: &Path) -> Result<PathTarget, PathError> {
    of_reached(whole, resolve(whole)?)
}

/// What is at this absolute path itself, be it a link.
pub(super) fn entry_of_path(whole: &Path) -> Result<PathTarget, PathError> {
    of_reached(whole, resolve_nofollow(whole)?)
}

fn of_reached(whole: &Path, reached: ResolvedPath) -> Result<PathTarget, PathError> {
    if reached.is_folder() {
        return Err(PathError::NotAFile(whole.to_path_buf()));
    }
    let mounts = Mounts::read();
    let mut aliases = other_names(&mounts, &reached);
    let mut file = key(&reached, &mounts)?;
    // A part of a tree can be mounted where there is none.
    while file.is_none() && !is_git_internal(&reached)? {
        let Some(other) = aliases.pop() else { return Ok(PathTarget::Outside) };
        file = key(&other, &mounts)?;
    }
    let Some(mut file) = file else { return Ok(PathTarget::Outside) };
    for other in &aliases {
        if let Some(other) = key(other, &mounts)? {
            file.add_aliases(std::iter::once(&*other.resource));
        }
    }
    Ok(PathTarget::File(file))
}

/// The file in its working tree, if it is in one.
fn key(reached: &ResolvedPath, mounts: &Mounts) -> Result<Option<FileKey>, PathError> {
    let absolute = &reached.path;
    let Some(tree) = absolute.parent().map(find_tree_above).transpose()?.flatten() else { return Ok(None) };
    if tree.is_git_internal(absolute) {
        return Ok(None);
    }
    let Ok(relative) = absolute.strip_prefix(&tree.root) else { return Ok(None) };
    let names = NormalizedPath::of(&tree.root, relative, reached.missing, &is_case_insensitive);
    let mut file = FileKey {
        resource: resource(&tree.id, &names.folded),
        absolute: tree.root.join(&names.spelled),
        relative: names.spelled,
        aliases: Vec::new(),
        identity: reached.found.as_ref().map(file_identity),
        tree,
    };
    let has_links = reached.found.as_ref().is_some_and(|about| about.st_nlink > 1);
    if has_links || mounts.has_mount_below(&file.tree.root) {
        file.aliases.extend(inode_resource(reached, &names.folded));
    }
    Ok(Some(file))
}

/// The resource of a name itself, below the root of its tree.
pub(super) fn resource_of_name(tree: &WorkTree, relative: &Path) -> String {
    let is_missing = |above: &&Path| lstat(tree.root.join(above)).is_err();
    let missing = relative.ancestors().take_while(is_missing).count();
    resource(&tree.id, &NormalizedPath::of(&tree.root, relative, missing, &is_case_insensitive).folded)
}

/// The resource of the file itself, by its device and number, whatever it is called. One that does not exist yet has none:
/// then by those of the deepest folder that exists, and the way on from there.
fn inode_resource(reached: &ResolvedPath, folded: &[OsString]) -> Option<String> {
    let about = |(device, number): (u64, u64)| format!("{}/.inode/{device}-{number}", machine_digest());
    if let Some(found) = &reached.found {
        return Some(format!("FILE:{}", about(file_identity(found))));
    }
    let folder = stat(reached.deepest_folder()).ok()?;
    let rest = &folded[folded.len().saturating_sub(reached.missing)..];
    Some(resource(&about(file_identity(&folder)), rest))
}

/// The same file under the names that it has through other mounts.
fn other_names(mounts: &Mounts, reached: &ResolvedPath) -> Vec<ResolvedPath> {
    let names = mounts.path_aliases(&reached.path);
    let aliases = names.into_iter().filter_map(|name| resolve(&name).ok());
    aliases.filter(|other| other.path != reached.path && is_same(other, reached)).collect()
}

/// Whether two are really one, and not hidden behind another mount: by the file, or the folder where it would be.
fn is_same(one: &ResolvedPath, other: &ResolvedPath) -> bool {
    match (&one.found, &other.found) {
        (Some(one), Some(other)) => file_identity(one) == file_identity(other),
        (None, None) => {
            let folder =
                |reached: &ResolvedPath| stat(reached.deepest_folder()).map(|about| file_identity(&about));
            one.missing == other.missing
                && matches!((folder(one), folder(other)), (Ok(one), Ok(other)) if one == other)
        }
        _ => false,
    }
}

/// Whether this is in a working tree, but git's own.
fn is_git_internal(reached: &ResolvedPath) -> Result<bool, PathError> {
    let tree = reached.path.parent().map(find_tree_above).transpose()?.flatten();
    Ok(tree.is_some_and(|tree| tree.is_git_internal(&reached.path)))
}

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
/// use tenure_host::paths::unescape;
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
