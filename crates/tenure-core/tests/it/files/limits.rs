//! What is too much, too long or not to be stored, and what happens when there is no room.

use tenure_core::kernel::{
    AdmissionLevel, Command, FileAcquire, FileCommand, FileOutcome, FileRequest, FileSessionActivity,
    FileSessionEnd, FileSessionInfo, Limits, MAX_BLOCKED_REPORTS, MAX_FILE_NAMES_PER_COMMAND,
    MAX_FILES_PER_COMMAND, MAX_RETRY_TICKETS_PER_SESSION, MAX_UNCOMMITTED_FILES, RecordedProcess, Rejection,
    Resource, Tick, Ticket,
};
use tenure_core::kernel::{CommandOutcome, Decision, MAX_FILE_SESSIONS};

use crate::scenario::{ScenarioWorld, holder};
use crate::scenario_files::{file_request, session_info};

fn names(count: usize, beginning: &str) -> Vec<FileRequest> {
    (0..count).map(|number| file_request(&format!("{beginning}{number:05}"))).collect()
}

fn acquire_files(session: &str, files: Vec<FileRequest>, checked: &[&str]) -> Command {
    let checked = checked.iter().map(|name| holder(name)).collect();
    let session = session_info(session, None, None, None);
    Command::File(Box::new(FileCommand::Acquire(FileAcquire { session, files, checked, background: false })))
}

fn record_activity(session: FileSessionInfo) -> Command {
    Command::File(Box::new(FileCommand::RecordActivity { session, activity: FileSessionActivity::Active }))
}

fn is_invalid(decision: &Decision, field: &str) -> bool {
    matches!(&decision.outcome, CommandOutcome::Rejected(Rejection::Invalid(input)) if input.field == field)
}

#[test]
fn file_requests_beyond_the_limits_are_rejected() {
    let mut world = ScenarioWorld::new(Limits::default());
    let too_many =
        world.decide_and_apply(&acquire_files("s1", names(MAX_FILES_PER_COMMAND + 1, "f"), &[]), Tick(0));
    assert!(is_invalid(&too_many, "files") && too_many.events.is_empty());
    let aliases = |count: usize| {
        let names: Vec<String> = (0..count).map(|number| format!("n{number}")).collect();
        vec![file_request(&names.join("="))]
    };
    assert!(is_invalid(
        &world.decide_and_apply(&acquire_files("s1", aliases(MAX_FILE_NAMES_PER_COMMAND + 1), &[]), Tick(0)),
        "files"
    ));
    let long = vec![file_request(
        &(0..600).map(|number| format!("{number:04}{}", "x".repeat(2_000))).collect::<Vec<_>>().join("="),
    )];
    assert!(is_invalid(&world.decide_and_apply(&acquire_files("s1", long, &[]), Tick(0)), "files"));
    let all = world.decide_and_apply(&acquire_files("s1", names(MAX_FILES_PER_COMMAND, "f"), &[]), Tick(0));
    assert_eq!(all.events.len(), MAX_FILES_PER_COMMAND + 1);
    let commit = FileCommand::Commit {
        sessions: vec![holder("s1")],
        resources: vec![Resource::parse("f").expect("a name"); MAX_FILES_PER_COMMAND + 1],
    };
    assert!(is_invalid(&world.decide_and_apply(&Command::File(Box::new(commit)), Tick(0)), "files"));
}

#[test]
fn acquire_of_a_folder_or_pattern_as_a_file_is_rejected() {
    let mut world = ScenarioWorld::new(Limits::default());
    for name in ["FILE:t/", "FILE:t/*.rs", "FILE:t/{a,b}", "FILE:t/a?"] {
        assert!(
            is_invalid(
                &world.decide_and_apply(&acquire_files("s1", vec![file_request(name)], &[]), Tick(0)),
                "files"
            ),
            "{name}"
        );
        assert!(is_invalid(
            &world.decide_and_apply(
                &acquire_files("s1", vec![file_request(&format!("a={name}"))], &[]),
                Tick(0)
            ),
            "files"
        ));
    }
    world.decide_and_apply(&record_activity(session_info("s1", None, None, None)), Tick(0));
    let by = crate::scenario::principal("token:person");
    let command = FileCommand::Give { file: file_request("FILE:t/"), to: holder("s1"), by };
    assert!(is_invalid(&world.decide_and_apply(&Command::File(Box::new(command)), Tick(0)), "files"));
}

#[test]
fn retry_tickets_per_session_are_limited() {
    let mut world = ScenarioWorld::new(Limits::default());
    let half = MAX_RETRY_TICKETS_PER_SESSION / 2;
    let first = names(half, "f");
    for part in names(MAX_RETRY_TICKETS_PER_SESSION + 1, "f").chunks(MAX_FILES_PER_COMMAND) {
        world.decide_and_apply(&acquire_files("s1", part.to_vec(), &[]), Tick(0));
    }
    world.decide_and_apply(&acquire_files("s2", first.clone(), &["s1"]), Tick(0));
    assert_eq!(world.state.retry_tickets().count(), half);
    // Again, and the other half: that is not too many.
    let mut rest = names(MAX_RETRY_TICKETS_PER_SESSION, "f").split_off(half);
    let last = rest.pop().expect("there are several");
    let again: Vec<_> = first.iter().take(400).cloned().chain(rest).collect();
    let decision = world.decide_and_apply(&acquire_files("s2", again, &["s1"]), Tick(1));
    assert!(
        matches!(&decision.outcome, CommandOutcome::File(answer) if matches!(**answer, FileOutcome::Wait { .. }))
    );
    assert_eq!(world.state.retry_tickets().count(), MAX_RETRY_TICKETS_PER_SESSION - 1);
    // One and another would be one too many, and then none of them is drawn.
    let one_too_many =
        vec![last.clone(), names(MAX_RETRY_TICKETS_PER_SESSION + 1, "f").pop().expect("there are several")];
    let decision = world.decide_and_apply(&acquire_files("s2", one_too_many, &["s1"]), Tick(1));
    assert_eq!(
        decision.outcome,
        CommandOutcome::Rejected(Rejection::QueueFull {
            what: "s2".into(),
            max: MAX_RETRY_TICKETS_PER_SESSION
        })
    );
    assert!(decision.events.is_empty(), "{decision:?}");
    world.decide_and_apply(&acquire_files("s2", vec![last.clone()], &["s1"]), Tick(1));
    world.decide_and_apply(&acquire_files("s2", vec![last], &["s1"]), Tick(1));
    assert_eq!(world.state.retry_tickets().count(), MAX_RETRY_TICKETS_PER_SESSION);
}

#[test]
fn file_sessions_are_limited() {
    // Without the checks after each step, which look at everybody.
    let mut state = ScenarioWorld::new(Limits::default()).state;
    for number in 0..MAX_FILE_SESSIONS {
        let command = record_activity(session_info(&format!("s{number}"), None, None, None));
        for event in tenure_core::kernel::decide(&state, &command, Tick(0)).events {
            state.apply(&event).expect("it follows");
        }
    }
    let one_more = record_activity(session_info("more", None, None, None));
    let refused = tenure_core::kernel::decide(&state, &one_more, Tick(0));
    assert_eq!(
        refused.outcome,
        CommandOutcome::Rejected(Rejection::TooManySessions { max: MAX_FILE_SESSIONS })
    );
    let sessions = vec![holder("s7")];
    let end = FileCommand::End { sessions, end: FileSessionEnd::Ended, detail: "".into() };
    for event in tenure_core::kernel::decide(&state, &Command::File(Box::new(end)), Tick(1)).events {
        state.apply(&event).expect("it follows");
    }
    assert_eq!(tenure_core::kernel::decide(&state, &one_more, Tick(1)).events.len(), 1);
}

#[test]
fn only_the_newest_blocked_reports_and_uncommitted_files_are_retained() {
    let mut state = ScenarioWorld::new(Limits::default()).state;
    let mut run = |command: &Command, at: u64| {
        let decision = tenure_core::kernel::decide(&state, command, Tick(at));
        decision.events.iter().for_each(|event| state.apply(event).expect("it follows"));
    };
    let day = 86_400_000_000;
    let too_many = || names(MAX_BLOCKED_REPORTS + 1, "f");
    let end = |name: &str| {
        let sessions = vec![holder(name)];
        Command::File(Box::new(FileCommand::End {
            sessions,
            end: FileSessionEnd::Died,
            detail: "gone".into(),
        }))
    };
    for (number, part) in (0_u64..).zip(too_many().chunks(500)) {
        let at = number * 1_000_000_000;
        run(&acquire_files("s1", part.to_vec(), &[]), at);
        run(&acquire_files("s2", part.to_vec(), &["s1"]), at);
        run(&acquire_files("s2", part.to_vec(), &["s1"]), at + 180_000_000);
    }
    run(&end("s2"), day);
    run(&end("s1"), day);
    for round in 0..MAX_UNCOMMITTED_FILES / 1_000 {
        run(&acquire_files("s3", names(1_000, &format!("g{round}-")), &[]), day);
    }
    run(&end("s3"), 2 * day);
    assert_eq!(state.blocked_reports().count(), MAX_BLOCKED_REPORTS);
    assert!(state.retry_ticket(Ticket(1)).is_none() && state.retry_ticket(Ticket(2)).is_some());
    let is_uncommitted =
        |name: &str| state.uncommitted_file(&Resource::parse(name).expect("a name")).is_some();
    assert!(
        !is_uncommitted("f00000")
            && !is_uncommitted("f01000")
            && is_uncommitted("g0-00000")
            && is_uncommitted("g9-00999")
    );
}

#[test]
fn invalid_session_texts_are_rejected_with_their_field() {
    let mut world = ScenarioWorld::new(Limits::default());
    let plain = || session_info("s1", None, None, Some("tests"));
    let long: std::sync::Arc<str> = "x".repeat(5_000).into();
    for text in ["a\nb".into(), "\u{7}".into(), long] {
        let wrong: [(&str, FileSessionInfo); 3] = [
            ("agent", FileSessionInfo { agent: text.clone(), ..plain() }),
            ("session", FileSessionInfo { session: text.clone(), ..plain() }),
            ("task", FileSessionInfo { task: Some(text.clone()), ..plain() }),
        ];
        for (field, session) in wrong {
            let decision = world.decide_and_apply(&record_activity(session), Tick(0));
            assert!(is_invalid(&decision, field) && decision.events.is_empty(), "{field}: {text:?}");
        }
        let resource = Resource::parse("a").expect("a name");
        let violate = FileCommand::RecordViolation { resource, session: None, detail: text.clone() };
        assert!(is_invalid(&world.decide_and_apply(&Command::File(Box::new(violate)), Tick(0)), "detail"));
        let end = FileCommand::End { sessions: Vec::new(), end: FileSessionEnd::Ended, detail: text.clone() };
        assert!(is_invalid(&world.decide_and_apply(&Command::File(Box::new(end)), Tick(0)), "detail"));
    }
    let nothing = FileSessionInfo { process: RecordedProcess::default(), ..plain() };
    assert!(is_invalid(&world.decide_and_apply(&record_activity(nothing), Tick(0)), "process"));
    let empty = FileSessionInfo { task: Some("".into()), agent: "".into(), session: "".into(), ..plain() };
    assert_eq!(world.decide_and_apply(&record_activity(empty), Tick(0)).events.len(), 1);
}

#[test]
fn without_space_files_can_be_released_but_not_acquired() {
    let mut world = ScenarioWorld::new(Limits::default());
    world.play(
        "
           0  session s1 wants a+b              -> began s1, granted 1 2
           0  session s1.x of s1 wants c        -> began s1.x, granted 3
           0  session s2 wants a checked s1     -> began s2, contended t1 a of s1 due 180, waits a of s1 t1 until 180
        ",
    );
    world.state.set_admission_level(AdmissionLevel::Renewals);
    world.play(
        "
           1  session s1 wants d                -> seen s1, no space
           2  session s1 wants a                -> seen s1, granted
           3  session s3 wants d                -> no space
           4  session s2 wants b checked s1     -> seen s2, no space
           5  session s1.x hands up             -> no space
           5  person sees a changed             -> no space
           6  session s1 turn ends              -> turn over s1, noted
        ",
    );
    world.state.set_admission_level(AdmissionLevel::Nothing);
    world.play(
        "
           7  session s1 wants a                -> no space
           7  session s2 is active              -> noted
          36  session s1 rests 6                -> 1 VOLUNTARY, 2 VOLUNTARY, lets go a b
          37  session s1.x ends                 -> 3 VOLUNTARY, over s1.x ENDED, lets go c
          38  session s2 wants a                -> no space
          39  session s2 dies                   -> closed t1 GONE, over s2 DIED, lets go
        ",
    );
}

#[test]
fn file_acquire_near_the_last_tick_is_rejected() {
    let mut world = ScenarioWorld::new(Limits::default());
    world.play("0  session s1 wants a  -> began s1, granted 1");
    let late = Tick(u64::MAX - 1_000_000);
    let refused = CommandOutcome::Rejected(Rejection::Exhausted);
    assert_eq!(
        world.decide_and_apply(&acquire_files("s2", vec![file_request("b")], &[]), late).outcome,
        refused
    );
    assert_eq!(
        world.decide_and_apply(&acquire_files("s2", vec![file_request("b")], &["s1"]), late).outcome,
        refused
    );
    let rest = FileCommand::ReleaseIdle { session: holder("s1"), turn_ended_at: late, keep: Vec::new() };
    assert_eq!(
        world.decide_and_apply(&Command::File(Box::new(rest)), late).outcome,
        CommandOutcome::Rejected(Rejection::NotIdle)
    );
}
