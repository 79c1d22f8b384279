//! A key in its file: nobody else reads it, and nothing shows it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use proptest::prelude::*;
use tempfile::TempDir;
use tenure_ledger::signing::{KeyError, KeyFileError, LedgerSigningKey, PublicKey};

use crate::signing::fixtures::{hex, key};

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("node.key");
    (folder, path)
}

#[test]
fn a_created_key_file_has_mode_0600_and_loads_again() {
    let (folder, path) = folder();
    let made = LedgerSigningKey::create(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
    assert_eq!(LedgerSigningKey::load(&path).unwrap().public_key(), made.public_key());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn create_does_not_overwrite_an_existing_key_file() {
    let (folder, path) = folder();
    let made = LedgerSigningKey::create(&path).unwrap();
    assert!(matches!(LedgerSigningKey::create(&path), Err(KeyFileError::Exists { .. })));
    assert_eq!(LedgerSigningKey::load(&path).unwrap().id(), made.id());
    let dangling = folder.path().join("link");
    std::os::unix::fs::symlink(folder.path().join("nowhere"), &dangling).unwrap();
    assert!(
        matches!(LedgerSigningKey::create(&dangling), Err(KeyFileError::Exists { .. })),
        "nor through a link"
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left beside it");
}

#[test]
fn generated_keys_differ() {
    assert_ne!(LedgerSigningKey::generate().unwrap().id(), LedgerSigningKey::generate().unwrap().id());
}

#[test]
fn a_group_or_world_accessible_key_file_is_rejected_with_the_chmod_command() {
    let (folder, path) = folder();
    LedgerSigningKey::create(&path).unwrap();
    for mode in [0o640, 0o604, 0o620, 0o601, 0o644, 0o666] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let error = LedgerSigningKey::load(&path).unwrap_err().to_string();
        let command = format!("(mode {mode:04o}); run: chmod 600 {}", path.display());
        assert!(error.ends_with(&command), "{error}");
    }
    fs::set_permissions(&path, Permissions::from_mode(0o400)).unwrap();
    LedgerSigningKey::load(&path).expect("only its owner reads it");

    let odd = folder.path().join("it's a key; really");
    fs::rename(&path, &odd).unwrap();
    fs::set_permissions(&odd, Permissions::from_mode(0o644)).unwrap();
    let error = LedgerSigningKey::load(&odd).unwrap_err().to_string();
    assert!(error.ends_with(r"/it'\''s a key; really'") && error.contains("chmod 600 -- '/"), "{error}");
}

#[test]
fn a_malformed_key_file_is_rejected() {
    let (folder, path) = folder();
    assert!(matches!(LedgerSigningKey::load(&path), Err(KeyFileError::Io { .. })), "no file");
    assert!(
        matches!(LedgerSigningKey::create(&path.join("below")), Err(KeyFileError::Io { .. })),
        "no folder"
    );
    LedgerSigningKey::create(&path).unwrap();
    let good = fs::read(&path).unwrap();
    let refused = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        matches!(LedgerSigningKey::load(&path), Err(KeyFileError::InvalidKeyFile { .. }))
    };
    assert!((0..good.len()).all(|length| refused(&good[..length])), "cut off");
    assert!(refused(&[&good[..], b"\n"].concat()), "too long");
    assert!(refused(&[&good[..], &good[..]].concat()), "far too long");
    assert!(refused(String::from_utf8(good.clone()).unwrap().replace("v1", "v2").as_bytes()), "newer");
    assert!(refused(&[b"tenure-node-key-v1 ", &[b'g'; 64][..], b"\n"].concat()), "no digits");
    assert!(refused(&[b"tenure-node-key-v1 +", &[b'1'; 63][..], b"\n"].concat()), "a sign is no digit");
    assert!(!refused(&good));

    fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
    assert!(
        matches!(LedgerSigningKey::load(folder.path()), Err(KeyFileError::InvalidKeyFile { .. })),
        "a folder"
    );
    let pipe = folder.path().join("pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert!(
        matches!(LedgerSigningKey::load(&pipe), Err(KeyFileError::InvalidKeyFile { .. })),
        "a pipe that nobody feeds"
    );
}

#[test]
fn debug_and_display_do_not_show_the_secret_key() {
    let key = key();
    let secret: Vec<u8> = (0..32).collect();
    let shown = format!("{key:?} {key:#?} {} {:?}", key.public_key(), key.public_key());
    for form in [hex(&secret), format!("{secret:?}"), "0, 1, 2".into(), "\u{1}\u{2}\u{3}".into()] {
        assert!(!shown.to_lowercase().contains(&form), "{shown}");
    }
    assert_eq!(format!("{key:?}"), "NodeKey(548f8c1645ce55b4)");
}

// Computed by another program, from the description alone.
#[test]
fn golden_key() {
    let public = "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8";
    assert_eq!(key().public_key().to_string(), public);
    assert_eq!(key().id().to_string(), "548f8c1645ce55b4");
    assert_eq!(PublicKey::parse(public), Ok(key().public_key()));
    assert_eq!(PublicKey::parse(&public.to_uppercase()), Ok(key().public_key()));
}

#[test]
fn weak_and_non_canonical_public_keys_are_rejected() {
    // Points of small order, and y = p + 3: the point with y = 3 in a second form.
    let ones: [&str; 4] = [
        "0100000000000000000000000000000000000000000000000000000000000000",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "f0ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    ];
    for text in ones {
        assert_eq!(PublicKey::parse(text), Err(KeyError::NotAKey), "{text}");
    }
    for text in ["", "03a1", &"0".repeat(63), &"0".repeat(65), &"+1".repeat(32), &"ä".repeat(32)] {
        assert_eq!(PublicKey::parse(text), Err(KeyError::NotHex), "{text}");
    }
}

proptest! {
    #[test]
    fn parsing_any_text_as_a_public_key_does_not_panic(text in ".{0,70}|[0-9a-fA-F]{62,66}") {
        if let Ok(key) = PublicKey::parse(&text) {
            prop_assert_eq!(key.to_string(), text.to_lowercase());
        }
    }

    #[test]
    fn parsing_any_bytes_as_a_public_key_does_not_panic(bytes: [u8; 32]) {
        if let Ok(key) = PublicKey::from_bytes(&bytes) {
            prop_assert_eq!(key.as_bytes(), &bytes);
        }
    }
}
