//! Which leases the worker takes, keeps and gives back.

use std::time::Duration;

use crate::client::{pause, wait_until};
use crate::commands::is_unlocked;
use crate::worker_stage::{FOREVER, Stage};

// S1-13 to S1-16, S1-32, S1-41
#[test]
fn of_two_sessions_of_one_channel_the_second_is_busy_and_the_first_goes_on() {
    let stage = Stage::new("tuners = 2", FOREVER);
    let first = stage.watch("a", "hd");
    stage.runs(&first);
    let second = stage.watch("a", "sd");
    assert_ne!(first, second);
    let view = stage.until(&second, "ENDED R_LEASE_BUSY REJECTED_BUSY");
    assert!(view["detail"].as_str().unwrap().contains(&first), "{view}");
    assert_eq!(stage.session(&first)["state"], "RUNNING");
    assert_eq!(stage.leases(), [format!("service:a {first}"), format!("tuner:0 {first}")]);
    assert_eq!(stage.log(&second), "", "nothing was started");
}

// S1-39
#[test]
fn a_repeated_intent_takes_one_tuner_only() {
    let stage = Stage::new("tuners = 2", FOREVER);
    let sessions: Vec<String> = (0..10).map(|_| stage.watch("a", "hd")).collect();
    assert!(sessions.iter().all(|session| *session == sessions[0]));
    stage.runs(&sessions[0]);
    let held = [format!("service:a {}", sessions[0]), format!("tuner:0 {}", sessions[0])];
    assert_eq!(stage.leases(), held);
}

// S1-17, S1-20
#[test]
fn without_a_free_tuner_a_session_ends_and_gives_back_its_channel() {
    let stage = Stage::new("tuners = 2", FOREVER);
    let sessions = [stage.watch("a", "hd"), stage.watch("b", "hd")];
    sessions.iter().for_each(|session| drop(stage.runs(session)));
    let third = stage.watch("c", "hd");
    stage.until(&third, "ENDED R_LEASE_BUSY REJECTED_NO_TUNER");
    assert_eq!(stage.leases().len(), 4);
    assert!(!stage.leases().iter().any(|lease| lease.starts_with("service:c")), "{:?}", stage.leases());
    stage.stop(&sessions[0]);
    stage.until(&sessions[0], "ENDED R_STOPPED STOPPED");
    let fourth = stage.watch("c", "hd");
    stage.runs(&fourth);
    stage.has_no_violation();
}

// S1-16, S1-17
#[test]
fn a_tuner_that_somebody_else_holds_is_passed_over() {
    let stage = Stage::new("tuners = 2", FOREVER);
    let mut client = stage.client();
    client.acquire("tuner:0", 60_000, None).unwrap().granted();
    let first = stage.watch("a", "hd");
    assert_eq!(stage.runs(&first)["slot"], 1);
    let second = stage.watch("b", "hd");
    stage.until(&second, "ENDED R_LEASE_BUSY REJECTED_NO_TUNER");
    assert!(stage.path("lock-1").exists() && !stage.path("lock-0").exists());
}

// S1-19
#[test]
fn leases_are_renewed_as_long_as_the_pipeline_runs() {
    let stage = Stage::new("tuners = 1\nttl_ms = 2000", FOREVER);
    let session = stage.watch("a", "hd");
    stage.runs(&session);
    // More than two lives of its leases.
    pause(Duration::from_secs(5));
    assert_eq!(stage.session(&session)["state"], "RUNNING");
    assert_eq!(stage.leases().len(), 2);
}

// O-11
#[test]
fn a_lost_lease_ends_the_pipeline_and_is_never_taken_again() {
    let stage = Stage::new("tuners = 1", &format!("trap 'exit 0' TERM; {FOREVER}"));
    let session = stage.watch("a", "hd");
    stage.runs(&session);
    stage.revoke("tuner:0");
    stage.until(&session, "ENDED R_LEASE_EXPIRED LOST");
    assert_eq!(stage.leases(), Vec::<String>::new());
    wait_until("the pipeline is gone", || is_unlocked(&stage.path("lock-0")));
    // The worker goes on.
    let next = stage.watch("b", "hd");
    stage.runs(&next);
}
