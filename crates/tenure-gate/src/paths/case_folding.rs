//! Names that one folder takes for the same, though they are written differently: `README` and `readme`, `ß` and `ss`,
//! an umlaut as one character and as two.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use caseless::Caseless;
use rustix::fs::{IFlags, Mode, OFlags, fstatfs, ioctl_getflags, open};
use unicode_normalization::UnicodeNormalization;

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
/// use tenure_gate::paths::fold_case;
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
