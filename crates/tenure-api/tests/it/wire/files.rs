//! Samples of the files API.

use tenure_api::{
    AuditedWorktree, Blame, BlamedLine, BlockerReport, BlockerReportList, CommitReport, CommitResult,
    FileAcquireRequest, FileCaller, FileEventDetails, FileEventKind, FileEventReport,
    FileForceReleaseRequest, FileGiveRequest, FileOwner, FileSessionView, FileStatus, FileVerdict,
    FileVerdictKind, FileView, FileWaiter, FilesOverview, GrantGeneration, HeldFileView, StagedFilesRequest,
    UncommittedFile,
};

use super::{AT, LATER, Samples, full_and_none, list, some, texts};

pub(super) fn add_samples(samples: &mut Samples) {
    requests(samples);
    samples.add([owner()]);
    samples.add([held_file()]);
    samples.add([uncommitted_file()]);
    samples.add([
        FileVerdictKind::Granted,
        FileVerdictKind::Wait,
        FileVerdictKind::Blocked,
        FileVerdictKind::Stale,
    ]);
    samples.add([grant_generation()]);
    samples.add(full_and_none(|full| FileVerdict {
        verdict: if full { FileVerdictKind::Blocked } else { FileVerdictKind::Granted },
        holder: "file:claude:s-1".into(),
        held: list(full, [held_file()]),
        retry_in_ms: some(full, 30_000_u64),
        report: some(full, "BR-5"),
        retry_interval_seconds: 30,
        circle: texts(full, ["file:claude:s-1", "file:codex:s-2"]),
        left_dirty: list(full, [uncommitted_file()]),
        stale: texts(full, ["src/lib.rs"]),
        newly: full,
        standing: some(full, grant_generation()),
    }));
    samples.add(full_and_none(|full| CommitResult {
        released: texts(full, ["src/lib.rs"]),
        foreign: list(full, [held_file()]),
        left_dirty: list(full, [uncommitted_file()]),
    }));
    samples.add(full_and_none(report));
    samples
        .add(full_and_none(|full| BlockerReportList { reports: list(full, [report(true), report(false)]) }));
    views(samples);
    samples.add(full_and_none(file_event_details));
}

fn requests(samples: &mut Samples) {
    let caller = |full| FileCaller {
        agent: "claude".into(),
        session: "s-1".into(),
        subagent: some(full, "a-1"),
        parent: some(full, "s-0"),
        task: some(full, "fix the parser"),
    };
    samples.add(full_and_none(caller));
    samples.add(full_and_none(|full| FileAcquireRequest {
        speaker: caller(full),
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
    samples.add(kinds);
    samples.add(full_and_none(|full| FileEventReport {
        speaker: caller(full),
        event: FileEventKind::Wrote,
        cwd: some(full, "/repo"),
        paths: texts(full, ["src/lib.rs"]),
        detail: some(full, "sed -i"),
    }));
    samples.add(full_and_none(|full| CommitReport {
        root: "/repo".into(),
        paths: texts(full, ["src/lib.rs"]),
        dirty: texts(full, ["src/main.rs"]),
        session: some(full, "s-1"),
    }));
    samples.add(full_and_none(|full| StagedFilesRequest {
        root: "/repo".into(),
        paths: texts(full, ["src/lib.rs"]),
        session: some(full, "s-1"),
    }));
    samples.add([FileGiveRequest { path: "/repo/src/lib.rs".into(), to: "s-2".into() }]);
    samples
        .add([FileForceReleaseRequest { path: "/repo/src/lib.rs".into(), reason: "the agent hangs".into() }]);
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
    let session = |full| FileSessionView {
        owner: owner(),
        parent: some(full, "s-0"),
        known_ms: 2_000,
        idle_ms: 500,
        files: 1,
    };
    let tree = |full| AuditedWorktree {
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
    samples.add(full_and_none(waiter));
    samples.add(full_and_none(view));
    samples.add(full_and_none(session));
    samples.add(full_and_none(tree));
    samples.add(full_and_none(|full| FilesOverview {
        files: list(full, [view(true), view(false)]),
        sessions: list(full, [session(true), session(false)]),
        audit: list(full, [tree(true), tree(false)]),
        standing: some(full, grant_generation()),
    }));
    samples.add(full_and_none(|full| FileStatus {
        path: "src/lib.rs".into(),
        file: some(full, view(true)),
        left: some(full, uncommitted_file()),
    }));
    samples.add(full_and_none(line));
    samples.add(full_and_none(|full| Blame {
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
        task: "fix the parser".into(),
        ..FileOwner::default()
    }
}

fn held_file() -> HeldFileView {
    HeldFileView {
        path: "src/lib.rs".into(),
        resource: "file:/repo/src/lib.rs".into(),
        owner: owner(),
        held_ms: 1_000,
        idle_ms: 500,
    }
}

fn uncommitted_file() -> UncommittedFile {
    UncommittedFile { path: "src/lib.rs".into(), owner: owner(), left_ms: 700 }
}

fn grant_generation() -> GrantGeneration {
    GrantGeneration { file: "/run/standing".into(), mark: 7 }
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

pub(super) fn file_event_details(full: bool) -> FileEventDetails {
    FileEventDetails {
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
