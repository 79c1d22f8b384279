//! Processes that nobody watches any more: their worker is dead, and so is the watchdog that was to end them.
//!
//! Whoever kills both leaves their pipeline behind, and by the time another worker comes its session may be over and its
//! leases free. So who begins to work looks for such processes first, whatever the server still knows of them.

use std::collections::BTreeSet;

use super::identity::WorkerIdentity;
use super::orphan_processes::has_watchdog_name;
use super::process_snapshot::ProcessSnapshot;

/// Under this name a process finds the worker that started it.
pub const VARIABLE: &str = "TENURE_WORKER";

/// The sessions of such processes on this machine, as far as they are of the same server: `lease` is one of its leases.
pub fn unsupervised_sessions(
    identity: &WorkerIdentity,
    lease: &str,
    processes: &[ProcessSnapshot],
) -> Vec<String> {
    // All leases of one ledger begin alike.
    let ledger = |lease: &str| lease.rsplit_once('-').map(|(ledger, _)| ledger.to_owned());
    let own = ledger(lease);
    let is_of_server = |process: &&ProcessSnapshot| {
        let lease = process.variable("TENURE_LEASE");
        own.is_some() && lease.and_then(|lease| ledger(&lease)) == own
    };
    let of_session = |process: &ProcessSnapshot| process.variable("TENURE_SESSION");
    let live = || processes.iter().filter(|process| !process.is_dead);
    let watched: BTreeSet<String> =
        live().filter(|process| has_watchdog_name(process)).filter_map(of_session).collect();
    let has_dead_worker = |process: &&ProcessSnapshot| {
        let worker = process.variable(VARIABLE).and_then(|worker| WorkerIdentity::parse(&worker));
        worker.is_some_and(|worker| identity.is_known_dead(&worker))
    };
    let abandoned: BTreeSet<String> =
        live().filter(is_of_server).filter(has_dead_worker).filter_map(of_session).collect();
    abandoned.difference(&watched).cloned().collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn process_without_worker_and_watchdog_is_found() {
        let own = WorkerIdentity::current().unwrap();
        // A number that somebody else has by now: us.
        let dead = own.to_string().rsplit_once(':').map(|(before, _)| format!("{before}:1")).unwrap();
        let start = |session: &str, worker: &str, lease: &str| {
            let mut command = Command::new("sleep");
            command.arg("60").env("TENURE_SESSION", session).env(VARIABLE, worker).env("TENURE_LEASE", lease);
            command.spawn().unwrap()
        };
        let name = |what: &str| format!("{what}-{}", std::process::id());
        let mut orphaned = start(&name("left"), &dead, "0000abcd-17");
        let mut kept = start(&name("kept"), &own.to_string(), "0000abcd-18");
        let mut foreign = start(&name("foreign"), &dead, "0000abce-17");
        let found = || unsupervised_sessions(&own, "0000abcd-1", &ProcessSnapshot::all().unwrap());
        // While one program takes the place of another, the system shows no environment.
        assert!((0..10_000).any(|_| found().contains(&name("left"))));
        assert!(!found().contains(&name("kept")), "its worker lives");
        assert!(!found().contains(&name("foreign")), "it is of another server");
        for child in [&mut orphaned, &mut kept, &mut foreign] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert!(!found().contains(&name("left")));
    }
}
