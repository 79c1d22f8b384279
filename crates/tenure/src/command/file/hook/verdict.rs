//! The server's response, as the agent and its model receive it.

use jiff::{SignedDuration, Timestamp};
use tenure_api::{FileAcquireRequest, FileVerdict, FileVerdictKind};
use tenure_hooks::{HookVerdict, messages};

use crate::duration::format_short;

/// The verdict that the retry, or a first attempt that needs none, has led to.
pub fn final_verdict(verdict: &FileVerdict, request: &FileAcquireRequest) -> HookVerdict {
    match verdict.verdict {
        FileVerdictKind::Granted => HookVerdict::Allow { message: messages::allow_message(verdict) },
        FileVerdictKind::Wait => deny_until_retry(verdict, request),
        FileVerdictKind::Blocked => {
            HookVerdict::Deny { reason: messages::retry_exhausted_message(verdict, request), stop: true }
        }
        FileVerdictKind::Stale => {
            HookVerdict::Deny { reason: messages::stale_content_message(verdict, request), stop: false }
        }
    }
}

/// Where a hook cannot wait: denied, with the time at which to ask once more.
pub fn deny_until_retry(verdict: &FileVerdict, request: &FileAcquireRequest) -> HookVerdict {
    HookVerdict::Deny { reason: messages::retry_later_message(verdict, request), stop: false }
}

/// The contention heartbeat: one line for whoever reads the hook's standard error.
pub fn contention_notice(verdict: &FileVerdict, request: &FileAcquireRequest) -> String {
    let [file, agent, session] = messages::first_holder(verdict, request);
    let remaining_ms = verdict.retry_in_ms.unwrap_or(0);
    let wait = SignedDuration::from_millis(i64::try_from(remaining_ms).unwrap_or(i64::MAX));
    let at = Timestamp::now().checked_add(wait).unwrap_or(Timestamp::MAX);
    let line = format!(
        "tenure: contention: {file} is held by {agent} (session {session}); the one retry is at {at:.0}, in {}",
        format_short(remaining_ms)
    );
    format!("{}\n", line.replace(char::is_control, " "))
}

#[cfg(test)]
mod tests {
    use tenure_api::{FileCaller, FileOwner, HeldFileView, UncommittedFile};

    use super::*;

    fn request() -> FileAcquireRequest {
        let caller =
            FileCaller { agent: "codex".to_owned(), session: "s2".to_owned(), ..FileCaller::default() };
        FileAcquireRequest {
            speaker: caller,
            cwd: "/repo".to_owned(),
            paths: vec!["src/a.rs".to_owned()],
            entries: Vec::new(),
            whole: false,
            process: None,
            orphan: false,
            named: false,
        }
    }

    fn owner() -> FileOwner {
        FileOwner {
            agent: "claude".to_owned(),
            session: "s1".to_owned(),
            holder: "claude/s1".to_owned(),
            pid: 7,
            alive: true,
            task: "parser".to_owned(),
            ..FileOwner::default()
        }
    }

    fn verdict(kind: FileVerdictKind) -> FileVerdict {
        let held = |path: &str| HeldFileView {
            path: path.to_owned(),
            resource: String::new(),
            owner: owner(),
            held_ms: 300_000,
            idle_ms: 2_000,
        };
        let held = match kind {
            FileVerdictKind::Wait | FileVerdictKind::Blocked => vec![held("src/a.rs"), held("src/b.rs")],
            FileVerdictKind::Granted | FileVerdictKind::Stale => Vec::new(),
        };
        FileVerdict {
            verdict: kind,
            holder: "codex/s2".to_owned(),
            held,
            retry_in_ms: Some(180_000),
            report: Some("R-3".to_owned()),
            retry_interval_seconds: 180,
            circle: Vec::new(),
            left_dirty: Vec::new(),
            stale: Vec::new(),
            newly: false,
            standing: None,
        }
    }

    fn reason(verdict: HookVerdict) -> (String, bool) {
        let HookVerdict::Deny { reason, stop } = verdict else { panic!("{verdict:?}") };
        (reason, stop)
    }

    // S4-27, S4-28
    #[test]
    fn blocked_verdict_stops_and_names_report_owner_and_cycle() {
        let blocked = FileVerdict {
            circle: vec!["codex/s2".into(), "claude/s1".into()],
            ..verdict(FileVerdictKind::Blocked)
        };
        let (reason, stop) = reason(final_verdict(&blocked, &request()));
        assert!(stop);
        for part in [
            "`src/a.rs`",
            "`src/b.rs`",
            "claude",
            "session s1",
            "pid 7",
            "R-3",
            "180 s",
            "codex/s2, claude/s1",
        ] {
            assert!(reason.contains(part), "{part}: {reason}");
        }
    }

    #[test]
    fn stale_verdict_denies_and_does_not_stop_the_agent() {
        let stale = FileVerdict { stale: vec!["a".into(), "b".into()], ..verdict(FileVerdictKind::Stale) };
        let (reason, stop) = reason(final_verdict(&stale, &request()));
        assert!(
            !stop && reason.contains("`a`") && reason.contains("`b`") && reason.contains("Read"),
            "{reason}"
        );
    }

    // S4-25
    #[test]
    fn waiting_verdict_denies_with_the_time_of_the_retry() {
        let (reason, stop) = reason(deny_until_retry(&verdict(FileVerdictKind::Wait), &request()));
        assert!(!stop && reason.contains("once more in 180 s, not earlier"), "{reason}");
    }

    #[test]
    fn run_again_message_says_how_to_check_availability() {
        let text = messages::run_again_message(&verdict(FileVerdictKind::Wait), &request());
        assert!(text.contains("`tenure who src/a.rs`") && text.contains("session s1"), "{text}");
        assert!(!text.contains("180 s") && !text.contains("in line"), "{text}");
    }

    // S4-23
    #[test]
    fn contention_notice_is_one_line_with_owner_and_retry_time() {
        let mut wait = verdict(FileVerdictKind::Wait);
        wait.held[0].path = "a\nb".to_owned();
        let line = contention_notice(&wait, &request());
        assert!(line.starts_with("tenure: contention: a b is held by claude (session s1)"), "{line}");
        assert!(line.ends_with("Z, in 3m\n") && line.matches('\n').count() == 1, "{line}");
    }

    #[test]
    fn grant_mentions_uncommitted_changes_of_a_previous_owner() {
        assert_eq!(
            final_verdict(&verdict(FileVerdictKind::Granted), &request()),
            HookVerdict::Allow { message: None }
        );
        let uncommitted = UncommittedFile { path: "src/a.rs".to_owned(), owner: owner(), left_ms: 60_000 };
        let granted = FileVerdict { left_dirty: vec![uncommitted], ..verdict(FileVerdictKind::Granted) };
        let HookVerdict::Allow { message: Some(message) } = final_verdict(&granted, &request()) else {
            panic!()
        };
        assert!(
            message.contains("`src/a.rs`") && message.contains("claude") && message.contains("1 min"),
            "{message}"
        );
    }
}
