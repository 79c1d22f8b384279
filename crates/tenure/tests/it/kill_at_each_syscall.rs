//! The real server, killed before each system call with which its writer changes the disk.

use std::path::Path;
use std::process::Command;

use tenure_testkit::{AcknowledgedLease, ServerProcess, serve_command};

use crate::fault_injection::Tracer;

/// How the writer changes the disk, and at how many of these calls it is killed. A batch is two writes and a sync; the
/// rest is done when it goes on to the next file.
const CALLS: &[(&str, u32)] =
    &[("pwrite64", 20), ("fdatasync", 12), ("openat", 4), ("?rename,?renameat,?renameat2", 6), ("fsync", 4)];

const TTL_MS: u64 = 600_000;

/// Files so small that the writer goes on to the next one every few leases.
fn server(folder: &Path) -> Command {
    let mut command = serve_command(folder);
    command.env("TENURE_LEDGER_SEGMENT_SIZE", "4096").env("TENURE_LEDGER_RESERVE", "8192");
    command
}

fn name_of(calls: &str, nth: u32, number: u32) -> String {
    format!("db:{}.{nth}.{number}", calls.trim_start_matches('?').split(',').next().unwrap())
}

#[test]
fn server_killed_at_any_syscall_keeps_everything_it_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let mut all: Vec<(String, AcknowledgedLease)> = Vec::new();
    let mut served = ServerProcess::start(&mut server(folder.path()));
    let moments = CALLS.iter().flat_map(|(calls, count)| (1..=*count).map(move |nth| (*calls, nth)));
    for (calls, nth) in moments {
        let mut client = served.client();
        let tracer = Tracer::attach_to_writer(&served, &format!("{calls}:signal=KILL:when={nth}"));
        let before = all.len();
        let cut = (0..100).find(|number| {
            let name = name_of(calls, nth, *number);
            let Ok(answer) = client.acquire(&name, TTL_MS, Some(&name)) else { return true };
            all.push((name, answer.held_lease()));
            false
        });
        let cut =
            name_of(calls, nth, cut.expect("the writer's calls are counted, and one of them is the last"));
        assert_eq!(served.wait_for_exit().0, None, "{calls} {nth}: it was killed");
        drop(tracer);

        served = ServerProcess::start(&mut server(folder.path()));
        let mut client = served.client();
        for (name, held) in &all {
            let shown = client.show(&held.id).unwrap();
            assert_eq!(shown.lease_state(), "ACTIVE", "{calls} {nth}: {name} is lost: {shown:?}");
            assert!(
                (0..100).contains(&(shown.lease_expires_at_ms() - held.expires_at_ms)),
                "{calls} {nth}: {held:?}: {shown:?}"
            );
        }
        for (name, held) in &all[before..] {
            let again = client.acquire(name, TTL_MS, Some(name)).unwrap().held_lease();
            assert_eq!((&again.id, &again.token), (&held.id, &held.token), "{calls} {nth}");
        }
        // Nobody was told of this one: it is there or not, and asking again settles it.
        let settled = client.acquire(&cut, TTL_MS, Some(&cut)).unwrap().held_lease();
        assert!(
            all.iter().all(|(_, held)| held.fence < settled.fence),
            "{calls} {nth}: {settled:?} is not above all"
        );
        all.push((cut, settled));
    }
    assert!(all.len() > 100, "only {} leases: the test tried nothing", all.len());
}
