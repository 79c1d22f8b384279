//! What the server said, as the agent and its model are told.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tenure_api::{FileAsk, FileVerdict, HeldBy, VerdictKind};
use tenure_gate::hooks::Verdict;
use tenure_gate::hooks::wording::{self, Blocked, Held, Holder, LeftDirty, Stale};

use crate::duration::short;

/// How many further files are named in one text.
const MOST_NAMED: usize = 3;

/// The verdict that the retry, or a first attempt that needs none, has led to.
pub fn settled(verdict: &FileVerdict, wish: &FileAsk) -> Verdict {
    match verdict.verdict {
        VerdictKind::Granted => Verdict::Allow { note: note(verdict) },
        VerdictKind::Wait => come_back(verdict, wish),
        VerdictKind::Blocked => Verdict::Deny { reason: blocked(verdict, wish), stop: true },
        VerdictKind::Stale => Verdict::Deny { reason: stale(verdict, wish), stop: false },
    }
}

/// Where a hook cannot wait: denied, with the time at which to ask once more.
pub fn come_back(verdict: &FileVerdict, wish: &FileAsk) -> Verdict {
    let (file, holder) = first(verdict, wish);
    let retry_in = Duration::from_millis(verdict.retry_in_ms.unwrap_or(0));
    let mut reason = wording::waiting(&Held { file, holder, retry_in });
    reason.push_str(&more(verdict));
    Verdict::Deny { reason, stop: false }
}

/// For a command that was started by no agent.
pub fn run_again(verdict: &FileVerdict, wish: &FileAsk) -> String {
    let (file, holder) = first(verdict, wish);
    wording::run_again(&file, &holder) + &more(verdict)
}

/// The contention heartbeat: one line for whoever reads the hook's standard error.
pub fn heartbeat(verdict: &FileVerdict, wish: &FileAsk) -> String {
    let (file, holder) = first(verdict, wish);
    let left = verdict.retry_in_ms.unwrap_or(0);
    let wait = SignedDuration::from_millis(i64::try_from(left).unwrap_or(i64::MAX));
    let at = Timestamp::now().checked_add(wait).unwrap_or(Timestamp::MAX);
    let line = format!(
        "tenure: contention: {file} is held by {} (session {}); the one retry is at {at:.0}, in {}",
        holder.agent,
        holder.session,
        short(left)
    );
    format!("{}\n", line.replace(char::is_control, " "))
}

fn blocked(verdict: &FileVerdict, wish: &FileAsk) -> String {
    let (file, holder) = first(verdict, wish);
    let mut text = wording::blocked(&Blocked {
        file,
        holder,
        retried_after: Duration::from_secs(verdict.retry_interval_seconds),
        report: verdict.report.clone().unwrap_or_else(|| "unknown".to_owned()),
        wanted_back: None,
    });
    text.push_str(&more(verdict));
    if !verdict.circle.is_empty() {
        let circle: Vec<_> = verdict.circle.iter().take(8).map(|name| plain(name)).collect();
        text.push_str(&format!(" These sessions wait for each other: {}.", circle.join(", ")));
    }
    text
}

fn stale(verdict: &FileVerdict, wish: &FileAsk) -> String {
    let file = verdict.stale.first().or(wish.paths.first()).cloned().unwrap_or_default();
    let mut text = wording::stale(&Stale { file, changed_by: None });
    let others: Vec<_> =
        verdict.stale.iter().skip(1).take(MOST_NAMED).map(|path| format!("`{}`", plain(path))).collect();
    if !others.is_empty() {
        text.push_str(&format!(" The same is true of {}.", others.join(", ")));
    }
    text
}

/// What the model should know though it may go on.
fn note(verdict: &FileVerdict) -> Option<String> {
    let held = verdict.held.iter().take(MOST_NAMED).map(|held| {
        format!(
            "`{}` is being edited by {} (session {}) as well. Tenure only warns here, as it is configured: tell the person.",
            plain(&held.path),
            plain(&held.owner.agent),
            plain(&held.owner.session)
        )
    });
    let left = verdict.left_dirty.iter().take(MOST_NAMED).map(|left| {
        wording::left_dirty(&LeftDirty {
            file: left.path.clone(),
            agent: left.owner.agent.clone(),
            session: left.owner.session.clone(),
            task: Some(left.owner.task.clone()).filter(|task| !task.is_empty()),
            ago: Duration::from_millis(left.left_ms),
        })
    });
    let texts: Vec<_> = held.chain(left).collect();
    (!texts.is_empty()).then(|| texts.join(" "))
}

/// The first file that somebody else has, and who.
fn first(verdict: &FileVerdict, wish: &FileAsk) -> (String, Holder) {
    match verdict.held.first() {
        Some(held) => (held.path.clone(), holder(held)),
        None => {
            let file = wish.paths.first().cloned().unwrap_or_default();
            let nobody = Holder {
                agent: "somebody".to_owned(),
                task: None,
                session: "unknown".to_owned(),
                process: None,
                suspended: false,
                held_for: Duration::ZERO,
                last_heard: None,
            };
            (file, nobody)
        }
    }
}

fn holder(held: &HeldBy) -> Holder {
    let owner = &held.owner;
    // Who holds without being an agent has its name alone.
    let named = |text: &String| if text.is_empty() { owner.holder.clone() } else { text.clone() };
    Holder {
        agent: named(&owner.agent),
        task: Some(owner.task.clone()).filter(|task| !task.is_empty()),
        session: named(&owner.session),
        process: Some(owner.pid).filter(|pid| *pid != 0),
        suspended: owner.suspended,
        held_for: Duration::from_millis(held.held_ms),
        last_heard: Some(Duration::from_millis(held.idle_ms)),
    }
}

/// The other files of the call that somebody has.
fn more(verdict: &FileVerdict) -> String {
    let others: Vec<_> = verdict.held.iter().skip(1).take(MOST_NAMED).map(|held| plain(&held.path)).collect();
    match others.as_slice() {
        [] => String::new(),
        others => format!(" The same call needs further files that are held: `{}`.", others.join("`, `")),
    }
}

/// What others wrote, as a part of one line.
fn plain(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_control() || letter == '`' { ' ' } else { letter })
        .take(160)
        .collect()
}

#[cfg(test)]
mod tests {
    use tenure_api::{FileOwner, FileSpeaker, LeftBy};

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
    fn blocked_stops_and_names_the_report_the_owner_and_the_circle() {
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
    fn stale_is_denied_and_nothing_stops() {
        let stale = FileVerdict { stale: vec!["a".into(), "b".into()], ..verdict(VerdictKind::Stale) };
        let (reason, stop) = reason(settled(&stale, &wish()));
        assert!(
            !stop && reason.contains("`a`") && reason.contains("`b`") && reason.contains("Read"),
            "{reason}"
        );
    }

    // S4-25
    #[test]
    fn who_cannot_wait_is_told_when_to_ask_once_more() {
        let (reason, stop) = reason(come_back(&verdict(VerdictKind::Wait), &wish()));
        assert!(!stop && reason.contains("once more in 180 s, not earlier"), "{reason}");
    }

    #[test]
    fn who_runs_a_command_by_hand_is_told_how_to_find_out_when_to_run_it_again() {
        let text = run_again(&verdict(VerdictKind::Wait), &wish());
        assert!(text.contains("`tenure who src/a.rs`") && text.contains("session s1"), "{text}");
        assert!(!text.contains("180 s") && !text.contains("in line"), "{text}");
    }

    // S4-23
    #[test]
    fn the_heartbeat_is_one_line_that_says_who_and_when() {
        let mut wait = verdict(VerdictKind::Wait);
        wait.held[0].path = "a\nb".to_owned();
        let line = heartbeat(&wait, &wish());
        assert!(line.starts_with("tenure: contention: a b is held by claude (session s1)"), "{line}");
        assert!(line.ends_with("Z, in 3m\n") && line.matches('\n').count() == 1, "{line}");
    }

    #[test]
    fn a_grant_is_silent_unless_somebody_left_something() {
        assert_eq!(settled(&verdict(VerdictKind::Granted), &wish()), Verdict::Allow { note: None });
        let left = LeftBy { path: "src/a.rs".to_owned(), owner: owner(), left_ms: 60_000 };
        let granted = FileVerdict { left_dirty: vec![left], ..verdict(VerdictKind::Granted) };
        let Verdict::Allow { note: Some(note) } = settled(&granted, &wish()) else { panic!() };
        assert!(note.contains("`src/a.rs`") && note.contains("claude") && note.contains("1 min"), "{note}");
    }
}
