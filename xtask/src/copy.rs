//! A copy of the working tree that can be changed without touching it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::problem::Problem;
use crate::process;
use crate::workspace::files_below;

/// Makes `copy` hold exactly the tracked files of `root`, as they are in the working tree.
///
/// A file that is already the same is not written, so that cargo rebuilds only what differs.
pub fn refresh(root: &Path, copy: &Path) -> Result<(), Problem> {
    let mut wanted = BTreeSet::new();
    for file in tracked(root)? {
        let from = root.join(&file);
        // A file that is tracked, but deleted in the working tree, is not part of it.
        if !from.is_file() {
            continue;
        }
        let to = copy.join(&file);
        write_if_different(&from, &to)?;
        wanted.insert(to);
    }
    for file in files_below(copy)? {
        if !wanted.contains(&file) {
            fs::remove_file(&file).map_err(|error| Problem::file(&file, &error))?;
        }
    }
    Ok(())
}

fn tracked(root: &Path) -> Result<Vec<PathBuf>, Problem> {
    let mut command = process::command("git");
    command.args(["ls-files", "-z"]).current_dir(root);
    let names = process::output(
        &mut command,
        "the files of the repository are not known",
        "run this in a clone of the repository, with git installed",
    )?;
    Ok(names.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from).collect())
}

fn write_if_different(from: &Path, to: &Path) -> Result<(), Problem> {
    let bytes = fs::read(from).map_err(|error| Problem::file(from, &error))?;
    if fs::read(to).is_ok_and(|present| present == bytes) {
        return Ok(());
    }
    let folder = to.parent().unwrap_or(to);
    fs::create_dir_all(folder).map_err(|error| Problem::file(folder, &error))?;
    fs::write(to, bytes).map_err(|error| Problem::file(to, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_follows_the_tracked_files_and_leaves_equal_ones_alone() {
        let folder = std::env::temp_dir().join(format!("tenure-copy-{}", std::process::id()));
        let (root, copy) = (folder.join("root"), folder.join("copy"));
        fs::create_dir_all(root.join("a")).expect("a folder");
        fs::write(root.join("a/kept"), "kept").expect("a file");
        fs::write(root.join("changed"), "new").expect("a file");
        fs::write(root.join("untracked"), "").expect("a file");
        for arguments in [&["init", "--quiet"][..], &["add", "a/kept", "changed"]] {
            let mut git = process::command("git");
            assert!(git.args(arguments).current_dir(&root).status().is_ok_and(|status| status.success()));
        }

        refresh(&root, &copy).expect("a first copy");
        let written =
            |file: &str| fs::metadata(copy.join(file)).and_then(|data| data.modified()).expect("a time");
        let before = written("a/kept");
        fs::write(copy.join("changed"), "patched").expect("a file");
        fs::write(copy.join("added"), "by a patch").expect("a file");
        refresh(&root, &copy).expect("a second copy");

        assert_eq!(written("a/kept"), before);
        assert_eq!(fs::read_to_string(copy.join("changed")).expect("restored"), "new");
        assert!(!copy.join("added").exists() && !copy.join("untracked").exists());
        fs::remove_dir_all(&folder).expect("cleaned up");
    }
}
