//! Samples of the files API.

use tenure_api::{
    AuditedTree, Blame, BlamedLine, BlockerReport, BlockerReports, CommitNote, FileAsk, FileChange,
    FileCommit, FileEventKind, FileForce, FileGive, FileNews, FileOwner, FileSpeaker, FileStaged,
    FileVerdict, FileView, FileWaiter, Files, HeldBy, LeftBy, OneFile, SessionOfAgent, Standing, VerdictKind,
};

use super::{AT, LATER, Samples, full_and_none, list, some, texts};

pub(super) fn add(samples: &mut Samples) {
    requests(samples);
    samples.both([owner()]);
    samples.both([held()]);
    samples.both([left()]);
    samples.both([VerdictKind::Granted, VerdictKind::Wait, VerdictKind::Blocked, VerdictKind::Stale]);
    samples.both([standing()]);
    samples.both(full_and_none(|full| FileVerdict {
        verdict: if full { VerdictKind::Blocked } else { VerdictKind::Granted },
        holder: "file:claude:s-1".into(),
        held: list(full, [held()]),
        retry_in_ms: some(full, 30_000_u64),
        report: some(full, "BR-5"),
        retry_interval_seconds: 30,
        circle: texts(full, ["file:claude:s-1", "file:codex:s-2"]),
        left_dirty: list(full, [left()]),
        stale: texts(full, ["src/lib.rs"]),
        newly: full,
        standing: some(full, standing()),
    }));
    samples.both(full_and_none(|full| CommitNote {
        released: texts(full, ["src/lib.rs"]),
        foreign: list(full, [held()]),
        left_dirty: list(full, [left()]),
    }));
    samples.both(full_and_none(report));
    samples.both(full_and_none(|full| BlockerReports { reports: list(full, [report(true), report(false)]) }));
    views(samples);
    samples.both(full_and_none(change));
}

fn requests(samples: &mut Samples) {
    let speaker = |full| FileSpeaker {
        agent: "claude".into(),
        session: "s-1".into(),
        subagent: some(full, "a-1"),
        parent: some(full, "s-0"),
        task: some(full, "fix the parser"),
    };
    samples.out(full_and_none(speaker));
    samples.out(full_and_none(|full| FileAsk {
        speaker: speaker(full),
        cwd: "/repo".into(),
        paths: texts(full, ["src/lib.rs"]),
        entries: texts(full, ["src"]),
        whole: full,
        process: some(full, 17_u32),
        orphan: full,
        named: full,
    }));
    let kinds = [
        FileEventKind::Active,
        FileEventKind::Read,
        FileEventKind::Wrote,
        FileEventKind::Unguarded,
        FileEventKind::TurnEnded,
        FileEventKind::SubagentEnded,
        FileEventKind::Ended,
        FileEventKind::Guarding,
    ];
    samples.out(kinds);
    samples.out(full_and_none(|full| FileNews {
        speaker: speaker(full),
        event: FileEventKind::Wrote,
        cwd: some(full, "/repo"),
        paths: texts(full, ["src/lib.rs"]),
        detail: some(full, "sed -i"),
    }));
    samples.out(full_and_none(|full| FileCommit {
        root: "/repo".into(),
        paths: texts(full, ["src/lib.rs"]),
        dirty: texts(full, ["src/main.rs"]),
        session: some(full, "s-1"),
    }));
    samples.out(full_and_none(|full| FileStaged {
        root: "/repo".into(),
        paths: texts(full, ["src/lib.rs"]),
        session: some(full, "s-1"),
    }));
    samples.out([FileGive { path: "/repo/src/lib.rs".into(), to: "s-2".into() }]);
    samples.out([FileForce { path: "/repo/src/lib.rs".into(), reason: "the agent hangs".into() }]);
}

fn views(samples: &mut Samples) {
    let waiter = |full| FileWaiter {
        session: "s-2".into(),
        agent: "codex".into(),
        retry_in_ms: 0,
        state: "BLOCKED".into(),
        report: some(full, "BR-5"),
    };
    let view = |full| FileView {
        path: "src/lib.rs".into(),
        root: some(full, "/repo"),
        resource: "file:/repo/src/lib.rs".into(),
        owner: owner(),
        acquired_at: AT.into(),
        last_heartbeat_at: LATER.into(),
        lease_state: "CONTENDED".into(),
        held_ms: 1_000,
        idle_ms: 500,
        released_in_ms: some(full, 9_000_u64),
        waiters: list(full, [waiter(true), waiter(false)]),
    };
    let session = |full| SessionOfAgent {
        owner: owner(),
        parent: some(full, "s-0"),
        known_ms: 2_000,
        idle_ms: 500,
        files: 1,
    };
    let tree = |full| AuditedTree {
        root: "/repo".into(),
        folders: 12,
        unwatched: 1,
        why: some(full, "the limit of inotify watches is reached"),
        missed: 2,
    };
    let line = |full| BlamedLine {
        number: 3,
        text: "fn main() {}".into(),
        by: if full { "session" } else { "committed" }.into(),
        agent: some(full, "claude"),
        session: some(full, "s-1"),
        at: some(full, AT),
    };
    samples.both(full_and_none(waiter));
    samples.both(full_and_none(view));
    samples.both(full_and_none(session));
    samples.both(full_and_none(tree));
    samples.both(full_and_none(|full| Files {
        files: list(full, [view(true), view(false)]),
        sessions: list(full, [session(true), session(false)]),
        audit: list(full, [tree(true), tree(false)]),
        standing: some(full, standing()),
    }));
    samples.both(full_and_none(|full| OneFile {
        path: "src/lib.rs".into(),
        file: some(full, view(true)),
        left: some(full, left()),
    }));
    samples.both(full_and_none(line));
    samples.both(full_and_none(|full| Blame {
        path: "src/lib.rs".into(),
        owner: some(full, owner()),
        lines: list(full, [line(true), line(false)]),
    }));
}

fn owner() -> FileOwner {
    FileOwner {
        agent: "claude".into(),
        session: "s-1".into(),
        holder: "file:claude:s-1".into(),
        pid: 17,
        alive: true,
        suspended: false,
        task: "fix the parser".into(),
    }
}

fn held() -> HeldBy {
    HeldBy {
        path: "src/lib.rs".into(),
        resource: "file:/repo/src/lib.rs".into(),
        owner: owner(),
        held_ms: 1_000,
        idle_ms: 500,
    }
}

fn left() -> LeftBy {
    LeftBy { path: "src/lib.rs".into(), owner: owner(), left_ms: 700 }
}

fn standing() -> Standing {
    Standing { file: "/run/standing".into(), mark: 7 }
}

fn report(full: bool) -> BlockerReport {
    BlockerReport {
        id: "BR-5".into(),
        blocked_file: "src/lib.rs".into(),
        root: some(full, "/repo"),
        resource: "file:/repo/src/lib.rs".into(),
        owner: owner(),
        lock_age_ms: 1_000,
        last_heartbeat_at: AT.into(),
        retry_interval_seconds: 30,
        state: "waiting_for_instruction".into(),
        blocked: owner(),
        asked_at: AT.into(),
        blocked_at: LATER.into(),
        circle: texts(full, ["file:claude:s-1", "file:codex:s-2"]),
        held_now_by: some(full, owner()),
        closed_at: some(full, LATER),
    }
}

pub(super) fn change(full: bool) -> FileChange {
    FileChange {
        holder: "file:claude:s-1".into(),
        agent: some(full, "claude"),
        session: some(full, "s-1"),
        resource: some(full, "file:/repo/src/lib.rs"),
        owner: some(full, "file:codex:s-2"),
        ticket: some(full, 5_u64),
        retry_at: some(full, LATER),
        circle: texts(full, ["file:claude:s-1", "file:codex:s-2"]),
    }
}
