//! Hooks in git, run by the real git, with a `tenure` that writes down what it is told.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Output;

use tenure_hooks::install::{InstallError, InstallTarget, plan_install};
use tenure_host::git::{branch_updates, committed_paths};

use crate::git_support::{Repository, git_command};
use crate::install::support::{TestProject, snapshot};

/// A repository, and a place to install into it.
struct HookSetup {
    repository: Repository,
    project: TestProject,
}

fn set() -> HookSetup {
    let repository = Repository::new();
    fs::remove_dir_all(repository.root.join(".git/hooks")).unwrap();
    let mut project = TestProject::at_root(&repository.root);
    // A name that has to be quoted.
    project.context.program = repository.sibling_path("it's a $place/tenure");
    executable(
        &project.context.program,
        "#!/bin/sh\n{ echo \"told $*\"; [ \"$3\" = reference-transaction ] && cat; } >> \"$(dirname \"$0\")/../told\"\nexit 0\n",
    );
    HookSetup { repository, project }
}

impl HookSetup {
    fn hook(&self, name: &str) -> PathBuf {
        self.repository.root.join(".git/hooks").join(name)
    }

    /// What the program was told since the last time.
    fn recorded_calls(&self) -> String {
        let path = self.repository.sibling_path("told");
        let calls = fs::read_to_string(&path).unwrap_or_default();
        let _ = fs::remove_file(path);
        calls
    }

    /// What git does, whether it succeeds or not.
    fn try_git(&self, arguments: &[&str]) -> Output {
        git_command(&self.repository.root).args(arguments).output().unwrap()
    }

    fn commit(&self) -> Output {
        self.try_git(&["commit", "--allow-empty", "--quiet", "--message", "x"])
    }
}

fn executable(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn output_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

// S4-29
#[test]
fn every_kind_of_commit_runs_the_hooks() {
    let set = set();
    set.project.install(InstallTarget::Git);
    assert!(set.commit().status.success());
    let commit = set.repository.git(&["rev-parse", "HEAD"]);
    let calls = set.recorded_calls();
    assert!(calls.starts_with("told hook git pre-commit\n"), "{calls}");
    assert!(calls.contains("told hook git post-commit\n"), "{calls}");
    assert!(
        calls.contains(&format!(
            "told hook git reference-transaction committed\n{} {commit} HEAD\n",
            "0".repeat(40)
        )),
        "{calls}"
    );
    assert!(!calls.contains("prepared"), "{calls}");

    set.repository.git(&["commit", "--allow-empty", "--quiet", "--no-verify", "--message", "y"]);
    let calls = set.recorded_calls();
    assert!(!calls.contains("pre-commit") && calls.contains("post-commit"), "{calls}");

    let tree = set.repository.git(&["write-tree"]);
    let manual = set.repository.git(&["commit-tree", &tree, "-p", "HEAD", "-m", "z"]);
    set.recorded_calls();
    set.repository.git(&["update-ref", "refs/heads/main", &manual]);
    assert!(set.recorded_calls().contains(&format!("{manual} refs/heads/main")));
}

/// What git says of each way to commit leads to the paths of that commit, each told once.
#[test]
fn reference_updates_yield_the_committed_paths() {
    let set = set();
    let git = |arguments: &[&str]| set.repository.git(arguments);
    set.repository.commit(&[("base", "1\n")]);
    set.project.install(InstallTarget::Git);
    let committed = |expected: &[(&str, &[&str])]| {
        let calls = set.recorded_calls();
        let found: Vec<_> = branch_updates(calls.as_bytes())
            .into_iter()
            .map(|step| {
                let paths =
                    committed_paths(&set.repository.root, step.old.as_deref(), &step.new.unwrap()).unwrap();
                (step.reference, paths)
            })
            .collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, paths)| ((*name).to_owned(), paths.iter().map(PathBuf::from).collect::<Vec<_>>()))
            .collect();
        assert_eq!(found, expected, "{calls}");
    };
    set.repository.commit(&[("a", "1\n"), ("b", "1\n")]);
    committed(&[("refs/heads/main", &["a", "b"])]);
    set.repository.write("b", "2\n");
    git(&["commit", "--quiet", "--all", "--amend", "--message", "again"]);
    committed(&[("refs/heads/main", &["b"])]);
    git(&["checkout", "--quiet", "--detach"]);
    committed(&[]);
    set.repository.commit(&[("c", "1\n")]);
    committed(&[("HEAD", &["c"])]);
    git(&["switch", "--quiet", "main"]);
    committed(&[]);
    set.repository.write("b", "3\n");
    git(&["stash", "--quiet"]);
    git(&["tag", "v1"]);
    git(&["checkout", "--quiet", "HEAD~1"]);
    git(&["checkout", "--quiet", "--detach", "main"]);
    committed(&[]);
}

#[test]
fn a_thousand_branch_updates_are_all_passed_on() {
    for earlier in [None, Some("#!/bin/sh\nexit 0\n"), Some("#!/bin/sh\ncat > /dev/null\n")] {
        let set = set();
        assert!(set.commit().status.success());
        if let Some(earlier) = earlier {
            executable(&set.hook("reference-transaction"), earlier);
        }
        set.project.install(InstallTarget::Git);
        let commit = set.repository.git(&["rev-parse", "HEAD"]);
        let lines: String =
            (0..1_000).map(|number| format!("create refs/heads/branch-{number} {commit}\n")).collect();
        let input = set.repository.sibling_path("lines");
        fs::write(&input, lines).unwrap();
        set.recorded_calls();
        let input = fs::File::open(input).unwrap();
        let done =
            git_command(&set.repository.root).args(["update-ref", "--stdin"]).stdin(input).output().unwrap();
        assert!(done.status.success(), "{}", output_text(&done));
        assert_eq!(
            set.recorded_calls().lines().filter(|line| line.contains("refs/heads/branch-")).count(),
            1_000
        );
    }
}

#[test]
fn a_linked_worktree_has_the_same_hooks() {
    let set = set();
    assert!(set.commit().status.success());
    let linked = set.repository.sibling_path("linked");
    set.repository.git(&["worktree", "add", "--quiet", "-b", "other", linked.to_str().unwrap()]);
    let mut project = TestProject::at_root(&linked);
    project.context.program = set.project.context.program.clone();
    project.install(InstallTarget::Git);
    assert!(set.hook("post-commit").exists());
    let done =
        git_command(&linked).args(["commit", "--allow-empty", "--quiet", "--message", "x"]).output().unwrap();
    assert!(done.status.success());
    assert!(set.recorded_calls().contains("refs/heads/other"));
}

#[test]
fn without_the_program_git_succeeds_silently() {
    let set = set();
    set.project.install(InstallTarget::Git);
    fs::remove_file(&set.project.context.program).unwrap();
    let done = set.commit();
    assert!(done.status.success());
    assert_eq!(output_text(&done), "");
}

#[test]
fn uninstalling_removes_all_git_hooks() {
    let set = set();
    let before = snapshot(&set.repository.root);
    set.project.install(InstallTarget::Git);
    assert_eq!(set.project.install(InstallTarget::Git).changes, []);
    assert!(set.hook("pre-commit").metadata().unwrap().permissions().mode() & 0o100 != 0);
    set.project.uninstall(InstallTarget::Git);
    assert_eq!(snapshot(&set.repository.root), before);
    assert!(set.project.has_no_records());
    assert_eq!(set.project.uninstall(InstallTarget::Git).changes, []);
}

/// A hook that says its name, its arguments and its input, and ends with a code.
fn chatty_hook(code: u8) -> String {
    format!("#!/bin/sh\necho \"theirs: $(basename \"$0\") $*\"\n[ -t 0 ] || cat\nexit {code}\n")
}

#[test]
fn existing_hooks_run_first_with_the_same_input() {
    let set = set();
    for name in ["pre-commit", "post-commit", "reference-transaction"] {
        executable(&set.hook(name), &chatty_hook(0));
    }
    let before = snapshot(&set.repository.root);
    let alone = output_text(&set.commit());
    set.project.install(InstallTarget::Git);
    assert!(set.hook("pre-commit.before-tenure").exists());
    assert_eq!(set.project.install(InstallTarget::Git).changes, []);
    let together = output_text(&set.commit());
    let shape =
        |text: &str| text.lines().map(|line| line.split(' ').next().unwrap().len()).collect::<Vec<_>>();
    assert_eq!(shape(&together), shape(&alone), "they hear and say the same\n{alone}\n{together}");
    assert!(together.contains("theirs: pre-commit \n") && together.contains("theirs: post-commit \n"));
    assert!(together.contains("theirs: reference-transaction prepared\n"), "{together}");
    assert!(set.recorded_calls().contains("refs/heads/main"), "what git says reaches both");
    set.project.uninstall(InstallTarget::Git);
    set.repository.git(&["update-ref", "-d", "HEAD"]);
    let after = snapshot(&set.repository.root);
    for (path, kept) in before.iter().filter(|(path, _)| path.parent().unwrap().ends_with("hooks")) {
        assert_eq!(after.get(path), Some(kept), "{}", path.display());
    }
    assert_eq!(before.keys().filter(|path| path.parent().unwrap().ends_with("hooks")).count(), 3);
    assert_eq!(after.keys().filter(|path| path.parent().unwrap().ends_with("hooks")).count(), 3);
}

#[test]
fn existing_hooks_can_still_reject_a_commit() {
    let set = set();
    executable(&set.hook("pre-commit"), &chatty_hook(3));
    set.project.install(InstallTarget::Git);
    assert!(!set.commit().status.success());
    assert_eq!(set.recorded_calls(), "", "a commit that does not happen is nobody's");
    set.project.uninstall(InstallTarget::Git);

    fs::remove_file(set.hook("pre-commit")).unwrap();
    executable(
        &set.hook("reference-transaction"),
        "#!/usr/bin/env python3\nimport sys\nsys.exit(sys.argv[1] == 'prepared')\n",
    );
    set.project.install(InstallTarget::Git);
    let refused = set.commit();
    assert!(!refused.status.success(), "{}", output_text(&refused));

    // The end of what comes after a commit changes nothing, and Tenure hears of it all the same.
    set.project.uninstall(InstallTarget::Git);
    fs::remove_file(set.hook("reference-transaction")).unwrap();
    executable(&set.hook("post-commit"), &chatty_hook(5));
    set.project.install(InstallTarget::Git);
    set.recorded_calls();
    assert!(set.commit().status.success());
    assert!(set.recorded_calls().contains("told hook git post-commit"));
    let script = std::process::Command::new(set.hook("post-commit")).output().unwrap();
    assert_eq!(script.status.code(), Some(5));
}

#[test]
fn existing_hooks_that_git_ignores_are_not_run() {
    let set = set();
    executable(&set.hook("pre-commit"), &chatty_hook(3));
    fs::set_permissions(set.hook("pre-commit"), fs::Permissions::from_mode(0o644)).unwrap();
    symlink("nowhere", set.hook("post-commit")).unwrap();
    let before = snapshot(&set.repository.root.join(".git/hooks"));
    set.project.install(InstallTarget::Git);
    assert!(set.commit().status.success());
    set.project.uninstall(InstallTarget::Git);
    assert_eq!(snapshot(&set.repository.root.join(".git/hooks")), before);
}

/// husky: its scripts are all the same, and find out by their own name which hook they are.
#[test]
fn husky_hooks_keep_their_name() {
    let set = set();
    let root = &set.repository.root;
    set.repository.git(&["config", "core.hooksPath", ".husky/_"]);
    fs::create_dir_all(root.join(".husky/_")).unwrap();
    fs::write(
        root.join(".husky/_/h"),
        "n=$(basename \"$0\")\ns=$(dirname \"$(dirname \"$0\")\")/$n\n[ -f \"$s\" ] || exit 0\nsh -e \"$s\" \"$@\"\nexit $?\n",
    )
    .unwrap();
    for name in ["pre-commit", "post-commit"] {
        executable(&root.join(".husky/_").join(name), "#!/usr/bin/env sh\n. \"${0%/*}/h\"\n");
    }
    executable(&root.join(".husky/pre-commit"), "echo husky checks\nexit 7\n");
    let before = snapshot(&root.join(".husky"));
    let plan = set.project.install(InstallTarget::Git);
    assert!(plan.notes.join(" ").contains("git status"), "{:?}", plan.notes);
    let refused = set.commit();
    assert!(
        !refused.status.success() && output_text(&refused).contains("husky checks"),
        "{}",
        output_text(&refused)
    );
    executable(&root.join(".husky/pre-commit"), "echo husky checks\nexit 0\n");
    assert!(output_text(&set.commit()).contains("husky checks"));
    let calls = set.recorded_calls();
    assert!(calls.contains("pre-commit") && calls.contains("refs/heads/main"), "{calls}");

    // husky writes its scripts anew.
    executable(&root.join(".husky/_/pre-commit"), "#!/usr/bin/env sh\n. \"${0%/*}/h\"\n");
    set.project.install(InstallTarget::Git);
    assert!(output_text(&set.commit()).contains("husky checks"));
    assert!(set.recorded_calls().contains("pre-commit"));
    executable(&root.join(".husky/_/post-commit"), "#!/usr/bin/env sh\n. \"${0%/*}/h\"\n");
    set.project.uninstall(InstallTarget::Git);
    executable(&root.join(".husky/pre-commit"), "echo husky checks\nexit 7\n");
    assert_eq!(snapshot(&root.join(".husky")), before);
}

#[test]
fn modified_hooks_are_kept_when_uninstalling() {
    let set = set();
    set.project.install(InstallTarget::Git);
    let changed = fs::read_to_string(set.hook("pre-commit")).unwrap() + "# mine\n";
    executable(&set.hook("pre-commit"), &changed);
    executable(&set.hook("post-commit"), &chatty_hook(0));
    set.project.uninstall(InstallTarget::Git);
    assert_eq!(fs::read_to_string(set.hook("pre-commit.changed")).unwrap(), changed);
    assert_eq!(fs::read_to_string(set.hook("post-commit")).unwrap(), chatty_hook(0));
    assert!(!set.hook("pre-commit").exists() && !set.hook("reference-transaction").exists());

    // A hook kept under that name by whatever: nobody's work is written over.
    executable(&set.hook("post-commit.before-tenure"), "#!/bin/sh\n# another\n");
    assert!(matches!(
        plan_install(InstallTarget::Git, &set.project.context),
        Err(InstallError::Taken { .. })
    ));
}

#[test]
fn installing_fails_where_git_can_have_no_hooks() {
    let set = set();
    set.repository.git(&["config", "core.hooksPath", "/dev/null"]);
    let refused = plan_install(InstallTarget::Git, &set.project.context).unwrap_err();
    assert!(refused.to_string().contains("core.hooksPath"), "{refused}");
    let bare = Repository::with_init(&["init", "--quiet", "--bare"]);
    let refused = plan_install(InstallTarget::Git, &TestProject::at_root(&bare.root).context).unwrap_err();
    assert!(matches!(refused, InstallError::Git(_)), "{refused}");
}
