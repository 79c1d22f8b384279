//! A disk that fails to sync: nobody knows what it holds, so nobody is told anything, and the process ends.

use tenure_testkit::{AcknowledgedLease, ServerProcess, TestClient, serve_command};

use crate::fault_injection::Tracer;

/// So long that no mark of the time is written meanwhile: the write that fails is a grant.
const TTL_MS: u64 = 86_400_000;

#[test]
fn failed_sync_is_never_acknowledged_and_ends_the_process() {
    for nth in [1, 2, 7] {
        fails_at(nth);
    }
}

fn fails_at(nth: u32) {
    let folder = tempfile::tempdir().unwrap();
    let served = ServerProcess::start(&mut serve_command(folder.path()));
    let mut client = served.client();
    let before = client.acquire("db:before", TTL_MS, Some("before")).unwrap().held_lease();
    let _tracer = Tracer::attach_to_writer(&served, &format!("fdatasync:error=EIO:when={nth}"));

    let mut acknowledged = vec![before.clone()];
    let failed = (0..20).find(|number| {
        let name = format!("db:{number}");
        match client.acquire(&name, TTL_MS, Some(&name)) {
            Ok(answer) if answer.status == 201 => {
                acknowledged.push(answer.held_lease());
                false
            }
            Ok(answer) => {
                assert_eq!(answer.status_and_code(), (503, "OUTCOME_UNKNOWN"), "{answer:?}");
                true
            }
            // It ended before it could say so.
            Err(_) => true,
        }
    });
    let failed = failed.expect("a sync must fail");
    assert!(acknowledged.len() <= nth as usize, "{} writes were acknowledged", acknowledged.len() - 1);

    let (code, _, errors) = served.wait_for_exit();
    assert_eq!(code, Some(74), "{errors}");
    assert!(errors.contains("the ledger could not be written") && errors.contains("start again"), "{errors}");
    assert!(errors.contains("Input/output error"), "the reason is named: {errors}");

    let served = ServerProcess::start(&mut serve_command(folder.path()));
    let mut client = served.client();
    for lease in &acknowledged {
        is_there(&mut client, lease);
    }
    // Whether the failed one was written or not: asking again with its key gives one lease, and only one.
    let name = format!("db:{failed}");
    let again = client.acquire(&name, TTL_MS, Some(&name)).unwrap().held_lease();
    assert_eq!(client.acquire(&name, TTL_MS, Some(&name)).unwrap().held_lease().id, again.id);
    assert!(again.fence > acknowledged.last().unwrap().fence);
    let repeated = client.acquire("db:before", TTL_MS, Some("before")).unwrap().held_lease();
    assert_eq!((repeated.id, repeated.token), (before.id, before.token));
}

fn is_there(client: &mut TestClient, lease: &AcknowledgedLease) {
    let shown = client.show(&lease.id).unwrap();
    assert_eq!(shown.lease_state(), "ACTIVE", "{lease:?}: {shown:?}");
    assert!(
        (lease.expires_at_ms..lease.expires_at_ms + 100).contains(&shown.lease_expires_at_ms()),
        "{lease:?}: {shown:?}"
    );
}
