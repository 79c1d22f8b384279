//! Files and who has them, as people read them.

use std::collections::BTreeSet;

use tenure_api::{FileOwner, FileStatus, FileView, FileWaiter, UncommittedFile};

use crate::duration::format_short;
use crate::output::Table;

pub fn table(files: &[FileView]) -> Table {
    let heads = ["FILE", "OWNER", "HELD FOR", "LAST HEARD", "WAITING"];
    let mut table = Table::with_header(&heads);
    let roots: BTreeSet<_> = files.iter().map(|file| &file.root).collect();
    for file in files {
        let path = match &file.root {
            Some(root) if roots.len() > 1 => format!("{}/{}", root.trim_end_matches('/'), file.path),
            _ => file.path.clone(),
        };
        let waiting: Vec<_> = file.waiters.iter().map(waiter).collect();
        table.row([
            path,
            format_owner(&file.owner),
            format_short(file.held_ms),
            format!("{} ago{}", format_short(file.idle_ms), format_release_time(file)),
            if waiting.is_empty() { "-".to_owned() } else { waiting.join(", ") },
        ]);
    }
    table
}

pub fn describe_file(found: &FileStatus) -> String {
    let mut lines = Vec::new();
    match &found.file {
        Some(file) => {
            lines.push(format!(
                "{} has {} for {}, last heard {} ago{}.",
                format_owner(&file.owner),
                found.path,
                format_short(file.held_ms),
                format_short(file.idle_ms),
                format_release_time(file)
            ));
            lines.extend((!file.owner.task.is_empty()).then(|| format!("It is at: {}", file.owner.task)));
            lines.extend(file.waiters.iter().map(|waiting| format!("Waiting: {}", waiter(waiting))));
        }
        None => lines.push(format!("Nobody has {}.", found.path)),
    }
    lines.extend(found.left.as_ref().map(format_last_owner));
    lines.into_iter().map(|line| line.replace(char::is_control, " ") + "\n").collect()
}

/// `claude s1 (pid 7)`, with what is unusual about it.
pub fn format_owner(owner: &FileOwner) -> String {
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
        None => format!("{agent} {session} (retry in {})", format_short(waiter.retry_in_ms)),
    }
}

/// When it is let go of by itself.
fn format_release_time(file: &FileView) -> String {
    file.released_in_ms.map(|remaining| format!(", free in {}", format_short(remaining))).unwrap_or_default()
}

fn format_last_owner(file: &UncommittedFile) -> String {
    format!("{} let go of it {} ago without a commit.", format_owner(&file.owner), format_short(file.left_ms))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn sample_owner() -> FileOwner {
        FileOwner {
            agent: "claude".to_owned(),
            session: "s1".to_owned(),
            holder: "claude/s1".to_owned(),
            pid: 7,
            alive: true,
            task: String::new(),
            ..FileOwner::default()
        }
    }

    fn file(path: &str, root: &str) -> FileView {
        FileView {
            path: path.to_owned(),
            root: Some(root.to_owned()),
            resource: format!("FILE:0/{path}"),
            owner: sample_owner(),
            acquired_at: "2026-01-01T00:00:00.000Z".to_owned(),
            last_heartbeat_at: "2026-01-01T00:00:00.000Z".to_owned(),
            lease_state: "OWNED".to_owned(),
            held_ms: 300_000,
            idle_ms: 2_000,
            released_in_ms: None,
            waiters: Vec::new(),
        }
    }

    fn waiter(report: Option<&str>, retry_in_ms: u64) -> FileWaiter {
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
        let waiters = vec![waiter(None, 161_000), waiter(Some("R-3"), 0)];
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
        let mut found =
            FileStatus { path: "a\x1b[2J".to_owned(), file: Some(file("a", "/repo")), left: None };
        let expected = "claude s1 (pid 7) has a [2J for 5m, last heard 2s ago.\n";
        assert_eq!(describe_file(&found), expected);
        found.file = None;
        found.left = Some(UncommittedFile { path: "a".to_owned(), owner: sample_owner(), left_ms: 60_000 });
        let expected = "Nobody has a [2J.\nclaude s1 (pid 7) let go of it 1m ago without a commit.\n";
        assert_eq!(describe_file(&found), expected);
    }

    #[test]
    fn dead_and_suspended_sessions_are_marked() {
        let suspended = FileOwner { suspended: true, ..sample_owner() };
        assert_eq!(format_owner(&suspended), "claude s1 (pid 7, suspended)");
        let dead = FileOwner { alive: false, pid: 0, ..sample_owner() };
        assert_eq!(format_owner(&dead), "claude s1 (no process, not alive)");
        let plain = FileOwner { agent: String::new(), ..sample_owner() };
        assert_eq!(format_owner(&plain), "claude/s1");
    }
}
