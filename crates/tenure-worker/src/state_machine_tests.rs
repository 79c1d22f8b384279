//! The state machine of a worker, step by step.

use tenure_api::IntentSessionLeases;

use super::super::testing::sample_session;
use super::*;

const EVERY: u64 = 1_000;
const UNTIL: u64 = 3_000;

fn plan() -> WorkerStateMachine {
    WorkerStateMachine::new(UNTIL, EVERY, 0)
}

fn holds() -> IntentSessionLeases {
    IntentSessionLeases {
        slot: Some(0),
        leases: vec!["l-1".to_owned(), "l-2".to_owned()],
        fences: vec![1, 2],
        remaining_ms: 3,
    }
}

fn now(state: &str, taken: Option<IntentSessionLeases>) -> IntentSessionStatus {
    IntentSessionStatus { state: state.to_owned(), reason: None, outcome: None, taken }
}

fn id() -> String {
    "s".to_owned()
}

/// A plan with one session that runs.
fn running() -> WorkerStateMachine {
    let mut plan = plan();
    assert_eq!(
        plan.handle(WorkerInput::Changed(vec![sample_session("s", "NEW")])),
        [WorkerAction::Take(id())]
    );
    let start = plan.handle(WorkerInput::Taken(id(), now("STARTING", Some(holds())), 2_000));
    assert_eq!(start, [WorkerAction::Start(Box::new(sample_session("s", "NEW")), holds(), 2_000)]);
    assert_eq!(
        plan.handle(WorkerInput::Started(id(), "pid 1".to_owned())),
        [WorkerAction::Report(id(), "pid 1".to_owned())]
    );
    assert_eq!(plan.handle(WorkerInput::Reported(id(), now("RUNNING", None))), []);
    plan
}

fn finish(reason: &'static str, detail: &str) -> Vec<WorkerAction> {
    vec![WorkerAction::Finish(id(), reason, detail.to_owned())]
}

// S1-12, S1-18: leases first, then the pipeline.
#[test]
fn session_is_taken_started_reported_and_finished_after_its_pipeline_exits() {
    let mut plan = running();
    assert_eq!(plan.handle(WorkerInput::Gone(id(), CommandExit::Code(0))), finish("R_PIPELINE_EXITED", ""));
    assert_eq!(plan.handle(WorkerInput::Finished(id())), []);
    assert!(plan.slots.is_empty());
}

#[test]
fn pipeline_exit_code_or_signal_is_reported() {
    for (ended, detail) in
        [(CommandExit::Code(3), "it ended with exit code 3"), (CommandExit::Signal(11), "signal 11 ended it")]
    {
        assert_eq!(running().handle(WorkerInput::Gone(id(), ended)), finish("R_PIPELINE_FAILED", detail));
    }
    let mut plan = plan();
    plan.handle(WorkerInput::Changed(vec![sample_session("s", "NEW")]));
    plan.handle(WorkerInput::Taken(id(), now("STARTING", Some(holds())), 9));
    let failed = plan.handle(WorkerInput::NotStarted(id(), "no such program".to_owned()));
    assert_eq!(failed, finish("R_PIPELINE_FAILED", "no such program"));
}

// S1-15, S1-17: what was refused is not started.
#[test]
fn session_that_ended_before_it_is_taken_is_dropped() {
    let mut plan = plan();
    plan.handle(WorkerInput::Changed(vec![sample_session("s", "NEW")]));
    assert_eq!(plan.handle(WorkerInput::Taken(id(), now("ENDED", None), 0)), []);
    assert!(plan.slots.is_empty());
}

#[test]
fn new_session_is_taken_once_and_sessions_of_other_workers_never() {
    let mut plan = plan();
    assert_eq!(
        plan.handle(WorkerInput::Changed(vec![sample_session("s", "NEW")])),
        [WorkerAction::Take(id())]
    );
    assert_eq!(
        plan.handle(WorkerInput::Changed(vec![sample_session("s", "NEW"), sample_session("s", "STARTING")])),
        []
    );
    let foreign = ["STARTING", "RUNNING", "STOPPING", "ENDED"].map(|state| sample_session("other", state));
    assert_eq!(plan.handle(WorkerInput::Changed(foreign.to_vec())), []);
}

#[test]
fn stop_request_ends_the_pipeline_before_the_session_is_finished() {
    let mut plan = running();
    assert_eq!(
        plan.handle(WorkerInput::Changed(vec![sample_session("s", "STOPPING")])),
        [WorkerAction::End(id())]
    );
    assert_eq!(plan.handle(WorkerInput::Changed(vec![sample_session("s", "STOPPING")])), [], "once");
    let gone = plan.handle(WorkerInput::Gone(id(), CommandExit::Signal(15)));
    assert_eq!(gone, finish("R_STOPPED", "somebody asked for its end"));
}

#[test]
fn stop_before_the_pipeline_runs_is_remembered() {
    let mut plan = plan();
    plan.handle(WorkerInput::Changed(vec![sample_session("s", "NEW")]));
    plan.handle(WorkerInput::Taken(id(), now("STARTING", Some(holds())), 9));
    assert_eq!(plan.handle(WorkerInput::Changed(vec![sample_session("s", "STOPPING")])), []);
    let acts = plan.handle(WorkerInput::Started(id(), "p".to_owned()));
    assert_eq!(acts, [WorkerAction::Report(id(), "p".to_owned()), WorkerAction::End(id())]);
    assert_eq!(plan.handle(WorkerInput::Gone(id(), CommandExit::Code(0))), [], "the report is under way");
    let finished = plan.handle(WorkerInput::Reported(id(), now("STOPPING", None)));
    assert_eq!(finished, finish("R_STOPPED", "somebody asked for its end"));
}

#[test]
fn stop_in_the_response_to_a_report_ends_the_pipeline() {
    for (state, reason) in [("STOPPING", "R_STOPPED"), ("ENDED", "R_LEASE_EXPIRED")] {
        let mut plan = plan();
        plan.handle(WorkerInput::Changed(vec![sample_session("s", "NEW")]));
        plan.handle(WorkerInput::Taken(id(), now("STARTING", Some(holds())), 9));
        plan.handle(WorkerInput::Started(id(), "p".to_owned()));
        assert_eq!(plan.handle(WorkerInput::Reported(id(), now(state, None))), [WorkerAction::End(id())]);
        let [WorkerAction::Finish(_, actual, _)] =
            &plan.handle(WorkerInput::Gone(id(), CommandExit::Code(0)))[..]
        else {
            panic!()
        };
        assert_eq!(*actual, reason);
    }
}

#[test]
fn session_with_a_stop_request_when_taken_starts_nothing() {
    let mut plan = plan();
    plan.handle(WorkerInput::Changed(vec![sample_session("s", "NEW")]));
    let finished = plan.handle(WorkerInput::Taken(id(), now("STOPPING", None), 0));
    assert_eq!(finished, finish("R_STOPPED", "somebody asked for its end"));
}

// S1-19: one request renews the guard and all sessions.
#[test]
fn leadership_and_sessions_are_renewed_in_one_request_at_a_time() {
    let mut plan = running();
    assert_eq!((plan.wake(999), plan.wake_at()), (vec![], EVERY));
    assert_eq!(plan.wake(EVERY), [WorkerAction::Keep(vec![id()])]);
    assert_eq!((plan.wake(2_500), plan.wake_at()), (vec![], UNTIL), "one at a time");
    let kept = RenewalResult { session: id(), until: Some(4_000), state: Some("RUNNING".to_owned()) };
    assert_eq!(plan.handle(WorkerInput::Kept(4_100, vec![kept])), [WorkerAction::Extend(id(), 4_000)]);
    assert_eq!(plan.wake_at(), 2 * EVERY);
}

#[test]
fn worker_renews_its_leadership_without_sessions_and_splits_many_sessions() {
    assert_eq!(plan().wake(EVERY), [WorkerAction::Keep(Vec::new())]);
    let mut plan = plan();
    for number in 0..1_500 {
        let id = format!("s{number}");
        plan.handle(WorkerInput::Changed(vec![sample_session(&id, "NEW")]));
        plan.handle(WorkerInput::Taken(id, now("STARTING", Some(holds())), 9));
    }
    let sizes = plan.wake(EVERY).into_iter().map(|act| match act {
        WorkerAction::Keep(sessions) => sessions.len(),
        other => panic!("{other:?}"),
    });
    assert_eq!(sizes.collect::<Vec<_>>(), [1_024, 476]);
    plan.handle(WorkerInput::Kept(9_000, Vec::new()));
    assert_eq!(plan.wake(2 * EVERY), [], "the other part is under way");
    plan.handle(WorkerInput::Kept(9_000, Vec::new()));
    assert_eq!(plan.wake(2 * EVERY).len(), 2);
}

// O-11: a lost lease ends the pipeline and the session, and is never asked for again.
#[test]
fn session_that_lost_its_leases_is_ended_and_not_taken_again() {
    let lost = RenewalResult { session: id(), until: None, state: None };
    for input in
        [WorkerInput::Kept(9_000, vec![lost]), WorkerInput::Changed(vec![sample_session("s", "ENDED")])]
    {
        let mut plan = running();
        assert_eq!(plan.handle(input), [WorkerAction::End(id())]);
        let gone = plan.handle(WorkerInput::Gone(id(), CommandExit::Signal(9)));
        assert_eq!(gone, finish("R_LEASE_EXPIRED", "a lease of it was lost"));
    }
    let mut plan = running();
    assert_eq!(plan.handle(WorkerInput::Ending(id())), [WorkerAction::End(id())], "the watchdog was quicker");
    let gone = plan.handle(WorkerInput::Gone(id(), CommandExit::Signal(9)));
    assert_eq!(gone, finish("R_LEASE_EXPIRED", "its leases were not renewed in time"));
}

// O-12: the loss of the guard is fatal.
#[test]
fn lost_leadership_ends_everything_and_starts_nothing() {
    let mut plan = running();
    assert_eq!(
        plan.handle(WorkerInput::LeadershipLost("gone".to_owned())),
        [WorkerAction::Abandon("gone".to_owned())]
    );
    assert_eq!(plan.handle(WorkerInput::Changed(vec![sample_session("t", "NEW")])), []);
    assert_eq!(plan.wake(EVERY), []);
    let mut late = running();
    late.wake(EVERY);
    assert_eq!(late.wake(UNTIL), [WorkerAction::Abandon("the guard was not renewed in time".to_owned())]);
    assert_eq!(late.wake(UNTIL), []);
}

#[test]
fn stopped_worker_ends_all_pipelines_first() {
    let mut plan = running();
    plan.handle(WorkerInput::Changed(vec![sample_session("t", "NEW")]));
    assert_eq!(plan.handle(WorkerInput::Stop), [WorkerAction::End(id())]);
    assert!(!plan.is_done());
    assert_eq!(
        plan.handle(WorkerInput::Changed(vec![sample_session("u", "NEW")])),
        [],
        "left for the next one"
    );
    let untaken = plan.handle(WorkerInput::Taken("t".to_owned(), now("STARTING", Some(holds())), 9));
    let stop_detail = "its worker was told to stop".to_owned();
    assert_eq!(untaken, [WorkerAction::Finish("t".to_owned(), "R_WORKER_STOPPED", stop_detail.clone())]);
    assert_eq!(
        plan.handle(WorkerInput::Gone(id(), CommandExit::Signal(15))),
        finish("R_WORKER_STOPPED", &stop_detail)
    );
    plan.handle(WorkerInput::Finished(id()));
    plan.handle(WorkerInput::Finished("t".to_owned()));
    assert!(plan.is_done());
}
