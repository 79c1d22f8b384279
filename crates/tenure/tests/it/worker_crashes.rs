//! Workers that are killed, stopped, replaced, or told to end.

use std::time::Duration;

use serde_json::json;
use tenure_testkit::pipelines::{FOREVER, PipelineHome, WorkerProcess};
use tenure_testkit::{is_unlocked, pause, signal, wait_until};

/// What the one worker holds.
const GUARD: &str = "system:orchestrator:guard_lock";

// S1-42, O-11
#[test]
fn leases_of_a_crashed_worker_last_until_they_expire() {
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
fn restarted_worker_ends_all_processes_and_frees_leases_at_once() {
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
fn pipeline_without_worker_and_watchdog_ends_before_the_next_worker_is_ready() {
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
fn embedded_worker_cleans_up_after_a_crash_of_the_server() {
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
fn api_lease_without_a_worker_ends_after_the_start_timeout() {
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
fn worker_continues_with_the_api_lease() {
    let home = PipelineHome::new("tuners = 1\nttl_ms = 2000\napi_leases = true", FOREVER);
    let session = home.watch("a", "hd");
    home.runs(&session);
    assert_eq!(home.leases(), [format!("service:a {session}"), format!("tuner:0 {session}")]);
}

// O-11
#[test]
fn suspended_worker_leaves_no_pipeline_after_its_leases_expire() {
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
fn second_worker_is_ready_once_the_first_has_ended() {
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
fn second_worker_replaces_one_suspended_beyond_its_leadership() {
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
fn server_ends_its_pipelines_before_it_exits() {
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
fn worker_survives_a_short_absence_of_the_server() {
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
fn worker_that_lost_its_leadership_ends_its_pipelines_and_exits() {
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
fn embedded_worker_that_lost_its_leadership_restarts() {
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
fn pipelines_end_when_the_server_stays_away() {
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
fn worker_finds_its_server_by_flag_and_local_socket() {
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
fn worker_without_pipeline_command_or_permission_exits_with_a_reason() {
    let home = PipelineHome::apart(FOREVER);
    let denied = home.command(&["worker"]).env("TENURE_TOKEN", "wrong").output().unwrap();
    assert_eq!(denied.status.code(), Some(77));
    std::fs::write(home.path(".config/tenure/config.toml"), "").unwrap();
    let nothing = home.command(&["worker"]).output().unwrap();
    let errors = String::from_utf8(nothing.stderr).unwrap();
    assert_eq!(nothing.status.code(), Some(78), "{errors}");
    assert!(errors.contains("intents.pipeline.command"), "{errors}");
}
