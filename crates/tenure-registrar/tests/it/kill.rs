//! A process that is killed in the middle of whatever it does: nothing that it acknowledged is lost.
//!
//! The test starts itself as the process to be killed; that one writes a line for every grant that it was told.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command as Process, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tenure_core::kernel::{CommandOutcome, Fence, HashSeed, Limits, Tick};
use tenure_ledger::{Head, LedgerStore as _, Retention, verify};
use tenure_registrar::Reply;
use tenure_registrar::runtime::{BootClock, MaintenanceOptions, RegistrarService, Replay, ServiceOptions};

use crate::ledger_store::ledger_store;
use crate::runtime::acquire;

const DATA: &str = "TENURE_KILL_DATA";
/// Small, so that files are changed in the middle of it too.
const SEGMENT_SIZE: u64 = 1 << 16;
const RESERVE: u64 = 2 << 16;
const ROUNDS: u64 = 100;
const IN_FLIGHT: u64 = 64;

fn options() -> ServiceOptions {
    ServiceOptions {
        // Checkpoints are made, and segments pruned, all the time.
        maintenance: MaintenanceOptions {
            checkpoint_after: 400,
            retention: Retention { bytes: 20 << 16, ..Retention::default() },
        },
        ..ServiceOptions::default()
    }
}

/// Only does something when the test below starts it.
#[test]
fn child_process_to_be_killed() {
    let Some(data) = std::env::var_os(DATA) else { return };
    let clock = Arc::new(BootClock::new().unwrap());
    let ledger = ledger_store(Path::new(&data), SEGMENT_SIZE, RESERVE);
    let service = RegistrarService::open(Path::new(&data), &ledger, options(), clock).unwrap();
    let handle = service.handle();
    let process = std::process::id();
    let (sender, replies) = std::sync::mpsc::channel();
    let ask = move |number: u64| {
        let sender = sender.clone();
        let command = acquire(&format!("thing:{process}.{number}"), "load", 86_400);
        handle.submit(command, move |response| drop(sender.send(response.reply)));
    };
    // As many under way as a busy server has; each answer makes room for the next request.
    (0..IN_FLIGHT).for_each(&ask);
    let mut out = std::io::stdout().lock();
    for (number, reply) in (IN_FLIGHT..).zip(replies) {
        if let Reply::Answered { answer: CommandOutcome::Granted { leases }, stamp } = reply {
            writeln!(out, "granted {} {}", leases[0].0, stamp.0 + 86_400_000_000).unwrap();
        }
        ask(number);
    }
}

fn start(data: &Path) -> Child {
    Process::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::child_process_to_be_killed", "--nocapture"])
        .env(DATA, data)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// What the process was told, up to its end.
fn kill_and_collect(mut child: Child, kill_after: Duration) -> BTreeMap<Fence, Tick> {
    let output = BufReader::new(child.stdout.take().unwrap());
    let (started, running) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut journal = BTreeMap::new();
        // A line that is cut was not read by anybody.
        for line in output.split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            let words: Vec<&str> = line.split(' ').collect();
            if let [.., "granted", fence, end] = words[..] {
                let _ = started.send(());
                let (Ok(fence), Ok(end)) = (fence.parse(), end.parse()) else { continue };
                journal.insert(Fence(fence), Tick(end));
            }
        }
        journal
    });
    running.recv().expect("the process is told of a grant");
    std::thread::park_timeout(kill_after);
    child.kill().unwrap();
    child.wait().unwrap();
    let mut journal = reader.join().unwrap();
    // The last line may have been cut in its number.
    journal.pop_last();
    journal
}

/// What the ledger adds up to, with every signature checked.
fn replay(data: &Path, head: Head) -> Replay {
    let mut recovery =
        ledger_store(data, SEGMENT_SIZE, RESERVE).open().expect("a kill leaves nothing that does not open");
    let (limits, hash_seed) = (Limits::default(), HashSeed::default());
    let (checkpoint, ledger) = (recovery.take_checkpoint(), recovery.ledger());
    let replay = Replay::begin(checkpoint.as_ref(), ledger, limits, hash_seed).expect("a whole checkpoint");
    let mut replay = replay.with_signature_checks();
    while let Some(batch) = recovery.next_batch().expect("it can be read") {
        replay.apply(&batch).expect("it adds up, and is signed");
    }
    assert_eq!(replay.head(), head);
    replay
}

// S2-2, S2-3, S2-5: state is what the ledger says, and the ledger has all that was acknowledged.
#[test]
fn acknowledged_grants_survive_sigkill_with_their_exact_expiry() {
    let folder = tempfile::tempdir().unwrap();
    let mut highest = Fence(0);
    let (mut acknowledged, mut checkpoints) = (0, 0);
    for round in 0..ROUNDS {
        let data = folder.path().join((round / 10).to_string());
        if round % 10 == 0 {
            highest = Fence(0);
        }
        // Spread over the microseconds, without a random source: a failure can be seen again.
        let kill_after = Duration::from_micros(round.wrapping_mul(7_919) % 20_000);
        let journal = kill_and_collect(start(&data), kill_after);
        acknowledged += journal.len();
        let first = journal.keys().next().copied().unwrap_or(Fence(u64::MAX));
        assert!(first > highest, "round {round}: {first:?} was given out before");

        let report = verify(&data).expect("a kill damages nothing");
        let replay = replay(&data, report.head);
        for (fence, end) in &journal {
            let lease = replay.state().lease(*fence);
            let lease = lease.unwrap_or_else(|| panic!("round {round}: {fence:?} is lost"));
            assert_eq!(lease.terms.expires_at, *end, "round {round}: {fence:?}");
        }
        highest = replay.state().last_fence();
        checkpoints += report.checkpoints;
    }
    assert!(checkpoints > 10, "only {checkpoints} checkpoints: the test tried less than it says");
    assert!(acknowledged > 1_000, "only {acknowledged} grants: the test tried nothing");
}
