//! Moves planted bugs from an older commit to HEAD by three-way merge, so that renames and moves do not break them.

use std::process::Stdio;

use xshell::{Cmd, Shell, cmd};

use crate::bugs::patch::Patch;
use crate::process::{self, TaskError, print_line};

/// Rewrites each patch that applies to `old`. Names those that conflict and leaves them as they are.
pub fn run(shell: &Shell, old: &str, patches: &[Patch]) -> Result<(), TaskError> {
    let old = text_of(cmd!(shell, "git rev-parse --verify").arg(format!("{old}^{{commit}}")))?;
    let mut conflicts = Vec::new();
    for patch in patches {
        match rebased(shell, &old, patch)? {
            Ok(diff) => shell.write_file(&patch.file, format!("{}{diff}\n", patch.header))?,
            Err(reason) => {
                print_line(&format!("{:<48} {reason}", patch.name));
                conflicts.push(patch.name.as_str());
            }
        }
    }
    print_line(&format!("rebased: {} of {}", patches.len() - conflicts.len(), patches.len()));
    if conflicts.is_empty() {
        return Ok(());
    }
    Err(TaskError::new(
        format!("{} patches could not be rebased: {}", conflicts.len(), conflicts.join(" ")),
        "make each anew: change the code, `git diff`, and keep the first two lines of the patch",
    ))
}

/// The patch as a diff to HEAD, or why there is none.
fn rebased(shell: &Shell, old: &str, patch: &Patch) -> Result<Result<String, &'static str>, TaskError> {
    let Some(planted) = planted(shell, old, patch)? else {
        return Ok(Err("does not apply to the old commit"));
    };
    let mut merge = process::without_cargo_variables(cmd!(
        shell,
        "git merge-tree --write-tree --merge-base {old} HEAD {planted}"
    ));
    let output = merge.stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| process::not_started(&merge, &error))?;
    match output.status.code() {
        Some(0) => {}
        Some(1) => return Ok(Err("conflicts with a change since then")),
        _ => return Err(process::failed(&merge, output.status, "see above; git 2.40 or newer is needed")),
    }
    let merged = String::from_utf8_lossy(&output.stdout);
    let tree = merged.lines().next().unwrap_or_default();
    let diff = text_of(cmd!(shell, "git diff --no-color --no-ext-diff HEAD {tree}"))?;
    Ok(if diff.is_empty() { Err("changes nothing in HEAD") } else { Ok(diff) })
}

/// A commit on top of the old one with the bug in it, made in an index of its own; `None` if the patch does not apply.
fn planted(shell: &Shell, old: &str, patch: &Patch) -> Result<Option<String>, TaskError> {
    let (file, folder) = (&patch.file, shell.create_temp_dir()?);
    let _index = shell.push_env("GIT_INDEX_FILE", folder.path().join("index"));
    process::run(cmd!(shell, "git read-tree {old}"), "see above: the old commit cannot be read")?;
    if !process::succeeds(cmd!(shell, "git apply --cached {file}")) {
        return Ok(None);
    }
    let tree = text_of(cmd!(shell, "git write-tree"))?;
    text_of(cmd!(shell, "git commit-tree {tree} -p {old} -m").arg("planted bug")).map(Some)
}

fn text_of(cmd: Cmd<'_>) -> Result<String, TaskError> {
    Ok(process::output(cmd, "see what git says above")?.trim_end_matches('\n').to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::bugs::patch;

    /// A patch survives the renaming of its file and a change of another line; one whose line changed is named.
    #[test]
    fn a_patch_follows_a_renamed_file() {
        let shell = Shell::new().expect("a shell");
        let temporary = shell.create_temp_dir().expect("a folder");
        let folder = temporary.path();
        shell.change_dir(folder);
        let run = |arguments: &[&str]| text_of(shell.cmd("git").args(arguments)).expect("git");
        fs::create_dir_all(folder.join("bugs")).expect("a folder");
        run(&["init", "--quiet"]);
        run(&["config", "user.name", "a"]);
        run(&["config", "user.email", "a@example.com"]);
        let lines = |last: &str| format!("a\nb\nc\nd\ne\nf\ng\nh\ni\n{last}\n");
        fs::write(folder.join("one"), lines("end")).expect("a file");
        run(&["add", "one"]);
        run(&["commit", "--quiet", "-m", "old"]);
        let old = run(&["rev-parse", "HEAD"]);
        fs::write(folder.join("one"), lines("end").replace('b', "bug")).expect("a file");
        let diff = run(&["diff"]);
        fs::write(folder.join("bugs/1-b.patch"), format!("# b\n# tests: x\n{diff}\n")).expect("a file");
        fs::write(folder.join("one"), lines("bug")).expect("a file");
        let diff = run(&["diff"]);
        fs::write(folder.join("bugs/2-end.patch"), format!("# end\n# tests: x\n{diff}\n")).expect("a file");
        fs::write(folder.join("one"), lines("new end")).expect("a file");
        run(&["mv", "one", "two"]);
        run(&["commit", "--quiet", "--all", "-m", "new"]);

        let patches = patch::read_all(&shell, None).expect("patches");
        let problem = super::run(&shell, &old, &patches).expect_err("one conflicts").to_string();
        assert!(problem.contains("1 patches could not be rebased: 2-end"), "{problem}");
        let text = fs::read_to_string(folder.join("bugs/1-b.patch")).expect("a patch");
        assert!(text.starts_with("# b\n# tests: x\ndiff --git a/two b/two\n"), "{text}");
        run(&["apply", "--check", "bugs/1-b.patch"]);
    }
}
