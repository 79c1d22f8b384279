//! What git has begun and not ended.

use std::path::Path;

/// What the working tree with this git folder is in the middle of, by the files that git keeps; starts no process.
///
/// `git_dir` is the one of the working tree: of a linked worktree, `.git/worktrees/NAME`.
pub fn in_the_middle_of(git_dir: &Path) -> Option<&'static str> {
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
        Some(("sequencer", _)) => Some(series(git_dir)),
        other => other.map(|(_, name)| *name),
    }
}

fn series(git_dir: &Path) -> &'static str {
    let list = std::fs::read(git_dir.join("sequencer/todo")).unwrap_or_default();
    if list.starts_with(b"revert") { "a revert" } else { "a cherry-pick" }
}
