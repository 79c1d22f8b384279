//! Which leases the worker takes, keeps and gives back.

use std::time::Duration;

use tenure_testkit::pipelines::{FOREVER, PipelineHome};
use tenure_testkit::{is_unlocked, pause, wait_until};

// S1-13 to S1-16, S1-32, S1-41
#[test]
fn second_session_of_a_channel_is_busy() {
    let home = PipelineHome::new("tuners = 2", FOREVER);
    let first = home.watch("a", "hd");
    home.runs(&first);
    let second = home.watch("a", "sd");
    assert_ne!(first, second);
    let view = home.until(&second, "ENDED R_LEASE_BUSY REJECTED_BUSY");
    assert!(view["detail"].as_str().unwrap().contains(&first), "{view}");
    assert_eq!(home.session(&first)["state"], "RUNNING");
    assert_eq!(home.leases(), [format!("service:a {first}"), format!("tuner:0 {first}")]);
    assert_eq!(home.log(&second), "", "nothing was started");
}

// S1-39
#[test]
fn repeated_intent_takes_one_tuner() {
    let home = PipelineHome::new("tuners = 2", FOREVER);
    let sessions: Vec<String> = (0..10).map(|_| home.watch("a", "hd")).collect();
    assert!(sessions.iter().all(|session| *session == sessions[0]));
    home.runs(&sessions[0]);
    let held = [format!("service:a {}", sessions[0]), format!("tuner:0 {}", sessions[0])];
    assert_eq!(home.leases(), held);
}

// S1-17, S1-20
#[test]
fn session_without_a_free_tuner_ends_and_releases_its_channel() {
    let home = PipelineHome::new("tuners = 2", FOREVER);
    let sessions = [home.watch("a", "hd"), home.watch("b", "hd")];
    sessions.iter().for_each(|session| drop(home.runs(session)));
    let third = home.watch("c", "hd");
    home.until(&third, "ENDED R_LEASE_BUSY REJECTED_NO_TUNER");
    assert_eq!(home.leases().len(), 4);
    assert!(!home.leases().iter().any(|lease| lease.starts_with("service:c")), "{:?}", home.leases());
    home.stop(&sessions[0]);
    home.until(&sessions[0], "ENDED R_STOPPED STOPPED");
    let fourth = home.watch("c", "hd");
    home.runs(&fourth);
    home.has_no_violation();
}

// S1-16, S1-17
#[test]
fn tuner_held_by_another_client_is_skipped() {
    let home = PipelineHome::new("tuners = 2", FOREVER);
    let mut client = home.client();
    client.acquire("tuner:0", 60_000, None).unwrap().held();
    let first = home.watch("a", "hd");
    assert_eq!(home.runs(&first)["slot"], 1);
    let second = home.watch("b", "hd");
    home.until(&second, "ENDED R_LEASE_BUSY REJECTED_NO_TUNER");
    assert!(home.path("lock-1").exists() && !home.path("lock-0").exists());
}

// S1-19
#[test]
fn leases_are_renewed_while_the_pipeline_runs() {
    let home = PipelineHome::new("tuners = 1\nttl_ms = 2000", FOREVER);
    let session = home.watch("a", "hd");
    home.runs(&session);
    // More than two lives of its leases.
    pause(Duration::from_secs(5));
    assert_eq!(home.session(&session)["state"], "RUNNING");
    assert_eq!(home.leases().len(), 2);
}

// O-11
#[test]
fn lost_lease_ends_the_pipeline_and_is_not_taken_again() {
    let home = PipelineHome::new("tuners = 1", &format!("trap 'exit 0' TERM; {FOREVER}"));
    let session = home.watch("a", "hd");
    home.runs(&session);
    home.revoke("tuner:0");
    home.until(&session, "ENDED R_LEASE_EXPIRED LOST");
    assert_eq!(home.leases(), Vec::<String>::new());
    wait_until("the pipeline is gone", || is_unlocked(&home.path("lock-0")));
    // The worker goes on.
    let next = home.watch("b", "hd");
    home.runs(&next);
}
