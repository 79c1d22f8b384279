//! Working trees as real git makes them, and names that lead from one into another.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use tenure_host::paths::{FileKey, PathTarget, WorkTree, target_of, unescape, work_tree_of};

struct TestFolder(TempDir);

impl TestFolder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    fn git(&self, folder: &str, arguments: &[&str]) {
        let mut command = Command::new("git");
        command.args(["-c", "protocol.file.allow=always", "-c", "user.name=n", "-c", "user.email=e"]);
        // Whatever git the test itself was started from, it is not meant.
        command.env_remove("GIT_DIR").env_remove("GIT_WORK_TREE").env_remove("GIT_INDEX_FILE");
        let output = command.args(arguments).current_dir(self.at(folder)).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// A repository with one commit.
    fn repository(&self, name: &str) {
        fs::create_dir_all(self.at(name)).unwrap();
        self.git(name, &["init", "-q"]);
        fs::write(self.at(name).join("file.txt"), "text\n").unwrap();
        self.git(name, &["add", "."]);
        self.git(name, &["commit", "-qm", "first"]);
    }

    fn file(&self, name: &str) -> FileKey {
        match target_of(&self.at(name), Path::new("/")).unwrap() {
            PathTarget::File(file) => file,
            PathTarget::Outside => panic!("{name} is outside"),
        }
    }

    fn is_outside(&self, name: &str) -> bool {
        target_of(&self.at(name), Path::new("/")).unwrap() == PathTarget::Outside
    }

    fn tree(&self, name: &str) -> Option<WorkTree> {
        work_tree_of(&self.at(name)).unwrap()
    }
}

// S4-17
#[test]
fn all_spellings_of_a_path_have_the_same_key() {
    let place = TestFolder::new();
    place.repository("repo");
    fs::create_dir_all(place.at("repo/src/deep")).unwrap();
    fs::write(place.at("repo/src/lib.rs"), "").unwrap();
    symlink("src", place.at("repo/link")).unwrap();
    let file = place.file("repo/src/lib.rs");
    assert_eq!(file.resource, format!("FILE:{}/src/lib.rs", file.tree.id));
    assert_eq!((&*file.relative, &file.absolute), (Path::new("src/lib.rs"), &place.at("repo/src/lib.rs")));
    assert_eq!((file.tree.id.len(), file.aliases.len()), (16, 0));
    assert_eq!(unescape(file.resource.split_once('/').unwrap().1), file.relative);
    let ways =
        [("lib.rs", "src"), ("./src//deep/../lib.rs", ""), ("../link/./lib.rs", "src"), ("lib.rs", "link")];
    for (path, cwd) in ways {
        let cwd = place.at("repo").join(cwd);
        assert_eq!(
            target_of(path.as_ref(), &cwd).unwrap(),
            PathTarget::File(file.clone()),
            "{path} in {cwd:?}"
        );
    }
}

#[test]
fn a_missing_file_has_a_key_before_its_folders_exist() {
    let place = TestFolder::new();
    place.repository("repo");
    let file = place.file("repo/new/folder/file.rs");
    assert!(
        file.resource.ends_with("/new/folder/file.rs") && file.identity.is_none() && file.aliases.is_empty()
    );
    assert_eq!(place.file("repo/new/./x/../folder/file.rs").resource, file.resource);
    symlink("new/folder/file.rs", place.at("repo/dangling")).unwrap();
    assert_eq!(place.file("repo/dangling").resource, file.resource);
    // What comes after a folder that is not there and back is there again, and may be a link.
    symlink("file.txt", place.at("repo/link")).unwrap();
    assert_eq!(place.file("repo/none/../link"), place.file("repo/file.txt"));
    assert!(!place.at("repo/new").exists(), "nothing is created");
}

#[test]
fn a_linked_worktree_is_a_separate_work_tree() {
    let place = TestFolder::new();
    place.repository("repo");
    place.git("repo", &["worktree", "add", "-q", "../linked"]);
    let (main, linked) = (place.file("repo/file.txt"), place.file("linked/file.txt"));
    assert_ne!(main.resource, linked.resource);
    assert_eq!(main.tree.git_dir, place.at("repo/.git"));
    assert_eq!(linked.tree.git_dir, place.at("repo/.git/worktrees/linked"));
    assert_eq!(linked.tree.root, place.at("linked"));
    place.git("repo", &["worktree", "add", "-q", "inside"]);
    assert_eq!(place.file("repo/inside/file.txt").tree.root, place.at("repo/inside"));
    assert!(place.is_outside("linked/.git") && place.is_outside("repo/.git/worktrees/linked/HEAD"));
}

#[test]
fn a_submodule_is_a_separate_work_tree() {
    let place = TestFolder::new();
    place.repository("library");
    place.repository("repo");
    place.git(
        "repo",
        &["submodule", "--quiet", "add", &place.at("library").display().to_string(), "vendor/library"],
    );
    let file = place.file("repo/vendor/library/file.txt");
    assert_eq!((file.tree.root, &*file.relative), (place.at("repo/vendor/library"), Path::new("file.txt")));
    assert_eq!(file.tree.git_dir, place.at("repo/.git/modules/vendor/library"));
    assert_eq!(place.file("repo/.gitmodules").tree.root, place.at("repo"));
    assert!(place.is_outside("repo/.git/modules/vendor/library/config"));
}

#[test]
fn bare_repositories_and_git_folders_have_no_work_tree() {
    let place = TestFolder::new();
    place.repository("repo");
    place.git("", &["clone", "-q", "--bare", "repo", "bare.git"]);
    assert!(place.tree("bare.git").is_none() && place.is_outside("bare.git/config"));
    assert!(place.tree("repo/.git").is_none() && place.tree("repo/.git/hooks").is_none());
    assert!(place.is_outside("repo/.git/config") && place.is_outside("repo/.GIT/config"));
    assert!(place.tree("").is_none() && place.is_outside("file.txt"));
    // A folder that is only called so is none, for git neither.
    fs::create_dir_all(place.at("plain/.git")).unwrap();
    assert!(place.is_outside("plain/file.txt"));
    fs::write(place.at("plain/.git/HEAD"), "").unwrap();
    assert!(!place.is_outside("plain/file.txt"));
}

#[test]
fn a_work_tree_is_found_from_folders_files_and_missing_paths() {
    let place = TestFolder::new();
    place.repository("repo");
    fs::create_dir(place.at("repo/src")).unwrap();
    let tree = place.tree("repo").unwrap();
    for name in ["repo/", "repo/src", "repo/file.txt", "repo/none/at/all", "repo/.gitignore"] {
        assert_eq!(place.tree(name).as_ref(), Some(&tree), "{name}");
    }
    symlink("repo", place.at("other-name")).unwrap();
    assert_eq!(place.tree("other-name/src"), Some(tree.clone()));
    fs::rename(place.at("repo"), place.at("renamed")).unwrap();
    assert_eq!(
        place.tree("renamed").unwrap().id,
        tree.id,
        "the same folder under another name is the same tree"
    );
}

#[test]
fn symlinks_out_of_the_work_tree_are_followed() {
    let place = TestFolder::new();
    place.repository("repo");
    place.repository("other");
    fs::write(place.at("outside.txt"), "").unwrap();
    symlink("../outside.txt", place.at("repo/out")).unwrap();
    symlink(".git/config", place.at("repo/configuration")).unwrap();
    symlink(".git", place.at("repo/folder")).unwrap();
    symlink(place.at("other"), place.at("repo/elsewhere")).unwrap();
    symlink("repo/file.txt", place.at("into")).unwrap();
    assert!(place.is_outside("repo/out") && place.is_outside("repo/configuration"));
    assert!(place.is_outside("repo/folder/hooks/post-commit") && place.is_outside("/dev/null"));
    assert_eq!(place.file("repo/elsewhere/file.txt"), place.file("other/file.txt"));
    assert_eq!(place.file("into"), place.file("repo/file.txt"));
}

#[test]
fn paths_with_dot_dot_after_a_symlink_include_both_interpretations() {
    let place = TestFolder::new();
    place.repository("repo");
    fs::create_dir_all(place.at("repo/a/b")).unwrap();
    fs::write(place.at("repo/a/file.txt"), "").unwrap();
    symlink("a/b", place.at("repo/link")).unwrap();
    // The system goes to `a/b` and up to `a`; a tool that shortens stays at the root.
    let file = place.file("repo/link/../file.txt");
    assert_eq!(file.resource, place.file("repo/a/file.txt").resource);
    assert_eq!(file.aliases, [place.file("repo/file.txt").resource]);
    // Where one of both ways leads nowhere, the other one counts.
    symlink("/tmp", place.at("repo/away")).unwrap();
    assert_eq!(place.file("repo/away/../file.txt").resource, place.file("repo/file.txt").resource);
    assert_eq!(place.file("repo/file.txt/../file.txt").resource, place.file("repo/file.txt").resource);
}

#[test]
fn hard_links_share_an_alias_and_other_files_have_none() {
    let place = TestFolder::new();
    place.repository("repo");
    place.repository("other");
    assert!(place.file("repo/file.txt").aliases.is_empty());
    fs::hard_link(place.at("repo/file.txt"), place.at("repo/second.txt")).unwrap();
    fs::hard_link(place.at("repo/file.txt"), place.at("other/third.txt")).unwrap();
    let files = ["repo/file.txt", "repo/second.txt", "other/third.txt"].map(|name| place.file(name));
    assert!(files.iter().all(|file| file.aliases == files[0].aliases && file.aliases.len() == 1));
    assert!(files[0].resource != files[1].resource && files[0].aliases[0].contains("/.inode/"));
    assert!(!files[0].aliases[0].contains(&files[0].tree.id), "it belongs to no tree");
}
