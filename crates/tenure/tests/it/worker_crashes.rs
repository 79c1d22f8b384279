//! Workers that are killed, stopped, replaced, or told to end.

use std::time::Duration;

use serde_json::json;
use tenure_testkit::pipelines::{FOREVER, PipelineHome, WorkerProcess};
use tenure_testkit::{is_unlocked, pause, signal, wait_until};

/// What the one worker holds.
const GUARD: &str = "system:orchestrator:guard_lock";

// S1-42, O-11
#[test]
fn after_a_crash_without_restart_leases_last_until_their_time_is_over_and_no_longer() {
    let home = PipelineHome::new("worker = false\ntuners = 1\nttl_ms = 3000\napi_leases = true", FOREVER);
    let mut worker = home.worker();
    let session = home.watch("a", "hd");
    home.runs(&session);
    worker.kill();
    let mut client = home.client();
    assert_eq!(client.acquire("tuner:0", 60_000, None).unwrap().code(), (409, "HELD"));
    let busy = home.send(&json!({"serviceRef": "a", "profileID": "sd"}));
    assert_eq!(busy.code(), (409, "LEASE_BUSY"));
    wait_until("the watchdog has ended the pipeline", || is_unlocked(&home.path("lock-0")));
    home.until(&session, "ENDED R_LEASE_EXPIRED LOST");
    client.acquire("tuner:0", 60_000, None).unwrap().held();
    assert_eq!(home.send(&json!({"serviceRef": "a", "profileID": "sd"})).status, 202);
}

// S1-43, O-12
#[test]
fn after_a_crash_with_restart_everything_is_free_at_once_and_nobody_is_left() {
    // What ignores SIGTERM and left its group would live on for long by itself.
    let script = format!("trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 60' & {FOREVER}");
    let home =
        PipelineHome::new("worker = false\ntuners = 1\nttl_ms = 60000\nstop_grace_ms = 20000", &script);
    let mut worker = home.worker();
    let session = home.watch("a", "hd");
    home.runs(&session);
    worker.kill();
    assert!(!is_unlocked(&home.path("lock-0")));
    let _second = home.worker();
    assert!(is_unlocked(&home.path("lock-0")), "gone before the second was ready");
    let view = home.session(&session);
    assert_eq!((&view["state"], &view["reason"]), (&"ENDED".into(), &"R_WORKER_RESTARTED".into()));
    let next = home.watch("a", "hd");
    assert_ne!(next, session);
    home.runs(&next);
    home.has_no_violation();
}

// O-12
#[test]
fn who_lost_its_worker_and_its_watchdog_is_gone_before_the_next_worker_begins() {
    let home = PipelineHome::new("worker = false\ntuners = 1\nttl_ms = 2000", FOREVER);
    let mut worker = home.worker();
    let session = home.watch("a", "hd");
    let process = home.runs(&session)["process"].as_str().expect("it runs").to_owned();
    // Stopped first, so that it sees nothing of what follows.
    worker.signal("STOP");
    let number = process.split("watchdog ").nth(1).and_then(|rest| rest.split(')').next());
    signal(number.expect("it is named").parse().expect("a number"), "KILL");
    worker.kill();
    // Nobody is left who could end it in time, and nobody who would know its session once that is over.
    home.until(&session, "ENDED R_LEASE_EXPIRED LOST");
    assert!(!is_unlocked(&home.path("lock-0")), "the pipeline lives on");
    let _second = home.worker();
    assert!(is_unlocked(&home.path("lock-0")), "gone before the second was ready");
    let next = home.watch("a", "hd");
    home.runs(&next);
    home.has_no_violation();
}

// S1-43
#[test]
fn a_worker_in_the_server_cleans_up_after_a_crash_of_both() {
    let mut home = PipelineHome::new("tuners = 1\nttl_ms = 60000", FOREVER);
    let session = home.watch("a", "hd");
    home.runs(&session);
    home.server().signal("KILL");
    home.end();
    home.serve();
    home.until(&session, "ENDED R_WORKER_RESTARTED LOST");
    let next = home.watch("a", "hd");
    home.runs(&next);
    home.has_no_violation();
}

// S1-47
#[test]
fn a_lease_that_the_api_took_does_not_outlive_a_worker_that_never_came() {
    let home = PipelineHome::new(
        "worker = false\ntuners = 1\nttl_ms = 1000\napi_leases = true\nstart_within_ms = 1500",
        FOREVER,
    );
    let session = home.watch("a", "hd");
    assert_eq!(home.leases(), [format!("service:a {session}")]);
    home.until(&session, "ENDED R_NO_WORKER REJECTED_NO_WORKER");
    assert_eq!(home.leases(), Vec::<String>::new());
    assert_eq!(home.send(&json!({"serviceRef": "a", "profileID": "hd"})).status, 202);
}

// S1-14, S1-47
#[test]
fn the_worker_goes_on_with_the_lease_that_the_api_took() {
    let home = PipelineHome::new("tuners = 1\nttl_ms = 2000\napi_leases = true", FOREVER);
    let session = home.watch("a", "hd");
    home.runs(&session);
    assert_eq!(home.leases(), [format!("service:a {session}"), format!("tuner:0 {session}")]);
}

// O-11
#[test]
fn a_stopped_worker_leaves_no_pipeline_behind_when_its_leases_are_over() {
    let home = PipelineHome::apart(&format!("trap '' TERM; setsid sleep 60 & {FOREVER}"));
    let mut worker = home.worker();
    let session = home.watch("a", "hd");
    home.runs(&session);
    worker.signal("STOP");
    home.until(&session, "ENDED R_LEASE_EXPIRED LOST");
    assert!(is_unlocked(&home.path("lock-0")), "gone before its tuner was free");
    worker.signal("CONT");
    assert_eq!(worker.end(), Some(76), "its guard is lost, which is fatal");
}

// O-12
#[test]
fn a_second_worker_waits_for_the_first_and_takes_over_when_that_is_gone() {
    let home = PipelineHome::apart(FOREVER);
    let mut first = home.worker();
    let mut second = home.worker_that_waits();
    let said = second.complaint();
    assert!(said.contains("is the worker; this one waits"), "{said}");
    let session = home.watch("a", "hd");
    home.runs(&session);
    first.signal("TERM");
    assert_eq!(first.end(), Some(0));
    home.until(&session, "ENDED R_WORKER_STOPPED STOPPED");
    assert!(is_unlocked(&home.path("lock-0")));
    assert_eq!(second.line(), "worker ready");
    let next = home.watch("a", "hd");
    home.runs(&next);
    home.has_no_violation();
}

// O-12
#[test]
fn a_second_worker_takes_over_from_one_that_was_stopped_beyond_its_guard() {
    let home = PipelineHome::apart(FOREVER);
    let mut first = home.worker();
    let session = home.watch("a", "hd");
    home.runs(&session);
    first.signal("STOP");
    let mut second = home.worker_that_waits();
    assert_eq!(second.line(), "worker ready");
    assert!(is_unlocked(&home.path("lock-0")));
    let next = home.watch("a", "hd");
    home.runs(&next);
    first.signal("CONT");
    assert_eq!(first.end(), Some(76));
    assert_eq!(home.session(&next)["state"], "RUNNING");
    home.has_no_violation();
}

#[test]
fn a_server_that_is_told_to_end_ends_its_pipelines_first() {
    let mut home = PipelineHome::new("tuners = 1", &format!("trap 'echo asked; exit 0' TERM; {FOREVER}"));
    let session = home.watch("a", "hd");
    home.runs(&session);
    home.server().signal("TERM");
    let (code, errors) = home.end();
    assert_eq!(code, Some(0), "{errors}");
    assert!(errors.contains("the worker is ready"), "{errors}");
    assert!(is_unlocked(&home.path("lock-0")) && home.log(&session).ends_with("asked\n"));
    home.serve();
    home.until(&session, "ENDED R_WORKER_STOPPED STOPPED");
}

#[test]
fn a_worker_outlives_a_server_that_is_away_for_a_moment() {
    let mut home = PipelineHome::new("worker = false\ntuners = 1\nttl_ms = 6000", FOREVER);
    let _worker = home.worker();
    let session = home.watch("a", "hd");
    home.runs(&session);
    let address = home.server().address.clone();
    home.server().signal("KILL");
    home.end();
    home.serve_at(&address);
    // Longer than its leases would have lasted.
    pause(Duration::from_secs(7));
    assert_eq!(home.session(&session)["state"], "RUNNING");
}

// O-12
#[test]
fn a_worker_that_lost_its_guard_ends_everything_and_itself() {
    let home = PipelineHome::new("worker = false\ntuners = 1\nttl_ms = 60000", FOREVER);
    let mut worker = home.worker();
    let session = home.watch("a", "hd");
    home.runs(&session);
    home.revoke(GUARD);
    assert_eq!(worker.end(), Some(76));
    let said = worker.complaint();
    assert!(said.contains("the guard was lost"), "{said}");
    assert!(is_unlocked(&home.path("lock-0")));
    assert_eq!(home.leases().len(), 2, "nothing is free that it could not give back");
    let _next = home.worker();
    home.until(&session, "ENDED R_WORKER_RESTARTED LOST");
}

// O-12
#[test]
fn a_worker_in_the_server_that_lost_its_guard_starts_over() {
    let home = PipelineHome::new("tuners = 1\nttl_ms = 60000", FOREVER);
    let session = home.watch("a", "hd");
    home.runs(&session);
    home.revoke(GUARD);
    home.until(&session, "ENDED R_WORKER_RESTARTED LOST");
    assert!(is_unlocked(&home.path("lock-0")));
    home.runs(&home.watch("a", "hd"));
    home.has_no_violation();
}

// O-11, O-12
#[test]
fn pipelines_end_by_themselves_when_the_server_stays_away() {
    let mut home = PipelineHome::apart(&format!("trap '' TERM; {FOREVER}"));
    let mut worker = home.worker();
    let session = home.watch("a", "hd");
    home.runs(&session);
    home.server().signal("KILL");
    home.end();
    assert_eq!(worker.end(), Some(76));
    assert!(is_unlocked(&home.path("lock-0")));
}

#[test]
fn a_worker_finds_its_server_by_a_flag_and_by_the_local_socket() {
    let home = PipelineHome::apart(FOREVER);
    let url = format!("http://{}", home.server().address);
    let mut by_flag = home.command(&["worker", "--server", &url]);
    by_flag.env("TENURE_URL", "http://127.0.0.1:1");
    let mut by_socket = home.command(&["worker"]);
    by_socket.env_remove("TENURE_URL").env_remove("TENURE_TOKEN");
    for mut command in [by_flag, by_socket] {
        let mut worker = WorkerProcess::start(&mut command);
        assert_eq!(worker.line(), "worker ready");
        worker.signal("INT");
        assert_eq!(worker.end(), Some(0));
    }
}

#[test]
fn a_worker_with_nothing_to_start_or_without_permission_says_so() {
    let home = PipelineHome::apart(FOREVER);
    let denied = home.command(&["worker"]).env("TENURE_TOKEN", "wrong").output().unwrap();
    assert_eq!(denied.status.code(), Some(77));
    std::fs::write(home.path(".config/tenure/config.toml"), "").unwrap();
    let nothing = home.command(&["worker"]).output().unwrap();
    let errors = String::from_utf8(nothing.stderr).unwrap();
    assert_eq!(nothing.status.code(), Some(78), "{errors}");
    assert!(errors.contains("intents.pipeline.command"), "{errors}");
}
