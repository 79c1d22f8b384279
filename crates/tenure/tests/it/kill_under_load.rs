//! The real server, killed under load at any moment: whatever it acknowledged over HTTP is there after the restart.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::Sender;
use std::time::Duration;

use tenure_testkit::{AcknowledgedLease, LIMIT, ServerProcess, TestClient, serve_command, sleep};

const DIRECTORIES: u64 = 10;
const ROUNDS: u64 = 10;
const CLIENTS: u64 = 4;
const TTL_MS: u64 = 600_000;

/// What one client was told, and what it does not know.
#[derive(Debug)]
struct JournalEntry {
    name: String,
    held: Option<AcknowledgedLease>,
    outcome: LeaseOutcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeaseOutcome {
    /// Asked for, and no answer came.
    Unanswered,
    Live,
    /// A renewal was sent, and no answer came: it ends then or later.
    RenewedPerhaps,
    Released,
    ReleasedPerhaps,
}

fn server(folder: &Path) -> Command {
    let mut command = serve_command(folder);
    command.env("TENURE_LEDGER_CHECKPOINT_AFTER", "300");
    command
}

/// Works until the connection ends.
fn work(mut client: TestClient, prefix: &str, sender: &Sender<()>) -> Vec<JournalEntry> {
    let mut journal = Vec::new();
    for number in 0_u64.. {
        let name = format!("{prefix}.{number}");
        let Ok(answer) = client.acquire(&name, TTL_MS, Some(&name)) else {
            journal.push(JournalEntry { name, held: None, outcome: LeaseOutcome::Unanswered });
            break;
        };
        let mut held = answer.held_lease();
        let _ = sender.send(());
        let mut outcome = LeaseOutcome::Live;
        if number % 3 == 0 {
            match client.renew(&held) {
                Ok(answer) => {
                    assert_eq!(answer.status, 200, "{answer:?}");
                    held.expires_at_ms = answer.lease_expires_at_ms();
                }
                Err(_) => outcome = LeaseOutcome::RenewedPerhaps,
            }
        } else if number % 3 == 1 {
            outcome = match client.release(&held) {
                Ok(answer) => {
                    assert_eq!((answer.status, answer.lease_state()), (200, "RELEASED"));
                    LeaseOutcome::Released
                }
                Err(_) => LeaseOutcome::ReleasedPerhaps,
            };
        }
        journal.push(JournalEntry { name, held: Some(held), outcome });
    }
    journal
}

/// Everything that the clients of one server were told before it was killed: this long after so many grants.
fn load(
    served: ServerProcess,
    data: &Path,
    prefix: &str,
    grants: u64,
    kill_after: Duration,
) -> Vec<JournalEntry> {
    let first = TestClient::connect(&served.address, data);
    let (sender, receiver) = std::sync::mpsc::channel();
    let start = |client: u64| {
        let (connection, sender) = (first.reconnect(), sender.clone());
        let prefix = format!("{prefix}.{client}");
        std::thread::spawn(move || work(connection, &prefix, &sender))
    };
    let clients: Vec<_> = (0..CLIENTS).map(start).collect();
    for _ in 0..grants {
        receiver.recv_timeout(LIMIT).expect("a grant");
    }
    sleep(kill_after);
    served.kill();
    clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
}

fn check(client: &mut TestClient, entry: &JournalEntry) {
    let Some(held) = &entry.held else { return };
    let shown = client.show(&held.id).unwrap();
    let after =
        shown.body["lease"]["expiresAt"].as_str().map(|_| shown.lease_expires_at_ms() - held.expires_at_ms);
    let is_right = match entry.outcome {
        // The time for people may have been set anew, forwards, by what the two clocks differ.
        LeaseOutcome::Live => {
            shown.lease_state() == "ACTIVE" && after.is_some_and(|after| (0..100).contains(&after))
        }
        LeaseOutcome::RenewedPerhaps => {
            shown.lease_state() == "ACTIVE" && after.is_some_and(|after| after >= 0)
        }
        LeaseOutcome::Released => shown.lease_state() != "ACTIVE",
        LeaseOutcome::Unanswered | LeaseOutcome::ReleasedPerhaps => true,
    };
    assert!(is_right, "{entry:?}: {shown:?}");
}

/// The same request gives the same lease and the same token; one without an answer gives one lease, and only one.
fn repeat(client: &mut TestClient, entry: &JournalEntry) -> Option<u64> {
    let mut again = || client.acquire(&entry.name, TTL_MS, Some(&entry.name)).unwrap().held_lease();
    let found = again();
    let expected = entry.held.clone().unwrap_or_else(&mut again);
    assert_eq!((&found.id, &found.token), (&expected.id, &expected.token), "{entry:?}");
    entry.held.is_none().then_some(found.fence)
}

/// A server that is killed while it starts.
fn kill_a_start(folder: &Path, kill_after: Duration) {
    let mut child = server(folder).spawn().unwrap();
    sleep(kill_after);
    child.kill().unwrap();
    child.wait().unwrap();
}

// S2-2: what was acknowledged is in the ledger, and the state is what that adds up to.
#[test]
fn server_killed_under_load_keeps_everything_it_acknowledged() {
    let (mut acknowledged, mut unanswered, mut checkpoints) = (0, 0, 0);
    for directory in 0..DIRECTORIES {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let mut all: Vec<JournalEntry> = Vec::new();
        let mut fences = BTreeSet::new();
        let mut served = ServerProcess::start(&mut server(folder.path()));
        for round in 0..ROUNDS {
            let number = directory * ROUNDS + round;
            // Spread over the microseconds, without a random source: the rest of chance is the machine's.
            let kill_after = Duration::from_micros(number.wrapping_mul(7_919) % 30_000);
            // However slow the disk is, there is something to lose.
            let grants = 1 + number.wrapping_mul(37) % 60;
            let journal = load(served, &data, &format!("db:{number}"), grants, kill_after);
            let highest = fences.last().copied().unwrap_or(0);
            for held in journal.iter().filter_map(|entry| entry.held.as_ref()) {
                assert!(held.fence > highest, "round {number}: {held:?} is not above {highest}");
                assert!(fences.insert(held.fence), "round {number}: {held:?} has a fence of another");
            }
            kill_a_start(folder.path(), kill_after);
            served = ServerProcess::start(&mut server(folder.path()));
            let mut client = served.client();
            journal.iter().for_each(|entry| check(&mut client, entry));
            let doubted = journal.iter().filter(|entry| entry.outcome == LeaseOutcome::Unanswered);
            let known = journal.iter().filter(|entry| entry.outcome == LeaseOutcome::Live);
            for entry in doubted.chain(known.take(20)) {
                fences.extend(repeat(&mut client, entry));
            }
            acknowledged += journal.iter().filter(|entry| entry.held.is_some()).count();
            unanswered += journal.iter().filter(|entry| entry.outcome == LeaseOutcome::Unanswered).count();
            all.extend(journal);
        }
        let mut client = served.client();
        all.iter().for_each(|entry| check(&mut client, entry));
        let names = std::fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().file_name());
        checkpoints += names.filter(|name| name.to_string_lossy().starts_with("checkpoint-")).count();
    }
    assert!(acknowledged > 2_000, "only {acknowledged} grants: the test tried nothing");
    assert!(unanswered > 50, "only {unanswered} requests were cut: it was not killed under load");
    assert!(checkpoints > 5, "only {checkpoints} checkpoints: the test tried less than it says");
}
