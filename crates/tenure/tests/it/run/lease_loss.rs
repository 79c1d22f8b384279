//! `tenure run` when the lease is lost, and when its own processes are stopped or killed.
//!
//! The commands hold a lock for as long as they or anybody whom they started lives: `flock` tells when all are gone.

/// A script that holds the lock `lock` as long as it runs, and does not end by itself.
use tenure_testkit::{TestHome, is_file_unlocked, signal, wait_until};

fn forever(prefix: &str) -> String {
    let marker = if prefix.contains("@begun") { "" } else { "@begun;" };
    format!("exec 9> lock; flock -n 9 || exit 99; {prefix} {marker} while :; do sleep 0.05; done")
}

/// Another command gets the resource, and finds the lock free.
fn is_passed_on(home: &TestHome) {
    let next =
        home.run(&["run", "--on", "db:a", "--wait", "20s", "--", "flock", "-n", "-E", "99", "lock", "true"]);
    assert_eq!(next.code, Some(0), "99 is: the first command still ran; {next:?}");
}

#[test]
fn suspended_run_ends_its_command_before_the_next_grant() {
    let home = TestHome::new();
    let stopped = home.start_under_lease("db:a", &["--ttl", "1s"], &forever(""));
    stopped.signal("STOP");
    is_passed_on(&home);
    stopped.signal("CONT");
    let done = stopped.end();
    assert_eq!(done.code, Some(76), "{done:?}");
    assert!(done.errors.contains("db:a was lost"), "{done:?}");
}

#[test]
fn command_that_ignores_sigterm_is_killed_before_the_next_grant() {
    let home = TestHome::new();
    let stopped = home.start_under_lease("db:a", &["--ttl", "1s"], &forever("trap '' TERM INT HUP;"));
    stopped.signal("STOP");
    is_passed_on(&home);
    stopped.signal("CONT");
    assert_eq!(stopped.end().code, Some(76));
}

#[test]
fn descendants_outside_of_the_process_group_are_killed_too() {
    let home = TestHome::new();
    let prefix =
        "(trap '' TERM; sleep 60) & setsid sleep 60 & (setsid sh -c 'trap \"\" TERM; sleep 60 & wait' &);";
    let stopped = home.start_under_lease("db:a", &["--ttl", "1s"], &forever(prefix));
    stopped.signal("STOP");
    is_passed_on(&home);
    stopped.signal("CONT");
    assert_eq!(stopped.end().code, Some(76));
}

#[test]
fn killed_run_ends_its_command() {
    let home = TestHome::new();
    let killed =
        home.start_under_lease("db:a", &["--ttl", "60s", "--kill-after", "100ms"], &forever("trap '' TERM;"));
    assert!(!is_file_unlocked(&home.path("lock")));
    killed.signal("KILL");
    killed.wait();
    wait_until("the command is gone", || is_file_unlocked(&home.path("lock")));
}

#[test]
fn killed_watchdog_ends_the_command() {
    let home = TestHome::new();
    // The watchdog is the command's parent.
    let running =
        home.start_under_lease("db:a", &["--ttl", "60s"], &forever("echo $PPID > parent; setsid sleep 60 &"));
    let watchdog = std::fs::read_to_string(home.path("parent")).unwrap().trim_end().parse().unwrap();
    assert_ne!(watchdog, running.process_id());
    signal(watchdog, "KILL");
    assert_eq!(running.wait(), Some(137));
    assert!(is_file_unlocked(&home.path("lock")), "gone before the lease was given back");
    assert_eq!(home.run(&["who", "db:a"]).code, Some(1));
}

#[test]
fn background_processes_of_the_group_end_before_the_release() {
    let home = TestHome::new();
    let script = "exec 9> lock; flock -n 9; sleep 60 & (sleep 60 &) & exit 3";
    // Not its output: that would end with whoever is left behind.
    assert_eq!(home.run_command_under_lease("db:a", &[], script).status().unwrap().code(), Some(3));
    assert!(is_file_unlocked(&home.path("lock")));
}

#[test]
fn daemon_outside_of_the_group_survives_a_normal_exit() {
    let home = TestHome::new();
    let script = "(exec 9> lock; flock -n 9; setsid sh -c 'echo $$ > daemon; exec sleep 60' < /dev/null > /dev/null 2>&1 &)
        until [ -s daemon ]; do sleep 0.01; done";
    let done = home.run_command_under_lease("db:a", &[], script).output().unwrap();
    assert_eq!(done.status.code(), Some(0));
    assert!(!is_file_unlocked(&home.path("lock")));
    let daemon = std::fs::read_to_string(home.path("daemon")).unwrap().trim_end().parse().unwrap();
    signal(daemon, "KILL");
    wait_until("the daemon is gone", || is_file_unlocked(&home.path("lock")));
}

#[test]
fn revoked_lease_ends_the_command_and_frees_the_resource() {
    let home = TestHome::new();
    let running = home.start_under_lease("db:a", &["--ttl", "1s"], &forever("trap 'exit 0' TERM;"));
    let id = home.json(&["list", "--json"])["leases"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(home.run(&["revoke", &id, "--reason", "test"]).code, Some(0));
    let done = running.end();
    assert_eq!(done.code, Some(76), "{done:?}");
    assert!(done.errors.contains("REVOKED"), "{done:?}");
    assert!(is_file_unlocked(&home.path("lock")));
}

#[test]
fn command_that_suspended_itself_is_ended_too() {
    let home = TestHome::new();
    let stopped = home.start_under_lease("db:a", &["--ttl", "1s"], &forever("@begun; kill -STOP $$;"));
    stopped.signal("STOP");
    is_passed_on(&home);
    stopped.signal("CONT");
    assert_eq!(stopped.end().code, Some(76));
}
