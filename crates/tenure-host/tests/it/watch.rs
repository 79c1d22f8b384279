//! What is told of a real working tree in which things change.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use tenure_host::git;
use tenure_host::paths::work_tree_of;
use tenure_host::watch::{ChangeKind, TreeChange, TreeWatch};

use crate::git::support::{Repository, paths};

fn watched(repository: &Repository) -> TreeWatch {
    TreeWatch::open(&work_tree_of(&repository.root).unwrap().unwrap()).unwrap()
}

/// Everything that was told since, each once.
fn read(watch: &mut TreeWatch) -> BTreeSet<(String, ChangeKind)> {
    changes(watch).into_iter().map(|change| (text(&change.path), change.kind)).collect()
}

fn changes(watch: &mut TreeWatch) -> Vec<TreeChange> {
    let mut all = Vec::new();
    loop {
        let seen = watch.read();
        all.extend(seen.changes);
        if seen.is_drained {
            return all;
        }
    }
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

trait ChangeSet {
    fn contains_change(&self, path: &str, kind: ChangeKind) -> bool;
}

impl ChangeSet for BTreeSet<(String, ChangeKind)> {
    fn contains_change(&self, path: &str, kind: ChangeKind) -> bool {
        self.contains(&(path.to_owned(), kind))
    }
}

// S4-15
#[test]
fn every_kind_of_file_change_is_reported() {
    let repository = Repository::new();
    let at = |name: &str| repository.root.join(name);
    for name in ["written", "cut", "mode", "removed", "old", "over", "linked"] {
        repository.write(name, "text");
    }
    let mut watch = watched(&repository);
    assert_eq!(read(&mut watch), BTreeSet::new(), "what was there before is no change");
    fs::write(at("written"), "other").unwrap();
    fs::File::options().write(true).open(at("cut")).unwrap().set_len(1).unwrap();
    fs::set_permissions(at("mode"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(at("removed")).unwrap();
    fs::rename(at("old"), at("new")).unwrap();
    fs::rename(repository.root.join("new"), at("over")).unwrap();
    fs::hard_link(at("linked"), at("hard")).unwrap();
    symlink("linked", at("soft")).unwrap();
    fs::write(at("made"), "").unwrap();
    let _ = fs::read(at("linked")).unwrap();
    let changes = read(&mut watch);
    for (path, kind) in [
        ("written", ChangeKind::Written),
        ("cut", ChangeKind::Written),
        ("mode", ChangeKind::Attributes),
        ("removed", ChangeKind::Removed),
        ("old", ChangeKind::Removed),
        ("over", ChangeKind::MovedIn),
        ("hard", ChangeKind::Created),
        ("soft", ChangeKind::Created),
        ("made", ChangeKind::Created),
    ] {
        assert!(changes.contains_change(path, kind), "{path} {kind:?}: {changes:?}");
    }
    assert!(
        !changes.iter().any(|(path, _)| path == "linked"),
        "it was read, and has a second name: {changes:?}"
    );
}

#[test]
fn files_in_new_nested_folders_are_reported() {
    let repository = Repository::new();
    let mut watch = watched(&repository);
    repository.write("a/b/c/d/e/deep", "text");
    repository.write("a/b/beside", "text");
    let changes = read(&mut watch);
    assert!(
        changes.contains_change("a/b/c/d/e/deep", ChangeKind::Created)
            && changes.contains_change("a/b/beside", ChangeKind::Created),
        "{changes:?}"
    );
    assert_eq!(watch.coverage().folders, 6);
    repository.write("a/b/c/d/e/deep", "more");
    repository.write("a/b/c/later", "text");
    let changes = read(&mut watch);
    assert!(
        changes.contains_change("a/b/c/d/e/deep", ChangeKind::Written)
            && changes.contains_change("a/b/c/later", ChangeKind::Created),
        "{changes:?}"
    );
    fs::remove_dir_all(repository.root.join("a")).unwrap();
    assert!(read(&mut watch).contains_change("a/b/c/d/e/deep", ChangeKind::Removed));
    assert_eq!(watch.coverage().folders, 1, "folders that are gone are watched no longer");
}

#[test]
fn moving_a_folder_reports_its_files() {
    let repository = Repository::new();
    let at = |name: &str| repository.root.join(name);
    repository.write("from/below/file", "text");
    let outside = repository.sibling_path("outside");
    fs::create_dir_all(outside.join("inner")).unwrap();
    fs::write(outside.join("inner/foreign"), "text").unwrap();
    let mut watch = watched(&repository);
    // In.
    fs::rename(&outside, at("inside")).unwrap();
    assert!(read(&mut watch).contains_change("inside/inner/foreign", ChangeKind::MovedIn));
    fs::write(at("inside/inner/foreign"), "more").unwrap();
    assert!(read(&mut watch).contains_change("inside/inner/foreign", ChangeKind::Written));
    // To another place.
    fs::rename(at("from"), at("to")).unwrap();
    let changes = read(&mut watch);
    assert!(
        changes.contains_change("from/below/file", ChangeKind::Removed)
            && changes.contains_change("to/below/file", ChangeKind::MovedIn),
        "{changes:?}"
    );
    assert!(!changes.iter().any(|(_, kind)| *kind == ChangeKind::FolderMovedOut), "{changes:?}");
    fs::write(at("to/below/file"), "more").unwrap();
    assert_eq!(read(&mut watch), BTreeSet::from([("to/below/file".to_owned(), ChangeKind::Written)]));
    // Out.
    fs::rename(at("to"), &outside).unwrap();
    assert_eq!(read(&mut watch), BTreeSet::from([("to".to_owned(), ChangeKind::FolderMovedOut)]));
    fs::write(outside.join("below/file"), "elsewhere").unwrap();
    assert_eq!(read(&mut watch), BTreeSet::new(), "what is outside is nobody's");
}

#[test]
fn files_created_after_a_folder_move_are_not_reported_at_the_old_path() {
    let repository = Repository::new();
    let at = |name: &str| repository.root.join(name);
    for name in ["dd/e/old", "dd/e/gone", "dd/again"] {
        repository.write(name, "text");
    }
    let mut watch = watched(&repository);
    fs::rename(at("dd"), at("d3")).unwrap();
    repository.write("d3/e/new", "text");
    repository.write("d3/f/g/new", "text");
    fs::remove_file(at("d3/e/gone")).unwrap();
    fs::remove_file(at("d3/again")).unwrap();
    repository.write("d3/again", "text");
    let changes = read(&mut watch);
    for (path, kind) in [
        ("dd/e/old", ChangeKind::Removed),
        ("d3/e/old", ChangeKind::MovedIn),
        ("dd/again", ChangeKind::Removed),
        ("dd/e/gone", ChangeKind::Removed),
        ("d3/e/gone", ChangeKind::Removed),
        ("d3/e/new", ChangeKind::Created),
        ("d3/f/g/new", ChangeKind::Created),
    ] {
        assert!(changes.contains_change(path, kind), "{path} {kind:?}: {changes:?}");
    }
    let invented = ["dd/e/new", "dd/f/g/new"];
    assert!(!changes.iter().any(|(path, _)| invented.contains(&path.as_str())), "{changes:?}");
    // And twice, before anybody looks.
    fs::rename(at("d3"), at("d4")).unwrap();
    fs::rename(at("d4"), at("d5")).unwrap();
    let changes = read(&mut watch);
    assert!(
        changes.contains_change("d3", ChangeKind::FolderMovedOut)
            && changes.contains_change("d5/e/old", ChangeKind::MovedIn),
        "{changes:?}"
    );
    repository.write("d5/f/g/new", "more");
    assert_eq!(read(&mut watch), BTreeSet::from([("d5/f/g/new".to_owned(), ChangeKind::Written)]));
    assert_eq!(watch.coverage().folders, 5, "the root, `d5`, and those in it");
}

#[test]
fn ignored_folders_git_folders_and_nested_repositories_are_not_watched() {
    let repository = Repository::new();
    repository.write(".gitignore", "target/\n/out\n*.log\nkept/\n");
    repository.write("kept/known", "text");
    repository.git(&["add", "--force", "kept/known"]);
    repository.write("target/debug/deps/x", "text");
    fs::create_dir(repository.root.join("inner")).unwrap();
    crate::git::support::git_in(&repository.root.join("inner"), &["init", "--quiet"]);
    let mut watch = watched(&repository);
    assert_eq!(watch.coverage().folders, 2, "the root, and `kept`: git knows what is in it");
    repository.write("target/debug/deps/x", "more");
    repository.write("out/late/y", "text");
    repository.write("inner/file", "text");
    repository.git(&["add", "inner/../.gitignore"]);
    assert_eq!(read(&mut watch), BTreeSet::new());
    repository.write("kept/known", "more");
    assert!(read(&mut watch).contains_change("kept/known", ChangeKind::Written));
    let candidates =
        paths(["a.log", ":odd\n.log", "target", "kept", "kept/known", "gone.log", "../x.log", "b"]);
    let found = git::ignored_paths(&repository.root, &candidates).unwrap();
    assert_eq!(found, paths(["a.log", ":odd\n.log", "target", "gone.log"]));
    assert_eq!(git::ignored_paths(&repository.root, &paths(["b"])).unwrap(), paths([]));
}

#[test]
fn two_thousand_files_created_at_once_are_all_reported() {
    let repository = Repository::new();
    let mut watch = watched(&repository);
    for number in 0..2_000 {
        repository.write(format!("folder-{}/file-{number}", number % 20), "text");
    }
    let changes = read(&mut watch);
    let files: BTreeSet<&String> = changes.iter().map(|(path, _)| path).collect();
    assert_eq!((files.len(), watch.coverage().missed), (2_000, 0));
}

// S4-15
#[test]
fn changes_by_git_checkout_are_marked_as_by_git() {
    let repository = Repository::new();
    let first = repository.commit(&[("a", "one"), ("b", "one")]);
    repository.commit(&[("a", "two"), ("b", "two")]);
    let mut watch = watched(&repository);
    repository.write("mine", "before");
    repository.git(&["checkout", "--quiet", &first]);
    repository.write("mine", "after");
    let all_changes = changes(&mut watch);
    let of =
        |name: &str| all_changes.iter().filter(|change| change.path == Path::new(name)).collect::<Vec<_>>();
    assert!(
        !of("a").is_empty() && of("a").iter().chain(&of("b")).all(|change| change.by_git),
        "{all_changes:?}"
    );
    assert!(!of("mine").is_empty() && of("mine").iter().all(|change| !change.by_git), "{all_changes:?}");
}

#[test]
fn moving_the_root_away_ends_the_watch() {
    let repository = Repository::new();
    let mut watch = watched(&repository);
    assert!(!watch.read().is_root_gone);
    fs::rename(&repository.root, repository.sibling_path("elsewhere")).unwrap();
    assert!(watch.read().is_root_gone);
}
