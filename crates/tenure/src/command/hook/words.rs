//! What the server said, as the agent and its model are told.

use jiff::{SignedDuration, Timestamp};
use tenure_api::{FileAsk, FileVerdict, VerdictKind};
use tenure_gate::hooks::Verdict;
use tenure_gate::hooks::wording;

use crate::duration::short;

/// The verdict that the retry, or a first attempt that needs none, has led to.
pub fn settled(verdict: &FileVerdict, wish: &FileAsk) -> Verdict {
    match verdict.verdict {
        VerdictKind::Granted => Verdict::Allow { note: wording::note(verdict) },
        VerdictKind::Wait => come_back(verdict, wish),
        VerdictKind::Blocked => Verdict::Deny { reason: wording::blocked(verdict, wish), stop: true },
        VerdictKind::Stale => Verdict::Deny { reason: wording::stale(verdict, wish), stop: false },
    }
}

/// Where a hook cannot wait: denied, with the time at which to ask once more.
pub fn come_back(verdict: &FileVerdict, wish: &FileAsk) -> Verdict {
    Verdict::Deny { reason: wording::waiting(verdict, wish), stop: false }
}

/// The contention heartbeat: one line for whoever reads the hook's standard error.
pub fn heartbeat(verdict: &FileVerdict, wish: &FileAsk) -> String {
    let [file, agent, session] = wording::first(verdict, wish);
    let left = verdict.retry_in_ms.unwrap_or(0);
    let wait = SignedDuration::from_millis(i64::try_from(left).unwrap_or(i64::MAX));
    let at = Timestamp::now().checked_add(wait).unwrap_or(Timestamp::MAX);
    let line = format!(
        "tenure: contention: {file} is held by {agent} (session {session}); the one retry is at {at:.0}, in {}",
        short(left)
    );
    format!("{}\n", line.replace(char::is_control, " "))
}

#[cfg(test)]
mod tests {
    use tenure_api::{FileOwner, FileSpeaker, HeldBy, LeftBy};

    use super::*;

    fn wish() -> FileAsk {
        let speaker = FileSpeaker {
            agent: "codex".to_owned(),
            session: "s2".to_owned(),
            subagent: None,
            parent: None,
            task: None,
        };
        FileAsk {
            speaker,
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
            suspended: false,
            task: "parser".to_owned(),
        }
    }

    fn verdict(kind: VerdictKind) -> FileVerdict {
        let held = |path: &str| HeldBy {
            path: path.to_owned(),
            resource: String::new(),
            owner: owner(),
            held_ms: 300_000,
            idle_ms: 2_000,
        };
        let held = match kind {
            VerdictKind::Wait | VerdictKind::Blocked => vec![held("src/a.rs"), held("src/b.rs")],
            VerdictKind::Granted | VerdictKind::Stale => Vec::new(),
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

    fn reason(verdict: Verdict) -> (String, bool) {
        let Verdict::Deny { reason, stop } = verdict else { panic!("{verdict:?}") };
        (reason, stop)
    }

    // S4-27, S4-28
    #[test]
    fn blocked_verdict_stops_and_names_report_owner_and_cycle() {
        let blocked = FileVerdict {
            circle: vec!["codex/s2".into(), "claude/s1".into()],
            ..verdict(VerdictKind::Blocked)
        };
        let (reason, stop) = reason(settled(&blocked, &wish()));
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
        let stale = FileVerdict { stale: vec!["a".into(), "b".into()], ..verdict(VerdictKind::Stale) };
        let (reason, stop) = reason(settled(&stale, &wish()));
        assert!(
            !stop && reason.contains("`a`") && reason.contains("`b`") && reason.contains("Read"),
            "{reason}"
        );
    }

    // S4-25
    #[test]
    fn waiting_verdict_denies_with_the_time_of_the_retry() {
        let (reason, stop) = reason(come_back(&verdict(VerdictKind::Wait), &wish()));
        assert!(!stop && reason.contains("once more in 180 s, not earlier"), "{reason}");
    }

    #[test]
    fn run_again_message_says_how_to_check_availability() {
        let text = wording::run_again(&verdict(VerdictKind::Wait), &wish());
        assert!(text.contains("`tenure who src/a.rs`") && text.contains("session s1"), "{text}");
        assert!(!text.contains("180 s") && !text.contains("in line"), "{text}");
    }

    // S4-23
    #[test]
    fn contention_notice_is_one_line_with_owner_and_retry_time() {
        let mut wait = verdict(VerdictKind::Wait);
        wait.held[0].path = "a\nb".to_owned();
        let line = heartbeat(&wait, &wish());
        assert!(line.starts_with("tenure: contention: a b is held by claude (session s1)"), "{line}");
        assert!(line.ends_with("Z, in 3m\n") && line.matches('\n').count() == 1, "{line}");
    }

    #[test]
    fn grant_mentions_uncommitted_changes_of_a_previous_owner() {
        assert_eq!(settled(&verdict(VerdictKind::Granted), &wish()), Verdict::Allow { note: None });
        let left = LeftBy { path: "src/a.rs".to_owned(), owner: owner(), left_ms: 60_000 };
        let granted = FileVerdict { left_dirty: vec![left], ..verdict(VerdictKind::Granted) };
        let Verdict::Allow { note: Some(note) } = settled(&granted, &wish()) else { panic!() };
        assert!(note.contains("`src/a.rs`") && note.contains("claude") && note.contains("1 min"), "{note}");
    }
}
