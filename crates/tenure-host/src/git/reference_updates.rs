//! Operations in progress, and files that they moved.

use std::path::Path;

/// A branch, or a detached HEAD, that moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferenceUpdate {
    /// Where it was. Nothing if it is new, or if whoever moved it did not say. A branch that is new has not committed
    /// anything, unless its commit is the first of all.
    pub old: Option<String>,
    /// Where it is. Nothing if it was deleted.
    pub new: Option<String>,
    pub reference: String,
}

/// Which branches moved, of the lines `OLD NEW REF` that git gives to the hook.
///
/// A commit moves its branch and HEAD by the same step; that is told once, by the name of the branch. A HEAD that only goes
/// elsewhere has committed nothing and is not told. Tags, remote
/// branches and notes move nothing that anybody has checked out, and lines that cannot be read are passed over: the hook
/// must never be in git's way.
pub fn branch_updates(stdin: &[u8]) -> Vec<ReferenceUpdate> {
    let lines = stdin.split(|byte| *byte == b'\n');
    let mut moved: Vec<_> = lines.filter_map(|line| parse_line(std::str::from_utf8(line).ok()?)).collect();
    let branches: Vec<_> = moved.iter().filter(|step| step.reference != "HEAD").cloned().collect();
    let is_named_by_branch = |step: &ReferenceUpdate| {
        branches.iter().any(|other| (&other.old, &other.new) == (&step.old, &step.new))
    };
    moved.retain(|step| step.reference != "HEAD" || !is_named_by_branch(step));
    moved
}

fn parse_line(line: &str) -> Option<ReferenceUpdate> {
    let mut words = line.splitn(3, ' ');
    let (old, new, reference) = (words.next()?, words.next()?, words.next()?);
    if (reference != "HEAD" && !reference.starts_with("refs/heads/")) || old == new {
        return None;
    }
    let moved = ReferenceUpdate { old: id(old)?, new: id(new)?, reference: reference.to_owned() };
    // Of a HEAD that goes along with its branch, or to another commit without making one (`checkout`, `stash`), git does
    // not say where it was. Of one that commits by itself, it does.
    (reference != "HEAD" || moved.old.is_some()).then_some(moved)
}

/// An id of either kind of repository; all zeros is none. Not `ref:NAME`, which only says what HEAD points to.
fn id(word: &str) -> Option<Option<String>> {
    let is_id = matches!(word.len(), 40 | 64) && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_zero = word.bytes().all(|byte| byte == b'0');
    is_id.then(|| (!is_zero).then(|| word.to_owned()))
}

/// What the working tree with this git folder is in the middle of, by the files that git keeps; starts no process.
///
/// `git_dir` is the one of the working tree: of a linked worktree, `.git/worktrees/NAME`.
pub fn operation_in_progress(git_dir: &Path) -> Option<&'static str> {
    // A rebase picks commits, so what it leaves behind may look like a pick too: it comes first.
    const SIGNS: [(&str, &str); 8] = [
        ("rebase-merge", "a rebase"),
        ("rebase-apply/applying", "applying patches"),
        ("rebase-apply", "a rebase"),
        ("MERGE_HEAD", "a merge"),
        ("CHERRY_PICK_HEAD", "a cherry-pick"),
        ("REVERT_HEAD", "a revert"),
        ("sequencer", "a cherry-pick"),
        ("BISECT_LOG", "a bisect"),
    ];
    let found = SIGNS.iter().find(|(sign, _)| git_dir.join(sign).exists());
    match found {
        // A series of which one was just finished: only its list says which kind it is.
        Some(("sequencer", _)) => Some(sequencer_operation(git_dir)),
        other => other.map(|(_, name)| *name),
    }
}

fn sequencer_operation(git_dir: &Path) -> &'static str {
    let list = std::fs::read(git_dir.join("sequencer/todo")).unwrap_or_default();
    if list.starts_with(b"revert") { "a revert" } else { "a cherry-pick" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_reported_once_under_its_branch_name() {
        for width in [40, 64] {
            let (one, two, zero) = ("1".repeat(width), "2".repeat(width), "0".repeat(width));
            let stdin = format!(
                "{one} {two} HEAD\n{one} {two} refs/heads/main\n{zero} {one} refs/heads/new\n\
                 {two} {zero} refs/heads/gone\n{one} {two} refs/tags/v1\n{one} {two} refs/remotes/o/main\n\
                 ref:refs/heads/a ref:refs/heads/b HEAD\n{one} {one} refs/heads/same\nnonsense\n\n"
            );
            let moved = branch_updates(stdin.as_bytes());
            let step = |old: &str, new: &str, name: &str| ReferenceUpdate {
                old: id(old).unwrap(),
                new: id(new).unwrap(),
                reference: name.to_owned(),
            };
            let expected = [
                step(&one, &two, "refs/heads/main"),
                step(&zero, &one, "refs/heads/new"),
                step(&two, &zero, "refs/heads/gone"),
            ];
            assert_eq!(moved, expected);
        }
    }

    #[test]
    fn a_detached_commit_is_reported_and_a_checkout_is_not() {
        let [one, two, zero] = ["1", "2", "0"].map(|digit| digit.repeat(40));
        let names = |stdin: String| {
            branch_updates(stdin.as_bytes()).into_iter().map(|step| step.reference).collect::<Vec<_>>()
        };
        assert_eq!(names(format!("{one} {two} HEAD\n")), ["HEAD"]);
        assert_eq!(names(format!("{zero} {two} HEAD\n")), [""; 0], "a checkout");
        assert_eq!(names(format!("{zero} {two} HEAD\n{one} {two} refs/heads/main\n")), ["refs/heads/main"]);
        assert_eq!(names(format!("{zero} {two} HEAD\n{two} {one} refs/heads/x\n")), ["refs/heads/x"]);
    }

    #[test]
    fn two_branches_with_the_same_update_are_both_reported_and_invalid_bytes_are_skipped() {
        let (one, two) = ("a".repeat(40), "b".repeat(40));
        let stdin = format!("{one} {two} refs/heads/x\n{one} {two} refs/heads/y\n{one} {two} HEAD");
        let names: Vec<_> = branch_updates(stdin.as_bytes()).into_iter().map(|step| step.reference).collect();
        assert_eq!(names, ["refs/heads/x", "refs/heads/y"]);
        assert_eq!(branch_updates(b"\xff\xfe \x00 HEAD\n"), []);
    }
}
