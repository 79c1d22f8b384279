//! One file seen through several mounts, in a mount namespace of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tenure_host::paths::{FileKey, PathTarget, target_of};

use crate::reexec;

const NAME: &str = "paths::mounts::paths_through_other_mounts_share_a_resource";

fn bind(from: &Path, to: &Path) {
    let status = Command::new("mount").arg("--bind").args([from, to]).status().unwrap();
    assert!(status.success(), "{from:?} on {to:?}");
}

fn file(path: PathBuf) -> FileKey {
    match target_of(&path, Path::new("/")).unwrap() {
        PathTarget::File(file) => file,
        PathTarget::Outside => panic!("{path:?} is outside"),
    }
}

fn share(one: &FileKey, other: &FileKey) -> bool {
    one.resources().any(|resource| other.resources().any(|another| another == resource))
}

// S4-17
#[test]
fn paths_through_other_mounts_share_a_resource() {
    if reexec::is_inside() {
        return inside();
    }
    let ways: [&[&str]; 2] = [&["unshare", "-m"], &["unshare", "-r", "-m"]];
    let works = |way: &&&[&str]| {
        // It must let us mount, too.
        let trial = ["sh", "-c", "d=$(mktemp -d) && mount --bind $d $d && umount $d && rmdir $d"];
        reexec::command_succeeds(&[**way, &trial].concat())
    };
    match ways.iter().find(works) {
        Some(way) => reexec::rerun(way, NAME),
        None => println!("skipped: this kernel lets us have no mounts of our own"),
    }
}

fn inside() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().canonicalize().unwrap().join(name);
    for tree in ["repo", "other"] {
        fs::create_dir_all(at(tree).join(".git")).unwrap();
        fs::write(at(tree).join(".git/HEAD"), "").unwrap();
    }
    for name in ["repo/src", "repo/mirror", "other/vendor", "view", "whole", "repo/ram"] {
        fs::create_dir_all(at(name)).unwrap();
    }
    for name in ["repo/src/lib.rs", "repo/single", "seen", "repo/plain", "other/plain"] {
        fs::write(at(name), "").unwrap();
    }
    assert!(file(at("repo/src/lib.rs")).aliases.is_empty(), "nothing is mounted yet");
    // The whole tree at a second place is the same tree.
    bind(&at("repo"), &at("whole"));
    assert_eq!(file(at("whole/src/lib.rs")).resource, file(at("repo/src/lib.rs")).resource);
    // A folder of it at another place in it, in another tree, and where no tree is; and a single file.
    bind(&at("repo/src"), &at("repo/mirror"));
    bind(&at("repo/src"), &at("other/vendor"));
    bind(&at("repo/src"), &at("view"));
    bind(&at("repo/single"), &at("seen"));
    for name in ["lib.rs", "new.rs", "new/folder/file.rs"] {
        let names = ["repo/src", "repo/mirror", "other/vendor", "view", "whole/src"]
            .map(|folder| at(folder).join(name));
        let files = names.map(file);
        for one in &files {
            assert!(files.iter().all(|other| share(one, other)), "{name}: {files:#?}");
        }
    }
    // Also while the file comes to be: whoever asked before holds what the other one needs.
    let before = file(at("repo/mirror/deep/new.rs"));
    fs::create_dir(at("repo/src/deep")).unwrap();
    fs::write(at("repo/src/deep/new.rs"), "").unwrap();
    for name in ["repo/src", "repo/mirror", "other/vendor", "view"] {
        assert!(share(&before, &file(at(name).join("deep/new.rs"))), "{name}");
    }
    assert!(share(&file(at("seen")), &file(at("repo/single"))));
    // Others still have nothing to do with each other.
    assert!(!share(&file(at("repo/plain")), &file(at("other/plain"))));
    assert!(!share(&file(at("repo/mirror/lib.rs")), &file(at("repo/mirror/deep/new.rs"))));
    // Another file system below the root: a file there is what lies on it, and not what it hides.
    fs::write(at("repo/ram/file"), "").unwrap();
    let hidden = file(at("repo/ram/file"));
    let mounted = Command::new("mount").args(["-t", "tmpfs", "none"]).arg(at("repo/ram")).status().unwrap();
    assert!(mounted.success());
    fs::write(at("repo/ram/file"), "").unwrap();
    let shown = file(at("repo/ram/file"));
    assert_eq!(shown.tree, hidden.tree);
    assert_ne!(shown.identity, hidden.identity);
    assert_ne!(shown.aliases, hidden.aliases);
    for name in ["repo/ram", "seen", "view", "other/vendor", "repo/mirror", "whole"] {
        assert!(Command::new("umount").arg(at(name)).status().unwrap().success(), "{name}");
    }
}
