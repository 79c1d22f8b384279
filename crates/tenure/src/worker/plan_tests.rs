//! The plan of a worker, step by step.

use tenure_api::Taken;

use super::super::testing::session;
use super::*;

const EVERY: u64 = 1_000;
const UNTIL: u64 = 3_000;

fn plan() -> Plan {
    Plan::new(UNTIL, EVERY, 0)
}

fn holds() -> Taken {
    Taken {
        slot: Some(0),
        leases: vec!["l-1".to_owned(), "l-2".to_owned()],
        fences: vec![1, 2],
        remaining_ms: 3,
    }
}

fn now(state: &str, taken: Option<Taken>) -> SessionNow {
    SessionNow { state: state.to_owned(), reason: None, outcome: None, taken }
}

fn id() -> String {
    "s".to_owned()
}

/// A plan with one session that runs.
fn running() -> Plan {
    let mut plan = plan();
    assert_eq!(plan.tell(Input::Changed(vec![session("s", "NEW")])), [Act::Take(id())]);
    let start = plan.tell(Input::Taken(id(), now("STARTING", Some(holds())), 2_000));
    assert_eq!(start, [Act::Start(Box::new(session("s", "NEW")), holds(), 2_000)]);
    assert_eq!(plan.tell(Input::Started(id(), "pid 1".to_owned())), [Act::Report(id(), "pid 1".to_owned())]);
    assert_eq!(plan.tell(Input::Reported(id(), now("RUNNING", None))), []);
    plan
}

fn finish(reason: &'static str, detail: &str) -> Vec<Act> {
    vec![Act::Finish(id(), reason, detail.to_owned())]
}

// S1-12, S1-18: leases first, then the pipeline.
#[test]
fn session_is_taken_started_reported_and_finished_after_its_pipeline_exits() {
    let mut plan = running();
    assert_eq!(plan.tell(Input::Gone(id(), Ended::Code(0))), finish("R_PIPELINE_EXITED", ""));
    assert_eq!(plan.tell(Input::Finished(id())), []);
    assert!(plan.seats.is_empty());
}

#[test]
fn pipeline_exit_code_or_signal_is_reported() {
    for (ended, detail) in
        [(Ended::Code(3), "it ended with exit code 3"), (Ended::Signal(11), "signal 11 ended it")]
    {
        assert_eq!(running().tell(Input::Gone(id(), ended)), finish("R_PIPELINE_FAILED", detail));
    }
    let mut plan = plan();
    plan.tell(Input::Changed(vec![session("s", "NEW")]));
    plan.tell(Input::Taken(id(), now("STARTING", Some(holds())), 9));
    let failed = plan.tell(Input::NotStarted(id(), "no such program".to_owned()));
    assert_eq!(failed, finish("R_PIPELINE_FAILED", "no such program"));
}

// S1-15, S1-17: what was refused is not started.
#[test]
fn session_that_ended_before_it_is_taken_is_dropped() {
    let mut plan = plan();
    plan.tell(Input::Changed(vec![session("s", "NEW")]));
    assert_eq!(plan.tell(Input::Taken(id(), now("ENDED", None), 0)), []);
    assert!(plan.seats.is_empty());
}

#[test]
fn new_session_is_taken_once_and_sessions_of_other_workers_never() {
    let mut plan = plan();
    assert_eq!(plan.tell(Input::Changed(vec![session("s", "NEW")])), [Act::Take(id())]);
    assert_eq!(plan.tell(Input::Changed(vec![session("s", "NEW"), session("s", "STARTING")])), []);
    let others = ["STARTING", "RUNNING", "STOPPING", "ENDED"].map(|state| session("other", state));
    assert_eq!(plan.tell(Input::Changed(others.to_vec())), []);
}

#[test]
fn stop_request_ends_the_pipeline_before_the_session_is_finished() {
    let mut plan = running();
    assert_eq!(plan.tell(Input::Changed(vec![session("s", "STOPPING")])), [Act::End(id())]);
    assert_eq!(plan.tell(Input::Changed(vec![session("s", "STOPPING")])), [], "once");
    let gone = plan.tell(Input::Gone(id(), Ended::Signal(15)));
    assert_eq!(gone, finish("R_STOPPED", "somebody asked for its end"));
}

#[test]
fn stop_before_the_pipeline_runs_is_remembered() {
    let mut plan = plan();
    plan.tell(Input::Changed(vec![session("s", "NEW")]));
    plan.tell(Input::Taken(id(), now("STARTING", Some(holds())), 9));
    assert_eq!(plan.tell(Input::Changed(vec![session("s", "STOPPING")])), []);
    let acts = plan.tell(Input::Started(id(), "p".to_owned()));
    assert_eq!(acts, [Act::Report(id(), "p".to_owned()), Act::End(id())]);
    assert_eq!(plan.tell(Input::Gone(id(), Ended::Code(0))), [], "the report is under way");
    let finished = plan.tell(Input::Reported(id(), now("STOPPING", None)));
    assert_eq!(finished, finish("R_STOPPED", "somebody asked for its end"));
}

#[test]
fn stop_in_the_response_to_a_report_ends_the_pipeline() {
    for (state, reason) in [("STOPPING", "R_STOPPED"), ("ENDED", "R_LEASE_EXPIRED")] {
        let mut plan = plan();
        plan.tell(Input::Changed(vec![session("s", "NEW")]));
        plan.tell(Input::Taken(id(), now("STARTING", Some(holds())), 9));
        plan.tell(Input::Started(id(), "p".to_owned()));
        assert_eq!(plan.tell(Input::Reported(id(), now(state, None))), [Act::End(id())]);
        let [Act::Finish(_, said, _)] = &plan.tell(Input::Gone(id(), Ended::Code(0)))[..] else { panic!() };
        assert_eq!(*said, reason);
    }
}

#[test]
fn session_with_a_stop_request_when_taken_starts_nothing() {
    let mut plan = plan();
    plan.tell(Input::Changed(vec![session("s", "NEW")]));
    let finished = plan.tell(Input::Taken(id(), now("STOPPING", None), 0));
    assert_eq!(finished, finish("R_STOPPED", "somebody asked for its end"));
}

// S1-19: one request renews the guard and all sessions.
#[test]
fn leadership_and_sessions_are_renewed_in_one_request_at_a_time() {
    let mut plan = running();
    assert_eq!((plan.wake(999), plan.wake_at()), (vec![], EVERY));
    assert_eq!(plan.wake(EVERY), [Act::Keep(vec![id()])]);
    assert_eq!((plan.wake(2_500), plan.wake_at()), (vec![], UNTIL), "one at a time");
    let kept = Kept { session: id(), until: Some(4_000), state: Some("RUNNING".to_owned()) };
    assert_eq!(plan.tell(Input::Kept(4_100, vec![kept])), [Act::Extend(id(), 4_000)]);
    assert_eq!(plan.wake_at(), 2 * EVERY);
}

#[test]
fn worker_renews_its_leadership_without_sessions_and_splits_many_sessions() {
    assert_eq!(plan().wake(EVERY), [Act::Keep(Vec::new())]);
    let mut plan = plan();
    for number in 0..1_500 {
        let id = format!("s{number}");
        plan.tell(Input::Changed(vec![session(&id, "NEW")]));
        plan.tell(Input::Taken(id, now("STARTING", Some(holds())), 9));
    }
    let sizes = plan.wake(EVERY).into_iter().map(|act| match act {
        Act::Keep(sessions) => sessions.len(),
        other => panic!("{other:?}"),
    });
    assert_eq!(sizes.collect::<Vec<_>>(), [1_024, 476]);
    plan.tell(Input::Kept(9_000, Vec::new()));
    assert_eq!(plan.wake(2 * EVERY), [], "the other part is under way");
    plan.tell(Input::Kept(9_000, Vec::new()));
    assert_eq!(plan.wake(2 * EVERY).len(), 2);
}

// O-11: a lost lease ends the pipeline and the session, and is never asked for again.
#[test]
fn session_that_lost_its_leases_is_ended_and_not_taken_again() {
    let lost = Kept { session: id(), until: None, state: None };
    for input in [Input::Kept(9_000, vec![lost]), Input::Changed(vec![session("s", "ENDED")])] {
        let mut plan = running();
        assert_eq!(plan.tell(input), [Act::End(id())]);
        let gone = plan.tell(Input::Gone(id(), Ended::Signal(9)));
        assert_eq!(gone, finish("R_LEASE_EXPIRED", "a lease of it was lost"));
    }
    let mut plan = running();
    assert_eq!(plan.tell(Input::Ending(id())), [Act::End(id())], "the watchdog was quicker");
    let gone = plan.tell(Input::Gone(id(), Ended::Signal(9)));
    assert_eq!(gone, finish("R_LEASE_EXPIRED", "its leases were not renewed in time"));
}

// O-12: the loss of the guard is fatal.
#[test]
fn lost_leadership_ends_everything_and_starts_nothing() {
    let mut plan = running();
    assert_eq!(plan.tell(Input::GuardLost("gone".to_owned())), [Act::GiveUp("gone".to_owned())]);
    assert_eq!(plan.tell(Input::Changed(vec![session("t", "NEW")])), []);
    assert_eq!(plan.wake(EVERY), []);
    let mut late = running();
    late.wake(EVERY);
    assert_eq!(late.wake(UNTIL), [Act::GiveUp("the guard was not renewed in time".to_owned())]);
    assert_eq!(late.wake(UNTIL), []);
}

#[test]
fn stopped_worker_ends_all_pipelines_first() {
    let mut plan = running();
    plan.tell(Input::Changed(vec![session("t", "NEW")]));
    assert_eq!(plan.tell(Input::Stop), [Act::End(id())]);
    assert!(!plan.is_done());
    assert_eq!(plan.tell(Input::Changed(vec![session("u", "NEW")])), [], "left for the next one");
    let untaken = plan.tell(Input::Taken("t".to_owned(), now("STARTING", Some(holds())), 9));
    let told = "its worker was told to stop".to_owned();
    assert_eq!(untaken, [Act::Finish("t".to_owned(), "R_WORKER_STOPPED", told.clone())]);
    assert_eq!(plan.tell(Input::Gone(id(), Ended::Signal(15))), finish("R_WORKER_STOPPED", &told));
    plan.tell(Input::Finished(id()));
    plan.tell(Input::Finished("t".to_owned()));
    assert!(plan.is_done());
}
