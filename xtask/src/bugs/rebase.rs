//! Moves planted bugs from an older commit to HEAD by three-way merge, so that renames and moves do not break them.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::bugs::patch::Patch;
use crate::problem::Problem;
use crate::process::{self, say};

/// Rewrites each patch that applies to `old`. Names those that conflict and leaves them as they are.
pub fn run(root: &Path, old: &str, patches: &[Patch]) -> Result<(), Problem> {
    let merge =
        Merge { root, old: git_text(root, &["rev-parse", "--verify", &format!("{old}^{{commit}}")])? };
    let mut conflicts = Vec::new();
    for patch in patches {
        match merge.rebased(patch)? {
            Rebased::Diff(diff) => {
                let text = format!("{}{diff}", patch.header);
                fs::write(&patch.file, text).map_err(|error| Problem::file(&patch.file, &error))?;
            }
            Rebased::Conflict(reason) => {
                say(&format!("{:<48} {reason}", patch.name));
                conflicts.push(patch.name.as_str());
            }
        }
    }
    say(&format!("rebased: {} of {}", patches.len() - conflicts.len(), patches.len()));
    if conflicts.is_empty() {
        return Ok(());
    }
    Err(Problem::new(
        format!("{} patches could not be rebased: {}", conflicts.len(), conflicts.join(" ")),
        "the code that they change was changed as well",
        "make each anew: change the code, `git diff`, and keep the first two lines of the patch",
    ))
}

enum Rebased {
    Diff(String),
    Conflict(&'static str),
}

struct Merge<'a> {
    root: &'a Path,
    /// The commit that the patches were made for.
    old: String,
}

impl Merge<'_> {
    fn rebased(&self, patch: &Patch) -> Result<Rebased, Problem> {
        let Some(planted) = self.planted(patch)? else {
            return Ok(Rebased::Conflict("does not apply to the old commit"));
        };
        let mut merge = git(self.root);
        merge.args(["merge-tree", "--write-tree", "--merge-base", &self.old, "HEAD", &planted]);
        let output =
            merge.stderr(Stdio::inherit()).output().map_err(|error| Problem::file(self.root, &error))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let tree = text.lines().next().unwrap_or_default();
        match output.status.code() {
            Some(0) => {}
            Some(1) => return Ok(Rebased::Conflict("conflicts with a change since then")),
            _ => {
                return Err(process::failed(
                    &merge,
                    output.status,
                    "git 2.40 or newer is needed",
                    "see above",
                ));
            }
        }
        let diff = git_text(self.root, &["diff", "--no-color", "--no-ext-diff", "HEAD", tree])?;
        if diff.is_empty() {
            return Ok(Rebased::Conflict("changes nothing in HEAD"));
        }
        Ok(Rebased::Diff(format!("{diff}\n")))
    }

    /// A commit on top of the old one with the bug in it, made in an index of its own.
    fn planted(&self, patch: &Patch) -> Result<Option<String>, Problem> {
        let index = std::env::temp_dir().join(format!("tenure-bugs-index-{}", std::process::id()));
        let with_index = |arguments: &[&str]| {
            let mut command = git(self.root);
            command.args(arguments).env("GIT_INDEX_FILE", &index);
            command
        };
        let outcome = (|| {
            process::succeed(
                &mut with_index(&["read-tree", &self.old]),
                "the old commit cannot be read",
                "see above",
            )?;
            let mut apply = with_index(&["apply", "--cached"]);
            apply.arg(&patch.file).stderr(Stdio::null());
            if !process::status(&mut apply)?.success() {
                return Ok(None);
            }
            let tree = text_of(&mut with_index(&["write-tree"]))?;
            git_text(self.root, &["commit-tree", &tree, "-p", &self.old, "-m", "planted bug"]).map(Some)
        })();
        let _ = fs::remove_file(&index);
        outcome
    }
}

fn git(root: &Path) -> Command {
    let mut command = process::command("git");
    command.current_dir(root);
    command
}

fn git_text(root: &Path, arguments: &[&str]) -> Result<String, Problem> {
    text_of(git(root).args(arguments))
}

fn text_of(command: &mut Command) -> Result<String, Problem> {
    let text = process::output(command, "the repository cannot be read", "see what git says above")?;
    Ok(text.trim_end_matches('\n').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bugs::patch;

    /// A patch survives the renaming of its file and a change of another line; one whose line changed is named.
    #[test]
    fn a_patch_follows_a_renamed_file() {
        let folder = std::env::temp_dir().join(format!("tenure-rebase-{}", std::process::id()));
        let run = |arguments: &[&str]| git_text(&folder, arguments).expect("git");
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

        let patches = patch::read_all(&folder.join("bugs"), None).expect("patches");
        let problem = super::run(&folder, &old, &patches).expect_err("one conflicts").to_string();
        assert!(problem.contains("1 patches could not be rebased: 2-end"), "{problem}");
        let text = fs::read_to_string(folder.join("bugs/1-b.patch")).expect("a patch");
        assert!(text.starts_with("# b\n# tests: x\ndiff --git a/two b/two\n"), "{text}");
        run(&["apply", "--check", "bugs/1-b.patch"]);
        fs::remove_dir_all(&folder).expect("cleaned up");
    }
}
