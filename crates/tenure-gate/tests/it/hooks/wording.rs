//! What models are told, word for word.

use std::time::Duration;

use tenure_gate::agent::Agent;
use tenure_gate::hooks::read;
use tenure_gate::hooks::wording::{
    Blocked, Held, Holder, LeftDirty, NoDaemon, Stale, blocked, held, left_dirty, no_daemon, not_understood,
    stale, waiting,
};

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn holder() -> Holder {
    Holder {
        agent: "claude".to_owned(),
        task: Some("fix the parser".to_owned()),
        session: "7f3a".to_owned(),
        process: Some(4121),
        suspended: false,
        held_for: seconds(725),
        last_heard: Some(seconds(40)),
    }
}

fn a_blocked() -> Blocked {
    Blocked {
        file: "src/a.rs".to_owned(),
        holder: holder(),
        retried_after: seconds(180),
        report: "R-17".to_owned(),
        wanted_back: None,
    }
}

fn a_held() -> Held {
    Held { file: "src/a.rs".to_owned(), holder: holder(), retry_in: seconds(95) }
}

// S4-5, S4-14, S4-27, S4-28, S4-34, S4-35, S4-36, S4-38, S4-39: the model is told what the report says.
#[test]
fn whoever_is_blocked_is_told_all_there_is_to_know() {
    assert_eq!(
        blocked(&a_blocked()),
        "`src/a.rs` was not changed: claude (session 7f3a, pid 4121, alive, task \"fix the parser\") has held it for 12 \
         min 5 s, last heard of 40 s ago. The one retry, 180 s after the first attempt, is used up and the file is still held. \
         Stop this task here and tell the person: state waiting_for_instruction, report R-17. Do not go around this with \
         the shell, a copy, git stash or a worktree: the other one's work would be lost. Other files remain editable. The \
         person can look at it with `tenure report show R-17`, hand the file over with `tenure give`, or end the lease with \
         `tenure force-release`; do not run these yourself."
    );
}

#[test]
fn two_that_wait_for_each_other_are_told_so() {
    let text = blocked(&Blocked { wanted_back: Some("src/b.rs".to_owned()), ..a_blocked() });
    let circle = "You wait for each other: it waits for `src/b.rs`, which this session holds.";
    assert!(text.contains(&format!("still held. {circle} Stop this task")), "{text}");
}

// S4-25
#[test]
fn whoever_asks_again_is_told_that_the_retry_is_on_its_way() {
    assert_eq!(
        held(&a_held()),
        "`src/a.rs` was not changed: claude (session 7f3a, pid 4121, alive, task \"fix the parser\") has held it for 12 \
         min 5 s, last heard of 40 s ago. The one retry of this session is scheduled and comes in 95 s; asking again \
         before that changes nothing. Do not go around this with the shell, a copy, git stash or a worktree: the other \
         one's work would be lost. Other files remain editable."
    );
}

// S4-24
#[test]
fn where_no_hook_can_wait_the_retry_is_asked_for() {
    assert_eq!(
        waiting(&Held { retry_in: seconds(180), ..a_held() }),
        "`src/a.rs` was not changed: claude (session 7f3a, pid 4121, alive, task \"fix the parser\") has held it for 12 \
         min 5 s, last heard of 40 s ago. You are in line. Work on something else, and make this same edit once more in 180 s, \
         not earlier: that is the one retry, and if the file is still held then, the task stops and waits. Do not go around \
         this with the shell, a copy, git stash or a worktree: the other one's work would be lost. Other files remain \
         editable."
    );
}

#[test]
fn what_is_not_known_of_a_holder_is_left_out() {
    let holder = Holder {
        agent: "a person".to_owned(),
        task: None,
        process: None,
        suspended: true,
        held_for: seconds(0),
        last_heard: None,
        ..holder()
    };
    let text = held(&Held { holder, ..a_held() });
    let start = "`src/a.rs` was not changed: a person (session 7f3a, suspended) has held it for 0 s, nothing heard of it yet. ";
    assert!(text.starts_with(start), "{text}");
}

#[test]
fn whoever_would_undo_a_change_is_told_to_read_again() {
    let file = "src/a.rs".to_owned();
    assert_eq!(
        stale(&Stale { file: file.clone(), changed_by: Some("codex, session 9".to_owned()) }),
        "`src/a.rs` was not written: it has changed since this session last read or wrote it (by codex, session 9), and \
         this write would undo that change. Read the file again, keep what is new in it, and write it then: after reading it \
         the write passes."
    );
    let text = stale(&Stale { file, changed_by: None });
    assert!(text.contains("last read or wrote it, and this write"), "{text}");
}

#[test]
fn without_a_daemon_the_one_command_that_helps_is_named() {
    let daemon = NoDaemon { problem: "nobody listens".to_owned(), fix: "tenure serve".to_owned() };
    assert_eq!(
        no_daemon(&daemon),
        "Nothing was changed: Tenure's daemon does not answer (nobody listens), so nobody can say whether another agent is \
         editing this file. Do not go around this with the shell or a copy. Ask the person to run `tenure serve`, then try \
         again."
    );
}

// S4-61
#[test]
fn the_next_one_is_told_of_changes_that_are_not_committed() {
    let left = LeftDirty {
        file: "src/a.rs".to_owned(),
        agent: "codex".to_owned(),
        session: "9".to_owned(),
        task: Some("say \"hi\"".to_owned()),
        ago: seconds(7_300),
    };
    assert_eq!(
        left_dirty(&left),
        "`src/a.rs` has changes that are not committed: codex (session 9, task \"say 'hi'\") left them 2 h 1 min ago. Keep \
         them unless you are told otherwise, and mention them when you commit this file."
    );
}

#[test]
fn what_was_not_understood_is_explained() {
    let unheard = read(Agent::Claude, b"{").expect_err("no JSON");
    assert_eq!(
        not_understood(&unheard),
        "Tenure did not understand this call: the hook was given something that is not JSON (line 1, column 1). Nobody can \
         say which files it would change, so it was not allowed. Make the change with the plain edit tool, one file at a \
         time; if that is denied too, ask the person to run `tenure files`."
    );
}

#[test]
fn times_are_short_and_waits_are_never_too_short() {
    let spans =
        [(0, "0 s"), (59, "59 s"), (60, "1 min"), (3_600, "1 h"), (90_061, "1 d 1 h"), (86_460, "1 d")];
    for (time, expected) in spans {
        let text = held(&Held { holder: Holder { held_for: seconds(time), ..holder() }, ..a_held() });
        assert!(text.contains(&format!("has held it for {expected}, last")), "{time}: {text}");
    }
    let text = held(&Held { retry_in: Duration::from_millis(94_001), ..a_held() });
    assert!(text.contains("comes in 95 s;"), "{text}");
}

#[test]
fn no_text_is_long_or_more_than_a_paragraph_whatever_others_are_called() {
    let odd = "x\n`IGNORE THIS`\u{2028}\u{1b}\"".repeat(500);
    let holder = Holder {
        agent: odd.clone(),
        task: Some(odd.clone()),
        session: odd.clone(),
        held_for: Duration::MAX,
        last_heard: Some(Duration::MAX),
        ..holder()
    };
    let held_odd = Held { file: odd.clone(), holder: holder.clone(), retry_in: Duration::MAX };
    let blocked_odd = Blocked {
        file: odd.clone(),
        holder,
        retried_after: Duration::MAX,
        report: odd.clone(),
        wanted_back: Some(odd.clone()),
    };
    let left = LeftDirty {
        file: odd.clone(),
        agent: odd.clone(),
        session: odd.clone(),
        task: Some(odd.clone()),
        ago: Duration::MAX,
    };
    let texts = [
        held(&held_odd),
        waiting(&held_odd),
        blocked(&blocked_odd),
        stale(&Stale { file: odd.clone(), changed_by: Some(odd.clone()) }),
        no_daemon(&NoDaemon { problem: odd.clone(), fix: odd.clone() }),
        left_dirty(&left),
    ];
    for text in texts {
        assert!(text.chars().count() < 1_600, "{}: {text}", text.chars().count());
        assert!(
            !text.contains(|character: char| character.is_control() || character == '\u{2028}'),
            "{text}"
        );
    }
    // With names as people give them, it is about 900 at most.
    assert!(blocked(&a_blocked()).len() < 900);
}
