//! Names that reach no file: what is said about each, and that nothing is touched.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tenure_host::paths::{PathError, PathTarget, target_of};

use crate::reexec;

fn tree() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::create_dir_all(root.join(".git")).unwrap();
    fs::write(root.join(".git/HEAD"), "").unwrap();
    fs::create_dir_all(root.join("src")).unwrap();
    fs::write(root.join("file.txt"), "").unwrap();
    (folder, root)
}

#[test]
fn invalid_paths_have_distinct_errors() {
    let (_folder, root) = tree();
    symlink("round", root.join("and")).unwrap();
    symlink("and", root.join("round")).unwrap();
    for number in 0..60 {
        symlink(format!("chain{}", number + 1), root.join(format!("chain{number}"))).unwrap();
    }
    let error = |path: &str| target_of(path.as_ref(), &root).unwrap_err();
    for folder in ["src", "src/", ".", "..", "", "new/", "src/..", "/"] {
        let error = error(folder);
        assert!(matches!(error, PathError::NotAFile(_) | PathError::Empty), "{folder}: {error:?}");
    }
    assert!(matches!(error("file.txt/"), PathError::NotAFolder(_)));
    assert!(matches!(error("file.txt/below"), PathError::NotAFolder(_)));
    for endless in ["round", "and/x", "chain0", "chain5/new/file", "none/../round"] {
        assert!(matches!(error(endless), PathError::Loop(_)), "{endless}");
    }
    assert!(target_of("chain40".as_ref(), &root).is_ok(), "a few links are no loop");
    assert!(matches!(error(&"x".repeat(300)), PathError::TooLong(_)));
    assert!(matches!(error(&"long/".repeat(2_000)), PathError::TooLong(_)));
    let zero = OsStr::from_bytes(b"file\0.txt");
    assert!(matches!(target_of(zero.as_ref(), &root), Err(PathError::Nul(_))));
}

#[test]
fn every_error_says_what_to_do_on_one_line() {
    let (_folder, root) = tree();
    symlink("round\n", root.join("round\n")).unwrap();
    for (path, help) in [
        ("", "name the file"),
        ("src", "name the file in it"),
        ("round\n", "readlink"),
        ("file.txt/x", "correct"),
    ] {
        let message = target_of(path.as_ref(), &root).unwrap_err().to_string();
        assert!(message.contains(help) && message.lines().count() == 1, "{message}");
    }
}

#[test]
fn paths_of_maximum_length_have_a_key() {
    let (_folder, root) = tree();
    // 250 bytes that are escaped each, often enough that no name could hold them.
    let folders: PathBuf = std::iter::repeat_n("%".repeat(250), 12).collect();
    let PathTarget::File(file) = target_of(&folders.join("file"), &root).unwrap() else { panic!("outside") };
    assert!(file.resource.contains("/.long/"), "{}", file.resource);
    let PathTarget::File(other) = target_of(&folders.join("other"), &root).unwrap() else {
        panic!("outside")
    };
    assert_ne!(file.resource, other.resource);
}

#[test]
fn read_only_folders_and_a_missing_cwd_are_accepted() {
    let (_folder, root) = tree();
    fs::set_permissions(root.join("src"), fs::Permissions::from_mode(0o555)).unwrap();
    assert!(matches!(target_of("new.rs".as_ref(), &root.join("src")).unwrap(), PathTarget::File(_)));
    let gone = root.join("gone");
    let PathTarget::File(file) = target_of("../file.txt".as_ref(), &gone).unwrap() else { panic!("outside") };
    assert_eq!(file.absolute, root.join("file.txt"));
    assert!(matches!(target_of("x".as_ref(), &gone).unwrap(), PathTarget::File(_)));
}

/// As somebody who is not allowed everything.
#[test]
fn an_unsearchable_folder_is_reported_as_no_permission() {
    const NAME: &str = "paths::errors::an_unsearchable_folder_is_reported_as_no_permission";
    if reexec::is_inside() || !rustix::process::geteuid().is_root() {
        let (_folder, root) = tree();
        fs::create_dir(root.join("shut")).unwrap();
        fs::set_permissions(root.join("shut"), fs::Permissions::from_mode(0o600)).unwrap();
        let error = target_of("shut/file".as_ref(), &root).unwrap_err();
        assert!(matches!(error, PathError::NoPermission(_)), "{error:?}");
        // Not being allowed to list a folder does not keep anybody from a file in it.
        fs::set_permissions(root.join("src"), fs::Permissions::from_mode(0o300)).unwrap();
        assert!(matches!(target_of("src/New.rs".as_ref(), &root).unwrap(), PathTarget::File(_)));
        fs::set_permissions(root.join(".git"), fs::Permissions::from_mode(0o000)).unwrap();
        assert!(matches!(target_of("file.txt".as_ref(), &root).unwrap(), PathTarget::File(_)));
        fs::set_permissions(root.join(".git"), fs::Permissions::from_mode(0o700)).unwrap();
        fs::set_permissions(root.join("src"), fs::Permissions::from_mode(0o700)).unwrap();
        fs::set_permissions(root.join("shut"), fs::Permissions::from_mode(0o700)).unwrap();
        return;
    }
    let place = tempfile::tempdir_in("/tmp").unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
    // The folder of the tests may be closed to others.
    let program = place.path().join("tests");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    reexec::rerun_program(&program, &["env"], NAME, |command| {
        command.uid(65_534).gid(65_534).env("TMPDIR", place.path()).current_dir("/");
    });
}

#[test]
fn pipes_devices_and_descriptor_paths_are_resolved() {
    let (_folder, root) = tree();
    let made = std::process::Command::new("mkfifo").arg(root.join("pipe")).status().unwrap();
    assert!(made.success());
    assert!(matches!(target_of("pipe".as_ref(), &root).unwrap(), PathTarget::File(_)));
    assert_eq!(target_of(Path::new("/dev/null"), &root).unwrap(), PathTarget::Outside);
    assert_eq!(target_of(Path::new("/proc/self/stat"), &root).unwrap(), PathTarget::Outside);
    let file = fs::File::open(root.join("file.txt")).unwrap();
    let through = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
    let reached = target_of(through.as_ref(), &root).unwrap();
    assert_eq!(reached, target_of("file.txt".as_ref(), &root).unwrap());
    fs::remove_file(root.join("file.txt")).unwrap();
    assert!(target_of(through.as_ref(), &root).is_ok());
}
