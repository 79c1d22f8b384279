//! Names of the machine and of files.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use caseless::Caseless;
use rustix::fs::{IFlags, Mode, OFlags, fstatfs, ioctl_getflags, open};
use unicode_normalization::UnicodeNormalization;

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

/// The flag of a folder whose names are folded: ext4, f2fs, tmpfs and others.
const CASEFOLD: IFlags = IFlags::from_bits_retain(0x4000_0000);

/// File systems that are case-insensitive by nature, by the numbers that `statfs` gives: vfat, exfat, ntfs, ntfs3, hfsplus,
/// hfs, smb, cifs, smb2.
const BY_NATURE: [u64; 9] =
    [0x4d44, 0x2011_bab0, 0x5346_544e, 0x7366_746e, 0x482b, 0x4244, 0x517b, 0xff53_4d42, 0xfe53_4d42];

/// The one form of all names that a folding folder takes for the same: composed, after full case folding, without the
/// characters that nobody sees. A name that is not UTF-8 stays as it is, since such folders compare it byte by byte.
///
/// ```
/// use tenure_host::paths::fold_case;
/// assert_eq!(fold_case("Straße".as_ref()), fold_case("STRASSE".as_ref()));
/// assert_eq!(fold_case("u\u{308}".as_ref()), fold_case("\u{dc}".as_ref()));
/// ```
pub fn fold_case(name: &OsStr) -> Cow<'_, OsStr> {
    let Some(text) = name.to_str() else { return Cow::Borrowed(name) };
    if text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
        return Cow::Borrowed(name);
    }
    let folded: String = text.nfd().default_case_fold().filter(|one| !is_ignored(*one)).nfc().collect();
    // A name of nothing but invisible characters is still a name.
    if folded == text || folded.is_empty() { Cow::Borrowed(name) } else { Cow::Owned(OsString::from(folded)) }
}

/// Whether this folder takes names for the same that differ only in what [`fold_case`] removes. Of one that may not be read it is
/// not believed: hardly any folder does.
pub(super) fn is_case_insensitive(folder: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let Ok(folder) = open(folder, flags, Mode::empty()) else { return false };
    let by_nature = fstatfs(&folder).is_ok_and(|about| is_folding_by_nature(about.f_type));
    by_nature || ioctl_getflags(&folder).is_ok_and(|flags| flags.contains(CASEFOLD))
}

/// How the entry that this name reaches is spelled in its folder.
pub(super) fn spelling_on_disk(folder: &Path, name: &OsStr) -> Option<OsString> {
    let folded_name = fold_case(name);
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    entries.map(|entry| entry.file_name()).find(|entry| fold_case(entry) == folded_name)
}

/// The number of a file system's kind has other types on other machines, and some of them are signed.
fn is_folding_by_nature(kind: impl TryInto<i64>) -> bool {
    let kind = kind.try_into().unwrap_or_default();
    BY_NATURE.iter().any(|known| kind & 0xffff_ffff == known.cast_signed())
}

/// Characters that stand for nothing that is seen (Default_Ignorable_Code_Point). Folding folders do not compare them.
fn is_ignored(character: char) -> bool {
    matches!(character,
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}'..='\u{1160}' | '\u{17B4}'..='\u{17B5}'
        | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}'
        | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF0}'..='\u{FFF8}'
        | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}')
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use proptest::prelude::*;

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

    fn same(one: &str, other: &str) -> bool {
        fold_case(one.as_ref()) == fold_case(other.as_ref())
    }

    #[test]
    fn names_that_are_equal_when_case_folded_fold_to_the_same_name() {
        assert!(same("README.md", "ReadMe.MD"));
        assert!(same("Straße", "STRASSE") && same("straSSe", "STRAẞE"));
        assert!(same("Übung", "U\u{308}BUNG") && same("é", "E\u{301}"));
        assert!(same("ΣΑΣ", "σας"), "final sigma");
        assert!(same("ﬁle", "FILE"), "ligature");
        assert!(same("\u{1F80}", "\u{1F00}\u{3B9}"), "iota below and beside");
        assert!(same("\u{212A}elvin", "kelvin") && same("Å", "\u{212B}"));
        assert!(same("a\u{AD}b\u{200D}", "AB"), "what nobody sees");
    }

    #[test]
    fn different_names_fold_differently() {
        assert!(!same("a", "b") && !same("a", "ä") && !same("i", "ı") && !same("o", "0"));
        assert_eq!(fold_case("plain-name.rs".as_ref()), OsStr::new("plain-name.rs"));
        let broken = OsStr::from_bytes(b"A\xff");
        assert_eq!(fold_case(broken), broken);
        assert_eq!(fold_case("\u{200B}".as_ref()), OsStr::new("\u{200B}"));
    }

    #[test]
    fn case_folding_file_systems_are_known_by_their_magic_number() {
        assert!(is_folding_by_nature(0x4d44_i64) && is_folding_by_nature(0xff53_4d42_u32));
        assert!(is_folding_by_nature(0xfe53_4d42_u32.cast_signed()));
        assert!(!is_folding_by_nature(0xef53_i64) && !is_folding_by_nature(0x0102_1994_i64));
    }

    proptest! {
        #[test]
        fn folding_is_idempotent(name in "\\PC{0,12}") {
            let once = fold_case(name.as_ref()).into_owned();
            prop_assert_eq!(fold_case(&once), &*once);
        }

        #[test]
        fn folding_ignores_unicode_normalization_form(name in "\\PC{0,12}") {
            let upper: String = name.nfd().collect();
            prop_assert!(same(&name, &upper));
            let composed: String = name.nfc().collect();
            prop_assert!(same(&name, &composed));
        }
    }
}
