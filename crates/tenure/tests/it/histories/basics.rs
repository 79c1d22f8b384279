//! What sixteen clients of the real server are told, while it is killed, stopped and kept waiting by its disk, is what one
//! table of leases would have told them, and what the ledger says.

use std::time::Duration;

use tenure_testkit::{now, sleep};

use crate::fault_injection::Tracer;
use crate::histories::fixture::{HistoryRun, HistorySummary};

/// How long one history is.
const LENGTH: Duration = Duration::from_secs(9);

fn kills(seed: u64, length: Duration) -> HistorySummary {
    let mut play = HistoryRun::new(seed);
    let end = now() + length;
    while now() < end {
        play.sleep(1_500);
        play.kill_and_restart();
    }
    play.finish()
}

fn stops(seed: u64, length: Duration) -> HistorySummary {
    let mut play = HistoryRun::new(seed);
    let end = now() + length;
    while now() < end {
        play.sleep(700);
        play.server().signal("STOP");
        // Now and then longer than a lease lasts.
        play.sleep(1_600);
        play.server().signal("CONT");
    }
    play.finish()
}

fn slow_syncs(seed: u64, length: Duration) -> HistorySummary {
    let mut play = HistoryRun::new(seed);
    let end = now() + length;
    while now() < end {
        play.sleep(400);
        let delay = [2_000, 30_000, 400_000, 1_300_000][play.rng.index(4)];
        // What is written outlives a process that is killed before the sync; what waits to be written does not.
        let call = if play.rng.percent(50) { "fdatasync" } else { "pwrite64" };
        let tracer = Tracer::attach_to_writer(play.server(), &format!("{call}:delay_enter={delay}"));
        play.sleep(1_000);
        if play.rng.percent(60) {
            play.kill_and_restart();
        }
        drop(tracer);
        sleep(Duration::from_millis(50));
    }
    play.finish()
}

fn assert_tried(summary: &HistorySummary) {
    assert!(summary.operations > 300, "{summary:?}: the test tried nothing");
    assert!(summary.granted > 50 && summary.refused > 20 && summary.waited > 3, "{summary:?}");
}

// S2-2: what was acknowledged is in the ledger, and the state is what that adds up to.
#[test]
fn history_is_linearizable_when_the_server_is_killed() {
    let summary = kills(1, LENGTH);
    assert_tried(&summary);
    assert!(summary.unanswered > 10, "{summary:?}: it was not killed under load");
}

#[test]
fn history_is_linearizable_when_the_server_is_suspended() {
    assert_tried(&stops(2, LENGTH));
}

#[test]
fn history_is_linearizable_with_a_slow_disk() {
    assert_tried(&slow_syncs(3, LENGTH));
}

#[test]
fn long_histories_are_linearizable() {
    for seed in 0..1_000 {
        let length = Duration::from_secs(20);
        let summaries = [kills(seed, length), stops(seed, length), slow_syncs(seed, length)];
        eprintln!("seed {seed}: {summaries:?}");
    }
}
