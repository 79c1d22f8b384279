//! Names of the machine and of files.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::case_folding::{fold_case, spelling_on_disk};

/// A path below a root, in two forms.
pub(super) struct NormalizedPath {
    pub spelled: PathBuf,
    pub folded: Vec<OsString>,
}

impl NormalizedPath {
    /// The path `relative` below `root`, of which the last `missing` parts do not exist yet. `folds` says whether a folder
    /// takes names for the same that are written differently.
    ///
    /// Most names are in their one form already, so whether their folder folds makes no difference and is not asked; only
    /// the deepest folder is, because a name could be spelled otherwise there.
    pub fn of(root: &Path, relative: &Path, missing: usize, folds: &dyn Fn(&Path) -> bool) -> Self {
        let parts: Vec<&OsStr> = relative.iter().collect();
        let existing = parts.len().saturating_sub(missing);
        let deepest = parts.len().saturating_sub(missing.max(1));
        let deepest_folds = folds(&root.join(parts[..deepest].iter().collect::<PathBuf>()));
        let is_folded = |part: &&OsStr| fold_case(part) == **part;
        if !deepest_folds && parts.iter().all(is_folded) {
            return Self {
                spelled: relative.to_path_buf(),
                folded: parts.iter().map(OsString::from).collect(),
            };
        }
        let mut names = Self { spelled: PathBuf::new(), folded: Vec::new() };
        for (place, part) in parts.into_iter().enumerate() {
            let folder = root.join(&names.spelled);
            // A new folder folds if the one above it does.
            let does_fold = if place >= deepest { deepest_folds } else { folds(&folder) };
            let spelling = (does_fold && place < existing).then(|| spelling_on_disk(&folder, part)).flatten();
            names.spelled.push(spelling.as_deref().unwrap_or(part));
            names.folded.push(if does_fold { fold_case(part).into_owned() } else { part.to_owned() });
        }
        names
    }
}

/// A short digest of the machine's id. The id itself is not for others to see.
pub(super) fn machine_digest() -> &'static str {
    static MACHINE: OnceLock<String> = OnceLock::new();
    MACHINE.get_or_init(|| digest("tenure machine", &[identity().as_bytes()]))
}

/// The first sixteen hex digits of a hash over all of this. The label says what it is for, the lengths where each part ends.
pub(super) fn digest(label: &str, parts: &[&[u8]]) -> String {
    let mut hasher = blake3::Hasher::new_derive_key(label);
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

/// What the system calls itself, else its host name.
fn identity() -> String {
    let places = ["/etc/machine-id", "/var/lib/dbus/machine-id", "/proc/sys/kernel/hostname"];
    let known = places.iter().filter_map(|place| fs::read_to_string(place).ok());
    let mut known = known.map(|text| text.trim().to_owned());
    // An image that was never started has this instead of an id.
    known.find(|text| !text.is_empty() && text != "uninitialized").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree in which only `Folding` and what is below it fold names. Here it is only said that they do.
    fn tree() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("Folding/Straße")).unwrap();
        std::fs::write(root.path().join("Folding/ReadMe.md"), "").unwrap();
        std::fs::write(root.path().join("Plain.md"), "").unwrap();
        root
    }

    fn names(root: &Path, relative: &str, missing: usize) -> (String, String) {
        let inside = root.join("Folding");
        let names =
            NormalizedPath::of(root, relative.as_ref(), missing, &|folder| folder.starts_with(&inside));
        let folded: PathBuf = names.folded.iter().collect();
        (names.spelled.to_str().unwrap().to_owned(), folded.to_str().unwrap().to_owned())
    }

    // S4-17
    #[test]
    fn a_case_folding_folder_gives_all_spellings_of_a_file_one_key() {
        let root = tree();
        for name in ["ReadMe.md", "README.MD", "readme.md"] {
            let (spelled, folded) = names(root.path(), &format!("Folding/{name}"), 0);
            assert_eq!((&*spelled, &*folded), ("Folding/ReadMe.md", "Folding/readme.md"), "{name}");
        }
    }

    #[test]
    fn a_folded_name_is_shown_with_its_spelling_on_disk() {
        let root = tree();
        let names = NormalizedPath::of(&root.path().join("Folding"), "readme.md".as_ref(), 0, &|_| true);
        assert_eq!(names.spelled, Path::new("ReadMe.md"));
    }

    #[test]
    fn a_case_sensitive_folder_keeps_names_unchanged() {
        let root = tree();
        assert_eq!(names(root.path(), "Plain.md", 0), ("Plain.md".into(), "Plain.md".into()));
        assert_eq!(names(root.path(), "PLAIN.md", 1), ("PLAIN.md".into(), "PLAIN.md".into()));
        assert_eq!(names(root.path(), "lower", 1), ("lower".into(), "lower".into()));
    }

    #[test]
    fn missing_names_are_folded_like_their_existing_folder() {
        let root = tree();
        let key = "Folding/strasse/new/file";
        for (name, missing) in [("Folding/Straße/New/File", 2), ("Folding/STRASSE/new/FILE", 2)] {
            let (spelled, folded) = names(root.path(), name, missing);
            assert_eq!(folded, key, "{name}");
            assert!(spelled.starts_with("Folding/Straße/"), "{spelled}");
        }
        std::fs::create_dir(root.path().join("Folding/Straße/New")).unwrap();
        std::fs::write(root.path().join("Folding/Straße/New/File"), "").unwrap();
        assert_eq!(
            names(root.path(), "Folding/strasse/new/file", 0),
            ("Folding/Straße/New/File".into(), key.into())
        );
    }

    #[test]
    fn the_machine_digest_is_short_stable_and_hides_the_machine_id() {
        assert_eq!(machine_digest().len(), 16);
        assert_eq!(machine_digest(), machine_digest());
        assert!(!identity().contains(machine_digest()));
    }

    #[test]
    fn digests_separate_their_parts() {
        assert_ne!(digest("a", &[b"xy", b"z"]), digest("a", &[b"x", b"yz"]));
        assert_ne!(digest("a", &[b"x"]), digest("b", &[b"x"]));
    }
}
