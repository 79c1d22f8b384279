//! Patches and new names: which files change stands in the patch, or in the tree.

use std::fs;
use std::path::Path;

use tenure_host::git::changes_many_files;

use crate::git::impact_support::{
    dirty_repository, predicted_paths, run_and_compare, split_arguments, two_branches,
};
use crate::git::support::{Repository, git_command, git_in, paths};

/// A patch beside the repository: `b` changes, `d/b` gets another name, `fresh/x` is new, `two words` goes away.
fn with_patch() -> Repository {
    let repository = two_branches();
    let text = |word: &str| (0..20).map(|line| format!("{word} {line}\n")).collect::<String>();
    repository.commit(&[("b", &text("b")), ("d/b", &text("d/b")), ("two words", "1\n")]);
    repository.git(&["checkout", "--quiet", "-b", "patched"]);
    repository.git(&["mv", "d/b", "d/c"]);
    repository.git(&["rm", "--quiet", "two words"]);
    repository.commit(&[("b", &(text("b") + "more\n")), ("fresh/x", "1\n")]);
    let patch = repository.git(&["diff", "-M", "main", "patched"]) + "\n";
    fs::write(repository.sibling_path("patch"), patch).unwrap();
    repository.write("a", "2\n");
    repository.write("d/a", "2\n");
    let plain = repository.git(&["diff"]) + "\n";
    fs::write(repository.sibling_path("plain"), plain).unwrap();
    repository.git(&["checkout", "--quiet", "."]);
    repository.git(&["format-patch", "--quiet", "-o", "../mails", "main..patched"]);
    repository.git(&["checkout", "--quiet", "main"]);
    repository.write("a", "theirs\n");
    repository
}

const PATCHED: [&str; 5] = ["b", "d/b", "d/c", "fresh/x", "two words"];

#[test]
fn a_patch_predicts_exactly_its_files() {
    for (folder, line, expected, lost) in [
        ("", "git apply ../patch", &PATCHED[..], 3),
        ("", "git apply --index ../patch", &PATCHED, 3),
        ("", "git apply -3 -- ../patch", &PATCHED, 3),
        ("", "git apply --stat --apply ../patch", &PATCHED, 3),
        ("", "git apply -R ../patch", &PATCHED, 0),
        // Only what lies below; but names change in it, which may lead out.
        ("d", "git apply ../../patch", &PATCHED, 1),
        ("d", "git apply ../../plain", &["d/a"], 1),
        ("", "git apply --directory=d ../patch", &["d/b", "d/d/b", "d/d/c", "d/fresh/x", "d/two words"], 0),
        ("", "git apply ../mails/0001-work.patch", &PATCHED, 3),
        ("", "git am -q ../mails/0001-work.patch", &PATCHED, 3),
        ("d", "git am -q ../../mails/0001-work.patch", &PATCHED, 3),
        ("", "git apply ../absent", &[], 0),
        ("", "git apply /dev/stdin", &[], 0),
        ("", "git apply ../absent ../patch", &PATCHED, 0),
    ] {
        let repository = with_patch();
        assert_eq!(run_and_compare(&repository, folder, line, expected), lost, "{line}");
        assert_eq!(fs::read(repository.root.join("a")).unwrap(), b"theirs\n", "{line}");
    }
    for line in ["git apply", "git apply --check x", "git apply --cached x", "git apply --numstat x"] {
        assert!(!changes_many_files(&split_arguments(line)), "{line}");
    }
}

#[test]
fn rejected_hunks_predict_their_rej_files() {
    let repository = with_patch();
    repository.write("b", "other\n");
    repository.write("b.rej", "mine\n");
    let named = predicted_paths(&repository.root, "git apply --reject ../patch");
    assert!(named.contains(&"b.rej".into()));
    let expected: Vec<_> = named.iter().map(|path| path.to_str().unwrap()).collect();
    assert_eq!(run_and_compare(&repository, "", "git apply --reject ../patch", &expected), 3);
    assert_ne!(fs::read(repository.root.join("b.rej")).unwrap(), b"mine\n");
}

#[test]
fn three_way_am_with_renames_predicts_every_tracked_file() {
    let repository = with_patch();
    repository.git(&["mv", "b", "moved"]);
    repository.git(&["commit", "--quiet", "--message", "b moves"]);
    let line = "git am -q -3 ../mails/0001-work.patch";
    let everything = [".gitignore", "a", "b", "d/a", "d/b", "d/c", "fresh/x", "moved", "two words"];
    assert_eq!(run_and_compare(&repository, "", line, &everything), 3);
    assert!(fs::read_to_string(repository.root.join("moved")).unwrap().ends_with("more\n"));
}

#[test]
fn unreadable_patches_predict_dirty_files() {
    let repository = with_patch();
    assert_eq!(predicted_paths(&repository.root, "git am"), paths(["a"]));
    assert_eq!(predicted_paths(&repository.root, "git am ../mails"), paths(["a"]), "a folder");
    assert_eq!(predicted_paths(&repository.root, "git am a"), paths(["a"]));
    repository.git(&["add", "a"]);
    assert_eq!(predicted_paths(&repository.root, "git am ../mails/0001-work.patch").len(), 6, "it is staged");
}

/// Reading a patch from a pipe would take it away from git itself.
#[test]
fn patches_from_a_pipe_are_not_read() {
    let repository = with_patch();
    let pipe = repository.sibling_path("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).unwrap();
    assert_eq!(predicted_paths(&repository.root, "git apply ../pipe"), paths([]));
}

#[test]
fn mv_predicts_both_names() {
    for (folder, line, expected, lost) in [
        ("", "git mv b c", &["b", "c"][..], 1),
        ("", "git mv a b d", &["a", "b", "d/a", "d/b"], 0),
        ("", "git mv -f a b d", &["a", "b", "d/a", "d/b"], 2),
        ("", "git mv b ./d/../e", &["b", "e"], 1),
        ("d", "git mv b ..", &["b", "d/b"], 0),
        ("d", "git mv b ../new", &["d/b", "new"], 1),
        ("", "git mv d e", &["d/a", "d/b", "d/u", "e/a", "e/b", "e/u"], 3),
        ("", "git -C d mv ../b x", &["b", "d/x"], 1),
        ("", "git mv -n b c", &[], 0),
        ("", "git mv [b] c", &[], 0),
        ("", "git mv ../x c", &[], 0),
    ] {
        assert_eq!(run_and_compare(&dirty_repository(), folder, line, expected), lost, "{line}");
    }
}

/// A partial clone does not have what it never needed, and nobody goes to fetch it for a question.
#[test]
fn predicting_in_a_partial_clone_fetches_nothing() {
    let origin = two_branches();
    origin.git(&["config", "uploadpack.allowFilter", "true"]);
    origin.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
    origin.git(&["mv", "a", "renamed"]);
    origin.git(&["commit", "--quiet", "--message", "a moves"]);
    let clone = origin.sibling_path("clone");
    let url = format!("file://{}", origin.root.display());
    let to = clone.to_str().unwrap();
    git_in(Path::new("/"), &["clone", "--quiet", "--filter=blob:none", "--branch=main", &url, to]);
    let objects = || git_in(&clone, &["count-objects", "-v"]);
    let before = objects();
    let named = predicted_paths(&clone, "git merge origin/side");
    assert_eq!(objects(), before);
    git_command(&clone).args(["merge", "--quiet", "origin/side"]).output().unwrap();
    assert_ne!(objects(), before);
    for path in paths(["b", "d/b", "new"]) {
        assert!(named.contains(&path), "{named:?}");
    }
}
