//! Many `tenure run` on few resources, some of them stopped for longer than their lease lives: no two commands run at
//! the same time on one resource.
//!
//! Each command holds a lock that lives as long as it or anybody whom it started. Whoever finds it taken ends with 99.

use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tenure_testkit::{TestHome, signal, sleep, wait_until};

const RESOURCES: usize = 8;
const AT_ONCE: usize = 2;
const RUNS: usize = 1_000;
/// One of so many is stopped beyond its lease.
const STOPPED: usize = 60;

#[test]
fn thousand_runs_never_overlap_even_if_some_are_suspended_beyond_their_lease() {
    let home = TestHome::new();
    let (started, stopped) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for number in 0..RESOURCES * AT_ONCE {
            let (home, started, stopped) = (&home, &started, &stopped);
            scope.spawn(move || {
                let resource = number % RESOURCES;
                loop {
                    let run = started.fetch_add(1, Ordering::Relaxed);
                    if run >= RUNS {
                        break;
                    }
                    if run % STOPPED == STOPPED - 1 {
                        stopped.fetch_add(1, Ordering::Relaxed);
                        stopped_beyond_its_lease(home, resource, run);
                    } else {
                        to_its_end(home, resource, run);
                    }
                }
            });
        }
    });
    assert!(stopped.into_inner() >= RUNS / STOPPED);
}

fn to_its_end(home: &TestHome, resource: usize, run: usize) {
    // Now and then somebody is left behind.
    let script = if run.is_multiple_of(10) { "sleep 30 & exit 0" } else { "sleep 0.01" };
    let code = locked(home, resource, "30s", script).status().unwrap().code();
    assert_eq!(code, Some(0), "run {run} on {resource}; 99 is an overlap");
}

fn stopped_beyond_its_lease(home: &TestHome, resource: usize, run: usize) {
    let marker = home.path(&format!("begun-{run}"));
    let mut child = locked(home, resource, "1s", &format!("echo > begun-{run}; sleep 30")).spawn().unwrap();
    // It may be lost before, on a busy machine: then there is nothing to stop.
    wait_until("the command begins or is lost", || marker.exists() || child.try_wait().unwrap().is_some());
    signal(child.id(), "STOP");
    sleep(Duration::from_millis(1_500));
    signal(child.id(), "CONT");
    assert_eq!(child.wait().unwrap().code(), Some(76), "run {run} on {resource}; 99 is an overlap");
}

fn locked(home: &TestHome, resource: usize, ttl: &str, script: &str) -> std::process::Command {
    let (name, lock) = (format!("db:{resource}"), format!("lock-{resource}"));
    let script = format!("exec 9> {lock}; flock -n 9 || exit 99; {script}");
    let mut command = home.run_command_under_lease(&name, &["--ttl", ttl, "--quiet"], &script);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}
