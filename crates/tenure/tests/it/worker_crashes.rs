//! Workers that are killed, stopped, replaced, or told to end.

use std::time::Duration;

use serde_json::json;

use crate::client::{pause, wait_until};
use crate::commands::{is_unlocked, signal};
use crate::worker_stage::{FOREVER, Stage, Worker};

/// What the one worker holds.
const GUARD: &str = "system:orchestrator:guard_lock";

// S1-42, O-11
#[test]
fn after_a_crash_without_restart_leases_last_until_their_time_is_over_and_no_longer() {
    let stage = Stage::new("worker = false\ntuners = 1\nttl_ms = 3000\napi_leases = true", FOREVER);
    let mut worker = stage.worker();
    let session = stage.watch("a", "hd");
    stage.runs(&session);
    worker.kill();
    let mut client = stage.client();
    assert_eq!(client.acquire("tuner:0", 60_000, None).unwrap().code(), (409, "HELD"));
    let busy = stage.send(&json!({"serviceRef": "a", "profileID": "sd"}));
    assert_eq!(busy.code(), (409, "LEASE_BUSY"));
    wait_until("the watchdog has ended the pipeline", || is_unlocked(&stage.path("lock-0")));
    stage.until(&session, "ENDED R_LEASE_EXPIRED LOST");
    client.acquire("tuner:0", 60_000, None).unwrap().granted();
    assert_eq!(stage.send(&json!({"serviceRef": "a", "profileID": "sd"})).status, 202);
}

// S1-43, O-12
#[test]
fn after_a_crash_with_restart_everything_is_free_at_once_and_nobody_is_left() {
    // What ignores SIGTERM and left its group would live on for long by itself.
    let script = format!("trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 60' & {FOREVER}");
    let stage = Stage::new("worker = false\ntuners = 1\nttl_ms = 60000\nstop_grace_ms = 20000", &script);
    let mut worker = stage.worker();
    let session = stage.watch("a", "hd");
    stage.runs(&session);
    worker.kill();
    assert!(!is_unlocked(&stage.path("lock-0")));
    let _second = stage.worker();
    assert!(is_unlocked(&stage.path("lock-0")), "gone before the second was ready");
    let view = stage.session(&session);
    assert_eq!((&view["state"], &view["reason"]), (&"ENDED".into(), &"R_WORKER_RESTARTED".into()));
    let next = stage.watch("a", "hd");
    assert_ne!(next, session);
    stage.runs(&next);
    stage.has_no_violation();
}

// O-12
#[test]
fn who_lost_its_worker_and_its_watchdog_is_gone_before_the_next_worker_begins() {
    let stage = Stage::new("worker = false\ntuners = 1\nttl_ms = 2000", FOREVER);
    let mut worker = stage.worker();
    let session = stage.watch("a", "hd");
    let process = stage.runs(&session)["process"].as_str().expect("it runs").to_owned();
    // Stopped first, so that it sees nothing of what follows.
    worker.signal("STOP");
    let number = process.split("watchdog ").nth(1).and_then(|rest| rest.split(')').next());
    signal(number.expect("it is named").parse().expect("a number"), "KILL");
    worker.kill();
    // Nobody is left who could end it in time, and nobody who would know its session once that is over.
    stage.until(&session, "ENDED R_LEASE_EXPIRED LOST");
    assert!(!is_unlocked(&stage.path("lock-0")), "the pipeline lives on");
    let _second = stage.worker();
    assert!(is_unlocked(&stage.path("lock-0")), "gone before the second was ready");
    let next = stage.watch("a", "hd");
    stage.runs(&next);
    stage.has_no_violation();
}

// S1-43
#[test]
fn a_worker_in_the_server_cleans_up_after_a_crash_of_both() {
    let mut stage = Stage::new("tuners = 1\nttl_ms = 60000", FOREVER);
    let session = stage.watch("a", "hd");
    stage.runs(&session);
    stage.served().signal("KILL");
    stage.end();
    stage.serve();
    stage.until(&session, "ENDED R_WORKER_RESTARTED LOST");
    let next = stage.watch("a", "hd");
    stage.runs(&next);
    stage.has_no_violation();
}

// S1-47
#[test]
fn a_lease_that_the_api_took_does_not_outlive_a_worker_that_never_came() {
    let stage = Stage::new(
        "worker = false\ntuners = 1\nttl_ms = 1000\napi_leases = true\nstart_within_ms = 1500",
        FOREVER,
    );
    let session = stage.watch("a", "hd");
    assert_eq!(stage.leases(), [format!("service:a {session}")]);
    stage.until(&session, "ENDED R_NO_WORKER REJECTED_NO_WORKER");
    assert_eq!(stage.leases(), Vec::<String>::new());
    assert_eq!(stage.send(&json!({"serviceRef": "a", "profileID": "hd"})).status, 202);
}

// S1-14, S1-47
#[test]
fn the_worker_goes_on_with_the_lease_that_the_api_took() {
    let stage = Stage::new("tuners = 1\nttl_ms = 2000\napi_leases = true", FOREVER);
    let session = stage.watch("a", "hd");
    stage.runs(&session);
    assert_eq!(stage.leases(), [format!("service:a {session}"), format!("tuner:0 {session}")]);
}

// O-11
#[test]
fn a_stopped_worker_leaves_no_pipeline_behind_when_its_leases_are_over() {
    let stage = Stage::apart(&format!("trap '' TERM; setsid sleep 60 & {FOREVER}"));
    let mut worker = stage.worker();
    let session = stage.watch("a", "hd");
    stage.runs(&session);
    worker.signal("STOP");
    stage.until(&session, "ENDED R_LEASE_EXPIRED LOST");
    assert!(is_unlocked(&stage.path("lock-0")), "gone before its tuner was free");
    worker.signal("CONT");
    assert_eq!(worker.end(), Some(76), "its guard is lost, which is fatal");
}

// O-12
#[test]
fn a_second_worker_waits_for_the_first_and_takes_over_when_that_is_gone() {
    let stage = Stage::apart(FOREVER);
    let mut first = stage.worker();
    let mut second = stage.worker_that_waits();
    let said = second.complaint();
    assert!(said.contains("is the worker; this one waits"), "{said}");
    let session = stage.watch("a", "hd");
    stage.runs(&session);
    first.signal("TERM");
    assert_eq!(first.end(), Some(0));
    stage.until(&session, "ENDED R_WORKER_STOPPED STOPPED");
    assert!(is_unlocked(&stage.path("lock-0")));
    assert_eq!(second.line(), "worker ready");
    let next = stage.watch("a", "hd");
    stage.runs(&next);
    stage.has_no_violation();
}

// O-12
#[test]
fn a_second_worker_takes_over_from_one_that_was_stopped_beyond_its_guard() {
    let stage = Stage::apart(FOREVER);
    let mut first = stage.worker();
    let session = stage.watch("a", "hd");
    stage.runs(&session);
    first.signal("STOP");
    let mut second = stage.worker_that_waits();
    assert_eq!(second.line(), "worker ready");
    assert!(is_unlocked(&stage.path("lock-0")));
    let next = stage.watch("a", "hd");
    stage.runs(&next);
    first.signal("CONT");
    assert_eq!(first.end(), Some(76));
    assert_eq!(stage.session(&next)["state"], "RUNNING");
    stage.has_no_violation();
}

#[test]
fn a_server_that_is_told_to_end_ends_its_pipelines_first() {
    let mut stage = Stage::new("tuners = 1", &format!("trap 'echo asked; exit 0' TERM; {FOREVER}"));
    let session = stage.watch("a", "hd");
    stage.runs(&session);
    stage.served().signal("TERM");
    let (code, errors) = stage.end();
    assert_eq!(code, Some(0), "{errors}");
    assert!(errors.contains("the worker is ready"), "{errors}");
    assert!(is_unlocked(&stage.path("lock-0")) && stage.log(&session).ends_with("asked\n"));
    stage.serve();
    stage.until(&session, "ENDED R_WORKER_STOPPED STOPPED");
}

#[test]
fn a_worker_outlives_a_server_that_is_away_for_a_moment() {
    let mut stage = Stage::new("worker = false\ntuners = 1\nttl_ms = 6000", FOREVER);
    let _worker = stage.worker();
    let session = stage.watch("a", "hd");
    stage.runs(&session);
    let address = stage.served().address.clone();
    stage.served().signal("KILL");
    stage.end();
    stage.serve_at(&address);
    // Longer than its leases would have lasted.
    pause(Duration::from_secs(7));
    assert_eq!(stage.session(&session)["state"], "RUNNING");
}

// O-12
#[test]
fn a_worker_that_lost_its_guard_ends_everything_and_itself() {
    let stage = Stage::new("worker = false\ntuners = 1\nttl_ms = 60000", FOREVER);
    let mut worker = stage.worker();
    let session = stage.watch("a", "hd");
    stage.runs(&session);
    stage.revoke(GUARD);
    assert_eq!(worker.end(), Some(76));
    let said = worker.complaint();
    assert!(said.contains("the guard was lost"), "{said}");
    assert!(is_unlocked(&stage.path("lock-0")));
    assert_eq!(stage.leases().len(), 2, "nothing is free that it could not give back");
    let _next = stage.worker();
    stage.until(&session, "ENDED R_WORKER_RESTARTED LOST");
}

// O-12
#[test]
fn a_worker_in_the_server_that_lost_its_guard_starts_over() {
    let stage = Stage::new("tuners = 1\nttl_ms = 60000", FOREVER);
    let session = stage.watch("a", "hd");
    stage.runs(&session);
    stage.revoke(GUARD);
    stage.until(&session, "ENDED R_WORKER_RESTARTED LOST");
    assert!(is_unlocked(&stage.path("lock-0")));
    stage.runs(&stage.watch("a", "hd"));
    stage.has_no_violation();
}

// O-11, O-12
#[test]
fn pipelines_end_by_themselves_when_the_server_stays_away() {
    let mut stage = Stage::apart(&format!("trap '' TERM; {FOREVER}"));
    let mut worker = stage.worker();
    let session = stage.watch("a", "hd");
    stage.runs(&session);
    stage.served().signal("KILL");
    stage.end();
    assert_eq!(worker.end(), Some(76));
    assert!(is_unlocked(&stage.path("lock-0")));
}

#[test]
fn a_worker_finds_its_server_by_a_flag_and_by_the_local_socket() {
    let stage = Stage::apart(FOREVER);
    let url = format!("http://{}", stage.served().address);
    let mut by_flag = stage.command(&["worker", "--server", &url]);
    by_flag.env("TENURE_URL", "http://127.0.0.1:1");
    let mut by_socket = stage.command(&["worker"]);
    by_socket.env_remove("TENURE_URL").env_remove("TENURE_TOKEN");
    for mut command in [by_flag, by_socket] {
        let mut worker = Worker::start(&mut command);
        assert_eq!(worker.line(), "worker ready");
        worker.signal("INT");
        assert_eq!(worker.end(), Some(0));
    }
}

#[test]
fn a_worker_with_nothing_to_start_or_without_permission_says_so() {
    let stage = Stage::apart(FOREVER);
    let denied = stage.command(&["worker"]).env("TENURE_TOKEN", "wrong").output().unwrap();
    assert_eq!(denied.status.code(), Some(77));
    std::fs::write(stage.path(".config/tenure/config.toml"), "").unwrap();
    let nothing = stage.command(&["worker"]).output().unwrap();
    let errors = String::from_utf8(nothing.stderr).unwrap();
    assert_eq!(nothing.status.code(), Some(78), "{errors}");
    assert!(errors.contains("intents.pipeline.command"), "{errors}");
}
