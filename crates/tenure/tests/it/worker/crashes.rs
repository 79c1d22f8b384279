//! Workers that are killed, stopped, replaced, or told to end.

use std::time::Duration;

use serde_json::json;
use tenure_testkit::pipelines::{ENDLESS_SCRIPT, PipelineFixture, WorkerProcess};
use tenure_testkit::{is_file_unlocked, signal, sleep, wait_until};

/// What the one worker holds.
const GUARD: &str = "system:orchestrator:guard_lock";

// S1-42, O-11
#[test]
fn leases_of_a_crashed_worker_last_until_they_expire() {
    let home =
        PipelineFixture::new("worker = false\ntuners = 1\nttl_ms = 3000\napi_leases = true", ENDLESS_SCRIPT);
    let mut worker = home.start_ready_worker();
    let session = home.start_channel("a", "hd");
    home.wait_until_running(&session);
    worker.kill();
    let mut client = home.client();
    assert_eq!(client.acquire("tuner:0", 60_000, None).unwrap().status_and_code(), (409, "HELD"));
    let busy = home.submit_intent(&json!({"serviceRef": "a", "profileID": "sd"}));
    assert_eq!(busy.status_and_code(), (409, "LEASE_BUSY"));
    wait_until("the watchdog has ended the pipeline", || is_file_unlocked(&home.path("lock-0")));
    home.wait_for_state(&session, "ENDED R_LEASE_EXPIRED LOST");
    client.acquire("tuner:0", 60_000, None).unwrap().held_lease();
    assert_eq!(home.submit_intent(&json!({"serviceRef": "a", "profileID": "sd"})).status, 202);
}

// S1-43, O-12
#[test]
fn restarted_worker_ends_all_processes_and_frees_leases_at_once() {
    // What ignores SIGTERM and left its group would live on for long by itself.
    let script = format!("trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 60' & {ENDLESS_SCRIPT}");
    let home =
        PipelineFixture::new("worker = false\ntuners = 1\nttl_ms = 60000\nstop_grace_ms = 20000", &script);
    let mut worker = home.start_ready_worker();
    let session = home.start_channel("a", "hd");
    home.wait_until_running(&session);
    worker.kill();
    assert!(!is_file_unlocked(&home.path("lock-0")));
    let _second = home.start_ready_worker();
    assert!(is_file_unlocked(&home.path("lock-0")), "gone before the second was ready");
    let view = home.intent_session(&session);
    assert_eq!((&view["state"], &view["reason"]), (&"ENDED".into(), &"R_WORKER_RESTARTED".into()));
    let next = home.start_channel("a", "hd");
    assert_ne!(next, session);
    home.wait_until_running(&next);
    home.assert_no_violation();
}

// O-12
#[test]
fn pipeline_without_worker_and_watchdog_ends_before_the_next_worker_is_ready() {
    let home = PipelineFixture::new("worker = false\ntuners = 1\nttl_ms = 2000", ENDLESS_SCRIPT);
    let mut worker = home.start_ready_worker();
    let session = home.start_channel("a", "hd");
    let process = home.wait_until_running(&session)["process"].as_str().expect("it runs").to_owned();
    // Stopped first, so that it sees nothing of what follows.
    worker.signal("STOP");
    let number = process.split("watchdog ").nth(1).and_then(|rest| rest.split(')').next());
    signal(number.expect("it is named").parse().expect("a number"), "KILL");
    worker.kill();
    // Nobody is left who could end it in time, and nobody who would know its session once that is over.
    home.wait_for_state(&session, "ENDED R_LEASE_EXPIRED LOST");
    assert!(!is_file_unlocked(&home.path("lock-0")), "the pipeline lives on");
    let _second = home.start_ready_worker();
    assert!(is_file_unlocked(&home.path("lock-0")), "gone before the second was ready");
    let next = home.start_channel("a", "hd");
    home.wait_until_running(&next);
    home.assert_no_violation();
}

// S1-43
#[test]
fn embedded_worker_cleans_up_after_a_crash_of_the_server() {
    let mut home = PipelineFixture::new("tuners = 1\nttl_ms = 60000", ENDLESS_SCRIPT);
    let session = home.start_channel("a", "hd");
    home.wait_until_running(&session);
    home.server().signal("KILL");
    home.wait_for_exit();
    home.serve();
    home.wait_for_state(&session, "ENDED R_WORKER_RESTARTED LOST");
    let next = home.start_channel("a", "hd");
    home.wait_until_running(&next);
    home.assert_no_violation();
}

// S1-47
#[test]
fn api_lease_without_a_worker_ends_after_the_start_timeout() {
    let home = PipelineFixture::new(
        "worker = false\ntuners = 1\nttl_ms = 1000\napi_leases = true\nstart_within_ms = 1500",
        ENDLESS_SCRIPT,
    );
    let session = home.start_channel("a", "hd");
    assert_eq!(home.active_leases(), [format!("service:a {session}")]);
    home.wait_for_state(&session, "ENDED R_NO_WORKER REJECTED_NO_WORKER");
    assert_eq!(home.active_leases(), Vec::<String>::new());
    assert_eq!(home.submit_intent(&json!({"serviceRef": "a", "profileID": "hd"})).status, 202);
}

// S1-14, S1-47
#[test]
fn worker_continues_with_the_api_lease() {
    let home = PipelineFixture::new("tuners = 1\nttl_ms = 2000\napi_leases = true", ENDLESS_SCRIPT);
    let session = home.start_channel("a", "hd");
    home.wait_until_running(&session);
    assert_eq!(home.active_leases(), [format!("service:a {session}"), format!("tuner:0 {session}")]);
}

// O-11
#[test]
fn suspended_worker_leaves_no_pipeline_after_its_leases_expire() {
    let home =
        PipelineFixture::with_separate_worker(&format!("trap '' TERM; setsid sleep 60 & {ENDLESS_SCRIPT}"));
    let mut worker = home.start_ready_worker();
    let session = home.start_channel("a", "hd");
    home.wait_until_running(&session);
    worker.signal("STOP");
    home.wait_for_state(&session, "ENDED R_LEASE_EXPIRED LOST");
    assert!(is_file_unlocked(&home.path("lock-0")), "gone before its tuner was free");
    worker.signal("CONT");
    assert_eq!(worker.wait_for_exit(), Some(76), "its guard is lost, which is fatal");
}

// O-12
#[test]
fn second_worker_is_ready_once_the_first_has_ended() {
    let home = PipelineFixture::with_separate_worker(ENDLESS_SCRIPT);
    let mut first = home.start_ready_worker();
    let mut second = home.start_standby_worker();
    let message = second.read_error_line();
    assert!(message.contains("is the worker; this one waits"), "{message}");
    let session = home.start_channel("a", "hd");
    home.wait_until_running(&session);
    first.signal("TERM");
    assert_eq!(first.wait_for_exit(), Some(0));
    home.wait_for_state(&session, "ENDED R_WORKER_STOPPED STOPPED");
    assert!(is_file_unlocked(&home.path("lock-0")));
    assert_eq!(second.read_line(), "worker ready");
    let next = home.start_channel("a", "hd");
    home.wait_until_running(&next);
    home.assert_no_violation();
}

// O-12
#[test]
fn second_worker_replaces_one_suspended_beyond_its_leadership() {
    let home = PipelineFixture::with_separate_worker(ENDLESS_SCRIPT);
    let mut first = home.start_ready_worker();
    let session = home.start_channel("a", "hd");
    home.wait_until_running(&session);
    first.signal("STOP");
    let mut second = home.start_standby_worker();
    assert_eq!(second.read_line(), "worker ready");
    assert!(is_file_unlocked(&home.path("lock-0")));
    let next = home.start_channel("a", "hd");
    home.wait_until_running(&next);
    first.signal("CONT");
    assert_eq!(first.wait_for_exit(), Some(76));
    assert_eq!(home.intent_session(&next)["state"], "RUNNING");
    home.assert_no_violation();
}

#[test]
fn server_ends_its_pipelines_before_it_exits() {
    let mut home =
        PipelineFixture::new("tuners = 1", &format!("trap 'echo asked; exit 0' TERM; {ENDLESS_SCRIPT}"));
    let session = home.start_channel("a", "hd");
    home.wait_until_running(&session);
    home.server().signal("TERM");
    let (code, errors) = home.wait_for_exit();
    assert_eq!(code, Some(0), "{errors}");
    assert!(errors.contains("the worker is ready"), "{errors}");
    assert!(is_file_unlocked(&home.path("lock-0")) && home.pipeline_log(&session).ends_with("asked\n"));
    home.serve();
    home.wait_for_state(&session, "ENDED R_WORKER_STOPPED STOPPED");
}

#[test]
fn worker_survives_a_short_absence_of_the_server() {
    let mut home = PipelineFixture::new("worker = false\ntuners = 1\nttl_ms = 6000", ENDLESS_SCRIPT);
    let _worker = home.start_ready_worker();
    let session = home.start_channel("a", "hd");
    home.wait_until_running(&session);
    let address = home.server().address.clone();
    home.server().signal("KILL");
    home.wait_for_exit();
    home.serve_at(&address);
    // Longer than its leases would have lasted.
    sleep(Duration::from_secs(7));
    assert_eq!(home.intent_session(&session)["state"], "RUNNING");
}

// O-12
#[test]
fn worker_that_lost_its_leadership_ends_its_pipelines_and_exits() {
    let home = PipelineFixture::new("worker = false\ntuners = 1\nttl_ms = 60000", ENDLESS_SCRIPT);
    let mut worker = home.start_ready_worker();
    let session = home.start_channel("a", "hd");
    home.wait_until_running(&session);
    home.revoke(GUARD);
    assert_eq!(worker.wait_for_exit(), Some(76));
    let line = worker.read_error_line();
    assert!(line.contains("the guard was lost"), "{line}");
    assert!(is_file_unlocked(&home.path("lock-0")));
    assert_eq!(home.active_leases().len(), 2, "nothing is free that it could not give back");
    let _next = home.start_ready_worker();
    home.wait_for_state(&session, "ENDED R_WORKER_RESTARTED LOST");
}

// O-12
#[test]
fn embedded_worker_that_lost_its_leadership_restarts() {
    let home = PipelineFixture::new("tuners = 1\nttl_ms = 60000", ENDLESS_SCRIPT);
    let session = home.start_channel("a", "hd");
    home.wait_until_running(&session);
    home.revoke(GUARD);
    home.wait_for_state(&session, "ENDED R_WORKER_RESTARTED LOST");
    assert!(is_file_unlocked(&home.path("lock-0")));
    home.wait_until_running(&home.start_channel("a", "hd"));
    home.assert_no_violation();
}

// O-11, O-12
#[test]
fn pipelines_end_when_the_server_stays_away() {
    let mut home = PipelineFixture::with_separate_worker(&format!("trap '' TERM; {ENDLESS_SCRIPT}"));
    let mut worker = home.start_ready_worker();
    let session = home.start_channel("a", "hd");
    home.wait_until_running(&session);
    home.server().signal("KILL");
    home.wait_for_exit();
    assert_eq!(worker.wait_for_exit(), Some(76));
    assert!(is_file_unlocked(&home.path("lock-0")));
}

#[test]
fn worker_finds_its_server_by_flag_and_local_socket() {
    let home = PipelineFixture::with_separate_worker(ENDLESS_SCRIPT);
    let url = format!("http://{}", home.server().address);
    let mut by_flag = home.command(&["worker", "--server", &url]);
    by_flag.env("TENURE_URL", "http://127.0.0.1:1");
    let mut by_socket = home.command(&["worker"]);
    by_socket.env_remove("TENURE_URL").env_remove("TENURE_TOKEN");
    for mut command in [by_flag, by_socket] {
        let mut worker = WorkerProcess::start(&mut command);
        assert_eq!(worker.read_line(), "worker ready");
        worker.signal("INT");
        assert_eq!(worker.wait_for_exit(), Some(0));
    }
}

#[test]
fn worker_without_pipeline_command_or_permission_exits_with_a_reason() {
    let home = PipelineFixture::with_separate_worker(ENDLESS_SCRIPT);
    let denied = home.command(&["worker"]).env("TENURE_TOKEN", "wrong").output().unwrap();
    assert_eq!(denied.status.code(), Some(77));
    std::fs::write(home.path(".config/tenure/config.toml"), "").unwrap();
    let nothing = home.command(&["worker"]).output().unwrap();
    let errors = String::from_utf8(nothing.stderr).unwrap();
    assert_eq!(nothing.status.code(), Some(78), "{errors}");
    assert!(errors.contains("intents.pipeline.command"), "{errors}");
}
