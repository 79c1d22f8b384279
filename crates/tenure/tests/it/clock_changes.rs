//! Restarts on another clock: no lease ends before its time, and the time that is added is bounded.

use std::path::Path;
use std::time::{Duration, Instant};

use tenure_testkit::{ServerProcess, now, serve_command, sleep};

use crate::fault_injection::wrapped_command;

/// The time between two marks, and what a busy machine adds to that.
const MARK: i64 = 1_000;
const SLACK: i64 = 1_000;

/// A server in a time namespace of its own, whose clock is this many seconds ahead of the machine's.
fn serve_ahead(folder: &Path, seconds: u64) -> ServerProcess {
    let boottime = seconds.to_string();
    let served = ServerProcess::start(&mut wrapped_command(
        "unshare",
        &["--time", "--boottime", &boottime],
        &serve_command(folder),
    ));
    let namespace = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/time")).unwrap();
    let process = served.process_id().to_string();
    assert_ne!(namespace(&process), namespace("self"), "this kernel is too old: exec must change the clock");
    served
}

/// How many milliseconds of `ttl` are left, for somebody who counts since `since`.
fn remaining(ttl: i64, since: Instant) -> i64 {
    ttl - i64::try_from((now() - since).as_millis()).unwrap()
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap()
}

/// Restarts on a clock that says something else: what is left is never less than it really is, and not much more.
fn restart(ahead_before: u64, ahead_after: u64) {
    let folder = tempfile::tempdir().unwrap();
    let served = serve_ahead(folder.path(), ahead_before);
    let mut client = served.client();
    let requested_at = now();
    let held = client.acquire("db:1", 60_000, None).unwrap().held_lease();
    let answered = now();
    // Long enough that time which nobody noted would be missed.
    sleep(Duration::from_millis(3_500));
    served.kill();
    let killed = now();
    let served = serve_ahead(folder.path(), ahead_after);
    let without = milliseconds(now() - killed);
    let mut client = served.client();
    let max = remaining(60_000, answered) + without + MARK + SLACK;
    let shown = client.show(&held.id).unwrap();
    let least = remaining(60_000, requested_at);
    assert_eq!(shown.lease_state(), "ACTIVE", "{ahead_before} to {ahead_after}: {shown:?}");
    let remaining = shown.lease_remaining_ms();
    assert!(remaining >= least, "{ahead_before} to {ahead_after}: {remaining}, at least {least}");
    assert!(remaining <= max, "{ahead_before} to {ahead_after}: {remaining}, at most {max}");
}

#[test]
fn clock_that_is_behind_after_a_restart_expires_no_lease_early() {
    restart(1_000_000, 0);
    restart(1_000_000, 999_990);
}

#[test]
fn clock_that_is_ahead_after_a_restart_expires_no_lease_early() {
    restart(0, 1_000_000);
    restart(1_000_000, 1_000_050);
}

#[test]
fn lease_is_not_granted_again_before_its_real_expiry() {
    reacquire(500_000, 400_000);
    reacquire(400_000, 500_000);
}

/// Somebody waits for a lease over a restart on another clock.
fn reacquire(ahead_before: u64, ahead_after: u64) {
    let folder = tempfile::tempdir().unwrap();
    let served = serve_ahead(folder.path(), ahead_before);
    let requested_at = now();
    let held = served.client().acquire("db:1", 4_000, None).unwrap().held_lease();
    served.kill();
    let killed = now();
    let served = serve_ahead(folder.path(), ahead_after);
    let without = milliseconds(now() - killed);
    let mut client = served.client();
    loop {
        let late = -remaining(4_000, requested_at);
        let answer = client.acquire("db:1", 4_000, None).unwrap();
        if answer.status == 201 {
            // Its answer came after the decision: what is left now was not more then.
            assert!(
                remaining(4_000, requested_at) <= 0,
                "let in {} ms too early",
                remaining(4_000, requested_at)
            );
            assert!(answer.held_lease().fence > held.fence);
            break;
        }
        assert_eq!(answer.status_and_code(), (409, "HELD"), "{answer:?}");
        assert!(late <= without + MARK + SLACK, "still held after {late} ms too much");
        sleep(Duration::from_millis(5));
    }
}
