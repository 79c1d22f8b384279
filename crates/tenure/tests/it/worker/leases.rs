//! Which leases the worker takes, keeps and gives back.

use std::time::Duration;

use tenure_testkit::pipelines::{ENDLESS_SCRIPT, PipelineFixture};
use tenure_testkit::{is_file_unlocked, sleep, wait_until};

// S1-13 to S1-16, S1-32, S1-41
#[test]
fn second_session_of_a_channel_is_busy() {
    let home = PipelineFixture::new("tuners = 2", ENDLESS_SCRIPT);
    let first = home.start_channel("a", "hd");
    home.wait_until_running(&first);
    let second = home.start_channel("a", "sd");
    assert_ne!(first, second);
    let view = home.wait_for_state(&second, "ENDED R_LEASE_BUSY REJECTED_BUSY");
    assert!(view["detail"].as_str().unwrap().contains(&first), "{view}");
    assert_eq!(home.intent_session(&first)["state"], "RUNNING");
    assert_eq!(home.active_leases(), [format!("service:a {first}"), format!("tuner:0 {first}")]);
    assert_eq!(home.pipeline_log(&second), "", "nothing was started");
}

// S1-39
#[test]
fn repeated_intent_takes_one_tuner() {
    let home = PipelineFixture::new("tuners = 2", ENDLESS_SCRIPT);
    let sessions: Vec<String> = (0..10).map(|_| home.start_channel("a", "hd")).collect();
    assert!(sessions.iter().all(|session| *session == sessions[0]));
    home.wait_until_running(&sessions[0]);
    let held = [format!("service:a {}", sessions[0]), format!("tuner:0 {}", sessions[0])];
    assert_eq!(home.active_leases(), held);
}

// S1-17, S1-20
#[test]
fn session_without_a_free_tuner_ends_and_releases_its_channel() {
    let home = PipelineFixture::new("tuners = 2", ENDLESS_SCRIPT);
    let sessions = [home.start_channel("a", "hd"), home.start_channel("b", "hd")];
    sessions.iter().for_each(|session| drop(home.wait_until_running(session)));
    let third = home.start_channel("c", "hd");
    home.wait_for_state(&third, "ENDED R_LEASE_BUSY REJECTED_NO_TUNER");
    assert_eq!(home.active_leases().len(), 4);
    assert!(
        !home.active_leases().iter().any(|lease| lease.starts_with("service:c")),
        "{:?}",
        home.active_leases()
    );
    home.stop_intent_session(&sessions[0]);
    home.wait_for_state(&sessions[0], "ENDED R_STOPPED STOPPED");
    let fourth = home.start_channel("c", "hd");
    home.wait_until_running(&fourth);
    home.assert_no_violation();
}

// S1-16, S1-17
#[test]
fn tuner_held_by_another_client_is_skipped() {
    let home = PipelineFixture::new("tuners = 2", ENDLESS_SCRIPT);
    let mut client = home.client();
    client.acquire("tuner:0", 60_000, None).unwrap().held_lease();
    let first = home.start_channel("a", "hd");
    assert_eq!(home.wait_until_running(&first)["slot"], 1);
    let second = home.start_channel("b", "hd");
    home.wait_for_state(&second, "ENDED R_LEASE_BUSY REJECTED_NO_TUNER");
    assert!(home.path("lock-1").exists() && !home.path("lock-0").exists());
}

// S1-19
#[test]
fn leases_are_renewed_while_the_pipeline_runs() {
    let home = PipelineFixture::new("tuners = 1\nttl_ms = 2000", ENDLESS_SCRIPT);
    let session = home.start_channel("a", "hd");
    home.wait_until_running(&session);
    // More than two lives of its leases.
    sleep(Duration::from_secs(5));
    assert_eq!(home.intent_session(&session)["state"], "RUNNING");
    assert_eq!(home.active_leases().len(), 2);
}

// O-11
#[test]
fn lost_lease_ends_the_pipeline_and_is_not_taken_again() {
    let home = PipelineFixture::new("tuners = 1", &format!("trap 'exit 0' TERM; {ENDLESS_SCRIPT}"));
    let session = home.start_channel("a", "hd");
    home.wait_until_running(&session);
    home.revoke("tuner:0");
    home.wait_for_state(&session, "ENDED R_LEASE_EXPIRED LOST");
    assert_eq!(home.active_leases(), Vec::<String>::new());
    wait_until("the pipeline is gone", || is_file_unlocked(&home.path("lock-0")));
    // The worker goes on.
    let next = home.start_channel("b", "hd");
    home.wait_until_running(&next);
}
