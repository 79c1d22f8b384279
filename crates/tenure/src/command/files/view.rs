//! Files and who has them, as people read them.

use std::collections::BTreeSet;

use tenure_api::{FileOwner, FileView, FileWaiter, LeftBy, OneFile};

use crate::duration::short;
use crate::output::Table;

pub fn table(files: &[FileView]) -> Table {
    let heads = ["FILE", "OWNER", "HELD FOR", "LAST HEARD", "WAITING"];
    let mut table = Table::with_heads(&heads);
    let roots: BTreeSet<_> = files.iter().map(|file| &file.root).collect();
    for file in files {
        let path = match &file.root {
            Some(root) if roots.len() > 1 => format!("{}/{}", root.trim_end_matches('/'), file.path),
            _ => file.path.clone(),
        };
        let waiting: Vec<_> = file.waiters.iter().map(waiter).collect();
        table.row([
            path,
            owner(&file.owner),
            short(file.held_ms),
            format!("{} ago{}", short(file.idle_ms), ending(file)),
            if waiting.is_empty() { "-".to_owned() } else { waiting.join(", ") },
        ]);
    }
    table
}

pub fn sentences(found: &OneFile) -> String {
    let mut lines = Vec::new();
    match &found.file {
        Some(file) => {
            lines.push(format!(
                "{} has {} for {}, last heard {} ago{}.",
                owner(&file.owner),
                found.path,
                short(file.held_ms),
                short(file.idle_ms),
                ending(file)
            ));
            lines.extend((!file.owner.task.is_empty()).then(|| format!("It is at: {}", file.owner.task)));
            lines.extend(file.waiters.iter().map(|waiting| format!("Waiting: {}", waiter(waiting))));
        }
        None => lines.push(format!("Nobody has {}.", found.path)),
    }
    lines.extend(found.left.as_ref().map(left));
    lines.into_iter().map(|line| line.replace(char::is_control, " ") + "\n").collect()
}

/// `claude s1 (pid 7)`, with what is unusual about it.
pub fn owner(owner: &FileOwner) -> String {
    if owner.agent.is_empty() {
        return owner.holder.clone();
    }
    let state = match owner {
        FileOwner { alive: false, .. } => ", not alive",
        FileOwner { suspended: true, .. } => ", suspended",
        _ => "",
    };
    let process = if owner.pid == 0 { "no process".to_owned() } else { format!("pid {}", owner.pid) };
    format!("{} {} ({process}{state})", owner.agent, owner.session)
}

fn waiter(waiter: &FileWaiter) -> String {
    let FileWaiter { agent, session, .. } = waiter;
    match &waiter.report {
        Some(report) => format!("{agent} {session} (stopped, report {report})"),
        None if waiter.retry_in_ms == 0 => format!("{agent} {session} (retry is due)"),
        None => format!("{agent} {session} (retry in {})", short(waiter.retry_in_ms)),
    }
}

/// When it is let go of by itself.
fn ending(file: &FileView) -> String {
    file.released_in_ms.map(|left| format!(", free in {}", short(left))).unwrap_or_default()
}

fn left(left: &LeftBy) -> String {
    format!("{} let go of it {} ago without a commit.", owner(&left.owner), short(left.left_ms))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn someone() -> FileOwner {
        FileOwner {
            agent: "claude".to_owned(),
            session: "s1".to_owned(),
            holder: "claude/s1".to_owned(),
            pid: 7,
            alive: true,
            suspended: false,
            task: String::new(),
        }
    }

    fn file(path: &str, root: &str) -> FileView {
        FileView {
            path: path.to_owned(),
            root: Some(root.to_owned()),
            resource: format!("FILE:0/{path}"),
            owner: someone(),
            acquired_at: "2026-01-01T00:00:00.000Z".to_owned(),
            last_heartbeat_at: "2026-01-01T00:00:00.000Z".to_owned(),
            lease_state: "OWNED".to_owned(),
            held_ms: 300_000,
            idle_ms: 2_000,
            released_in_ms: None,
            waiters: Vec::new(),
        }
    }

    fn waits(report: Option<&str>, retry_in_ms: u64) -> FileWaiter {
        FileWaiter {
            session: "s2".to_owned(),
            agent: "codex".to_owned(),
            retry_in_ms,
            state: "RETRY_PENDING".to_owned(),
            report: report.map(str::to_owned),
        }
    }

    #[test]
    fn table_shows_owner_times_and_waiters() {
        let waiters = vec![waits(None, 161_000), waits(Some("R-3"), 0)];
        let contended = FileView { waiters, ..file("src/a.rs", "/repo") };
        let idle = FileView { released_in_ms: Some(12_000), ..file("b", "/repo") };
        let expected = "\
FILE      OWNER              HELD FOR  LAST HEARD           WAITING
src/a.rs  claude s1 (pid 7)  5m        2s ago               codex s2 (retry in 2m 41s), codex s2 (stopped, report R-3)
b         claude s1 (pid 7)  5m        2s ago, free in 12s  -
";
        assert_eq!(table(&[contended, idle]).to_string(), expected);
    }

    #[test]
    fn files_of_several_trees_are_shown_with_their_root() {
        let text = table(&[file("a", "/one"), file("a", "/two")]).to_string();
        assert!(text.contains("/one/a ") && text.contains("/two/a "), "{text}");
    }

    #[test]
    fn single_file_is_described_without_control_characters() {
        let mut found = OneFile { path: "a\x1b[2J".to_owned(), file: Some(file("a", "/repo")), left: None };
        let expected = "claude s1 (pid 7) has a [2J for 5m, last heard 2s ago.\n";
        assert_eq!(sentences(&found), expected);
        found.file = None;
        found.left = Some(LeftBy { path: "a".to_owned(), owner: someone(), left_ms: 60_000 });
        let expected = "Nobody has a [2J.\nclaude s1 (pid 7) let go of it 1m ago without a commit.\n";
        assert_eq!(sentences(&found), expected);
    }

    #[test]
    fn dead_and_suspended_sessions_are_marked() {
        let suspended = FileOwner { suspended: true, ..someone() };
        assert_eq!(owner(&suspended), "claude s1 (pid 7, suspended)");
        let dead = FileOwner { alive: false, pid: 0, ..someone() };
        assert_eq!(owner(&dead), "claude s1 (no process, not alive)");
        let plain = FileOwner { agent: String::new(), ..someone() };
        assert_eq!(owner(&plain), "claude/s1");
    }
}
