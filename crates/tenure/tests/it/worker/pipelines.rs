//! The pipelines that a worker starts: what they get, what they leave, and how they end.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;
use tenure_testkit::pipelines::{ENDLESS_SCRIPT, PipelineFixture};
use tenure_testkit::{is_file_unlocked, wait_until};

// S1-12, S1-18
#[test]
fn pipeline_environment_has_its_session_and_no_secret() {
    let home = PipelineFixture::new("tuners = 2", "echo \"$@\"; env; cat; exit 0");
    let session = home.start_channel("1:0:19:A B", "hd");
    let ended = home.wait_for_state(&session, "ENDED R_PIPELINE_EXITED COMPLETED");
    let log = home.pipeline_log(&session);
    let mut lines = log.lines();
    let first = lines.next().unwrap();
    let command = r#"starts ["sh","pipeline.sh","1:0:19:A B","0","0","hd"]"#;
    assert!(first.starts_with("tenure: ") && first.ends_with(command), "{first}");
    assert_eq!(lines.next(), Some("1:0:19:A B 0 0 hd"));
    let value = |name: &str| log.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    assert_eq!(value("TENURE_SESSION"), Some(session.as_str()));
    assert_eq!((value("TENURE_SLOT"), value("TENURE_SERVICE")), (Some("0"), Some("1:0:19:A B")));
    assert_eq!((value("TENURE_PROFILE"), value("TENURE_PARAMS")), (Some("hd"), Some("")));
    assert_eq!((value("TENURE_RECORDING"), value("TENURE_IDEM_SECRET")), (None, None));
    assert_eq!(value("TENURE_LEASE_TOKEN"), None);
    let fence = value("TENURE_FENCE").unwrap();
    assert!(value("TENURE_LEASE").unwrap().ends_with(&format!("-{fence}")), "{log}");
    assert!(ended["worker"].as_str().unwrap().starts_with("worker:"));
    assert!(ended["process"].as_str().unwrap().starts_with("pid "), "{ended}");
    let mode = |name: &str| home.path(name).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("data/sessions"), mode(&format!("data/sessions/{session}.log"))), (0o700, 0o600));
    assert_eq!(home.active_leases(), Vec::<String>::new());
}

#[test]
fn recording_takes_no_tuner_and_has_its_start_position() {
    let home = PipelineFixture::new("tuners = 0", "echo \"$@\"; env; exit 0");
    let intent = json!({"recordingID": "film", "profileID": "hd", "startMs": 61_500, "params": {"a": [1]}});
    let session = home.submit_intent(&intent).body["session_id"].as_str().unwrap().to_owned();
    home.wait_for_state(&session, "ENDED R_PIPELINE_EXITED COMPLETED");
    let log = home.pipeline_log(&session);
    assert!(log.contains("\nfilm  61500 hd\n"), "{log}");
    assert!(log.contains("\nTENURE_RECORDING=film\n") && !log.contains("TENURE_SLOT"), "{log}");
    assert!(log.contains("\nTENURE_PARAMS={\"a\":[1]}\n"), "{log}");
}

// S1-20
#[test]
fn failed_pipeline_is_reported_and_its_leases_are_released() {
    let script = "case $1 in code) exit 3;; signal) kill -SEGV $$;; esac";
    let home = PipelineFixture::new("tuners = 1", script);
    for (service, detail) in [("code", "it ended with exit code 3"), ("signal", "signal 11 ended it")] {
        let session = home.start_channel(service, "hd");
        let view = home.wait_for_state(&session, "ENDED R_PIPELINE_FAILED FAILED");
        assert_eq!(view["detail"], detail);
        assert_eq!(home.active_leases(), Vec::<String>::new());
    }
    std::fs::rename(home.path("pipeline.sh"), home.path("gone.sh")).unwrap();
    let session = home.start_channel("missing", "hd");
    home.wait_for_state(&session, "ENDED R_PIPELINE_FAILED FAILED");
    assert!(home.pipeline_log(&session).contains("pipeline.sh"), "the log says why");
}

#[test]
fn missing_program_is_reported_by_name() {
    let home =
        PipelineFixture::new("tuners = 1\npipeline.recording_command = ['no-such-program']\n", "exit 0");
    let intent = json!({"recordingID": "film", "profileID": "hd"});
    let session = home.submit_intent(&intent).body["session_id"].as_str().unwrap().to_owned();
    let view = home.wait_for_state(&session, "ENDED R_PIPELINE_FAILED FAILED");
    let detail = view["detail"].as_str().unwrap();
    assert!(detail.contains("no-such-program") && detail.contains("No such file"), "{detail}");
}

// S1-20
#[test]
fn stop_terminates_the_pipeline_before_its_tuner_is_free() {
    let home =
        PipelineFixture::new("tuners = 1", &format!("trap 'echo asked; exit 0' TERM; {ENDLESS_SCRIPT}"));
    let session = home.start_channel("a", "hd");
    home.wait_until_running(&session);
    let held = [format!("service:a {session}"), format!("tuner:0 {session}")];
    assert_eq!(home.active_leases(), held);
    home.stop_intent_session(&session);
    home.wait_for_state(&session, "ENDED R_STOPPED STOPPED");
    assert!(is_file_unlocked(&home.path("lock-0")) && home.pipeline_log(&session).ends_with("asked\n"));
    assert_eq!(home.active_leases(), Vec::<String>::new());
}

#[test]
fn pipeline_that_ignores_sigterm_is_killed_before_its_tuner_is_free() {
    let home =
        PipelineFixture::new("tuners = 1\nstop_grace_ms = 200", &format!("trap '' TERM; {ENDLESS_SCRIPT}"));
    let session = home.start_channel("a", "hd");
    home.wait_until_running(&session);
    home.stop_intent_session(&session);
    home.wait_for_state(&session, "ENDED R_STOPPED STOPPED");
    assert!(is_file_unlocked(&home.path("lock-0")));
}

#[test]
fn detached_processes_of_a_pipeline_end_before_its_tuner_is_free() {
    // One that left its group and its session, and ignores what it is told.
    let daemon =
        "(setsid sh -c 'trap \"\" TERM HUP; echo > daemon; sleep 60' &) ; until [ -e daemon ]; do :; done";
    let home = PipelineFixture::new(
        "tuners = 1",
        &format!("case $1 in first) {daemon}; exit 0;; *) {ENDLESS_SCRIPT};; esac"),
    );
    let first = home.start_channel("first", "hd");
    home.wait_for_state(&first, "ENDED R_PIPELINE_EXITED COMPLETED");
    assert!(home.path("daemon").exists() && is_file_unlocked(&home.path("lock-0")));
    let second = home.start_channel("second", "hd");
    home.wait_until_running(&second);
    home.assert_no_violation();
}

#[test]
fn processes_in_the_group_of_an_ended_pipeline_are_killed_and_its_code_is_kept() {
    let script = "(trap '' TERM; echo > deaf; sleep 60) & until [ -e deaf ]; do :; done; exit 3";
    let home = PipelineFixture::new("tuners = 1\nstop_grace_ms = 200", script);
    let session = home.start_channel("a", "hd");
    let view = home.wait_for_state(&session, "ENDED R_PIPELINE_FAILED FAILED");
    assert_eq!(view["detail"], "it ended with exit code 3");
    assert!(is_file_unlocked(&home.path("lock-0")));
}

#[test]
fn killed_watchdog_ends_only_its_own_pipeline() {
    let home = PipelineFixture::new(
        "tuners = 2",
        &format!("echo $PPID > watchdog-$TENURE_SLOT; setsid sleep 60 & {ENDLESS_SCRIPT}"),
    );
    let (first, second) = (home.start_channel("a", "hd"), home.start_channel("b", "hd"));
    for session in [&first, &second] {
        home.wait_until_running(session);
    }
    let slot = home.intent_session(&first)["slot"].as_u64().unwrap();
    let name = format!("watchdog-{slot}");
    wait_until("it says who watches it", || home.read_or_empty(&name).ends_with('\n'));
    tenure_testkit::signal(home.read_or_empty(&name).trim_end().parse().unwrap(), "KILL");
    home.wait_for_state(&first, "ENDED R_PIPELINE_FAILED FAILED");
    assert!(is_file_unlocked(&home.path(&format!("lock-{slot}"))));
    assert_eq!(home.intent_session(&second)["state"], "RUNNING");
    assert!(!is_file_unlocked(&home.path(&format!("lock-{}", 1 - slot))));
}

#[test]
fn stop_ends_a_pipeline_with_a_suspended_watchdog() {
    let home = PipelineFixture::new("tuners = 1", &format!("echo $PPID > watchdog; {ENDLESS_SCRIPT}"));
    let session = home.start_channel("a", "hd");
    home.wait_until_running(&session);
    tenure_testkit::signal(home.read_or_empty("watchdog").trim_end().parse().unwrap(), "STOP");
    home.stop_intent_session(&session);
    home.wait_for_state(&session, "ENDED R_STOPPED STOPPED");
    assert!(is_file_unlocked(&home.path("lock-0")));
}

#[test]
fn log_count_is_limited_but_never_below_the_session_count() {
    let home = PipelineFixture::new(
        "tuners = 2\nlogs_kept = 3",
        &format!("case $1 in stays) {ENDLESS_SCRIPT};; esac"),
    );
    let stays = home.start_channel("stays", "hd");
    home.wait_until_running(&stays);
    let mut last = String::new();
    for number in 0..5 {
        last = home.start_channel(&format!("goes-{number}"), "hd");
        home.wait_for_state(&last, "ENDED R_PIPELINE_EXITED COMPLETED");
    }
    let logs = std::fs::read_dir(home.path("data/sessions")).unwrap().count();
    assert!((2..=3).contains(&logs), "{logs}");
    assert!(!home.pipeline_log(&stays).is_empty() && !home.pipeline_log(&last).is_empty());
}
