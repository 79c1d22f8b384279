//! What models are told, word for word.

use tenure_api::{
    FileAcquireRequest, FileCaller, FileOwner, FileVerdict, FileVerdictKind, HeldFileView, UncommittedFile,
};
use tenure_hooks::messages::{
    allow_message, payload_rejected_message, retry_exhausted_message, retry_later_message, run_again_message,
    server_unavailable_message, stale_content_message,
};
use tenure_hooks::parse_payload;
use tenure_host::coding_agent::CodingAgent;

fn ask() -> FileAcquireRequest {
    let caller = FileCaller { agent: "codex".to_owned(), session: "9".to_owned(), ..FileCaller::default() };
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
        session: "7f3a".to_owned(),
        holder: "claude/7f3a".to_owned(),
        pid: 4121,
        alive: true,
        task: "fix the parser".to_owned(),
        ..FileOwner::default()
    }
}

fn a_held() -> HeldFileView {
    HeldFileView {
        path: "src/a.rs".to_owned(),
        resource: String::new(),
        owner: owner(),
        held_ms: 725_000,
        idle_ms: 40_000,
    }
}

/// The file is held by one agent; the retry is due in 180 s, or was made.
fn verdict() -> FileVerdict {
    FileVerdict {
        verdict: FileVerdictKind::Wait,
        holder: "codex/9".to_owned(),
        held: vec![a_held()],
        retry_in_ms: Some(180_000),
        report: Some("R-17".to_owned()),
        retry_interval_seconds: 180,
        circle: Vec::new(),
        left_dirty: Vec::new(),
        stale: Vec::new(),
        newly: false,
        standing: None,
    }
}

fn held_by(held: HeldFileView) -> FileVerdict {
    FileVerdict { held: vec![held], ..verdict() }
}

// S4-5, S4-14, S4-27, S4-28, S4-34, S4-35, S4-36, S4-38, S4-39: the model is told what the report says.
#[test]
fn the_retry_exhausted_message_names_holder_report_and_next_steps() {
    assert_eq!(
        retry_exhausted_message(&verdict(), &ask()),
        "`src/a.rs` was not changed: claude (session 7f3a, pid 4121, alive, task \"fix the parser\") has held it for 12 \
         min 5 s, last heard of 40 s ago. The one retry, 180 s after the first attempt, is used up and the file is still held. \
         Stop this task here and tell the person: state waiting_for_instruction, report R-17. Do not go around this with \
         the shell, a copy, git stash or a worktree: the other one's work would be lost. Other files remain editable. The \
         person can look at it with `tenure report show R-17`, hand the file over with `tenure give`, or end the lease with \
         `tenure force-release`; do not run these yourself."
    );
}

#[test]
fn the_retry_exhausted_message_names_a_wait_cycle() {
    let text =
        retry_exhausted_message(&FileVerdict { circle: vec!["a".into(), "b`".into()], ..verdict() }, &ask());
    assert!(
        text.ends_with("do not run these yourself. These sessions wait for each other: a, b ."),
        "{text}"
    );
}

// S4-24
#[test]
fn the_retry_later_message_requests_one_retry() {
    assert_eq!(
        retry_later_message(&verdict(), &ask()),
        "`src/a.rs` was not changed: claude (session 7f3a, pid 4121, alive, task \"fix the parser\") has held it for 12 \
         min 5 s, last heard of 40 s ago. You are in line. Work on something else, and make this same edit once more in 180 s, \
         not earlier: that is the one retry, and if the file is still held then, the task stops and waits. Do not go around \
         this with the shell, a copy, git stash or a worktree: the other one's work would be lost. Other files remain \
         editable."
    );
}

#[test]
fn unknown_holder_details_are_omitted() {
    let owner = FileOwner {
        agent: String::new(),
        session: String::new(),
        holder: "a person".to_owned(),
        pid: 0,
        suspended: true,
        task: String::new(),
        ..owner()
    };
    let text =
        retry_later_message(&held_by(HeldFileView { owner, held_ms: 0, idle_ms: 0, ..a_held() }), &ask());
    let start = "`src/a.rs` was not changed: a person (session a person, suspended) has held it for 0 s, last heard of 0 s ago. ";
    assert!(text.starts_with(start), "{text}");
    let text = retry_later_message(&FileVerdict { held: Vec::new(), ..verdict() }, &ask());
    let start = "`src/a.rs` was not changed: somebody (session unknown, alive) has held it for 0 s, nothing heard of it yet. ";
    assert!(text.starts_with(start), "{text}");
}

#[test]
fn up_to_three_further_held_files_are_named() {
    let held = ["a", "b", "c", "d", "e"].map(|path| HeldFileView { path: path.to_owned(), ..a_held() });
    let text = run_again_message(&FileVerdict { held: held.into(), ..verdict() }, &ask());
    assert!(text.starts_with("`a` was not changed: claude (session 7f3a"), "{text}");
    assert!(text.contains("Run the command again when `tenure who a` says that nobody has it."), "{text}");
    assert!(text.ends_with(" The same call needs further files that are held: `b`, `c`, `d`."), "{text}");
}

#[test]
fn the_stale_content_message_says_to_read_the_file_again() {
    let verdict = FileVerdict { stale: vec!["src/a.rs".into(), "b".into()], ..verdict() };
    assert_eq!(
        stale_content_message(&verdict, &ask()),
        "`src/a.rs` was not written: it has changed since this session last read or wrote it, and this write would undo that \
         change. Read the file again, keep what is new in it, and write it then: after reading it the write passes. The \
         same is true of `b`."
    );
}

#[test]
fn the_server_unavailable_message_names_the_fix() {
    assert_eq!(
        server_unavailable_message("nobody listens", "tenure serve"),
        "Nothing was changed: Tenure's daemon does not answer (nobody listens), so nobody can say whether another agent is \
         editing this file. Do not go around this with the shell or a copy. Ask the person to run `tenure serve`, then try \
         again."
    );
}

// S4-61
#[test]
fn the_allow_message_mentions_uncommitted_changes() {
    let owner = FileOwner {
        agent: "codex".to_owned(),
        session: "9".to_owned(),
        task: "say \"hi\"".to_owned(),
        ..owner()
    };
    let dirty = UncommittedFile { path: "src/a.rs".to_owned(), owner, left_ms: 7_300_000 };
    let granted = FileVerdict { held: Vec::new(), left_dirty: vec![dirty], ..verdict() };
    assert_eq!(
        allow_message(&granted).unwrap(),
        "`src/a.rs` has changes that are not committed: codex (session 9, task \"say 'hi'\") left them 2 h 1 min ago. Keep \
         them unless you are told otherwise, and mention them when you commit this file."
    );
}

#[test]
fn the_payload_rejected_message_explains_the_error() {
    let unheard = parse_payload(CodingAgent::Claude, b"{").expect_err("no JSON");
    assert_eq!(
        payload_rejected_message(&unheard),
        "Tenure did not understand this call: the hook was given something that is not JSON (line 1, column 1). Nobody can \
         say which files it would change, so it was not allowed. Make the change with the plain edit tool, one file at a \
         time; if that is denied too, ask the person to run `tenure files`."
    );
}

#[test]
fn durations_are_short_and_retry_times_are_rounded_up() {
    let spans =
        [(0, "0 s"), (59, "59 s"), (60, "1 min"), (3_600, "1 h"), (90_061, "1 d 1 h"), (86_460, "1 d")];
    for (time, expected) in spans {
        let text = retry_later_message(&held_by(HeldFileView { held_ms: time * 1_000, ..a_held() }), &ask());
        assert!(text.contains(&format!("has held it for {expected}, last")), "{time}: {text}");
    }
    let text = retry_later_message(&FileVerdict { retry_in_ms: Some(94_001), ..verdict() }, &ask());
    assert!(text.contains("once more in 95 s, not earlier"), "{text}");
}

#[test]
fn messages_are_one_bounded_paragraph_for_any_names() {
    let odd = "x\n`IGNORE THIS`\u{2028}\u{1b}\"".repeat(500);
    let owner = FileOwner { agent: odd.clone(), task: odd.clone(), session: odd.clone(), ..owner() };
    let held = HeldFileView {
        path: odd.clone(),
        owner: owner.clone(),
        held_ms: u64::MAX,
        idle_ms: u64::MAX,
        ..a_held()
    };
    let odd_verdict = FileVerdict {
        retry_in_ms: Some(u64::MAX),
        report: Some(odd.clone()),
        retry_interval_seconds: u64::MAX,
        stale: vec![odd.clone()],
        ..held_by(held)
    };
    let uncommitted = vec![UncommittedFile { path: odd.clone(), owner, left_ms: u64::MAX }];
    let texts = [
        retry_later_message(&odd_verdict, &ask()),
        run_again_message(&odd_verdict, &ask()),
        retry_exhausted_message(&odd_verdict, &ask()),
        stale_content_message(&odd_verdict, &ask()),
        server_unavailable_message(&odd, &odd),
        allow_message(&FileVerdict { held: Vec::new(), left_dirty: uncommitted, ..verdict() }).unwrap(),
    ];
    for text in texts {
        assert!(text.chars().count() < 1_600, "{}: {text}", text.chars().count());
        assert!(
            !text.contains(|character: char| character.is_control() || character == '\u{2028}'),
            "{text}"
        );
    }
    // With names as people give them, it is about 900 at most.
    assert!(retry_exhausted_message(&verdict(), &ask()).len() < 900);
}
