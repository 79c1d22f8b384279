//! A guard keeps its lease while it can, and knows when it cannot.

use std::time::Duration;

use tenure_client::{
    Client, Code, Error, HoldError, LeaseLost, RevocationRequest, Secret, TransferRequest, WaitLimit,
    boot_microseconds,
};
use tenure_testkit::proxied_server::{ProxiedServer, acquire_request};
use tenure_testkit::proxy::ConnectionFault;
use tenure_testkit::{eventually, with_timeout};

/// Lets so many milliseconds of the local clock pass.
async fn wait_on_boot_clock(milliseconds: u64) {
    let end = boot_microseconds() + milliseconds * 1_000;
    while boot_microseconds() < end {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lease_is_renewed_past_its_ttl_and_released_at_once() {
    let network = ProxiedServer::new().await;
    let guard = network.proxied_client().hold(acquire_request("door:a", "alice", 1_000)).await.unwrap();
    let neighbour = network.direct_client();
    let end = boot_microseconds() + 5_000_000;
    while boot_microseconds() < end {
        assert_eq!(guard.check().unwrap(), guard.fence());
        let held = neighbour
            .acquire(&acquire_request("door:a", "bob", 1_000), None)
            .await
            .err()
            .expect("it is held");
        assert_eq!(held.code(), Some(Code::Held));
        wait_on_boot_clock(50).await;
    }
    let lease = guard.lease();
    assert!(lease.renewal_count >= 8 && guard.passport().is_some(), "{lease:?}");
    guard.release().await.unwrap();
    let next = neighbour.acquire(&acquire_request("door:a", "bob", 1_000), None).await.unwrap();
    assert_eq!(next.lease.fence, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn server_restart_does_not_lose_held_leases() {
    let mut network = ProxiedServer::new().await;
    let guard = network.proxied_client().hold(acquire_request("door:a", "alice", 4_000)).await.unwrap();
    for _ in 0..2 {
        network.stop().await;
        wait_on_boot_clock(500).await;
        network.restart().await;
        wait_on_boot_clock(4_500).await;
        guard.check().unwrap();
    }
    assert_eq!(network.leases_on("door:a").await.len(), 1);
    guard.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn disconnected_holder_loses_the_lease_before_the_next_grant() {
    let network = ProxiedServer::new().await;
    for round in 0..3 {
        let resource = format!("door:{round}");
        let guard = network.proxied_client().hold(acquire_request(&resource, "alice", 1_500)).await.unwrap();
        let next =
            network.direct_client().hold(acquire_request(&resource, "bob", 1_500)).wait(WaitLimit::Forever);
        let next = tokio::spawn(async move {
            let guard = next.await.unwrap();
            (boot_microseconds(), guard)
        });
        network.wait_for_waiters(&guard.lease().id, 1).await;
        network.proxy.set_cut(true);
        let lost = with_timeout(guard.wait_until_lost()).await;
        let lost_at = boot_microseconds();
        assert_eq!((lost, guard.check()), (LeaseLost::DeadlinePassed, Err(LeaseLost::DeadlinePassed)));
        assert!(lost_at >= guard.deadline());
        let (held_at, next) = with_timeout(next).await.unwrap();
        assert!(lost_at < held_at, "lost {lost_at}, held by the next {held_at}");
        assert!(next.fence() > guard.fence());
        network.proxy.set_cut(false);
        next.release().await.unwrap();
    }
}

/// The first connection suffers this; what comes after goes well.
async fn assert_one_lease_despite(faults: &[ConnectionFault]) {
    let network = ProxiedServer::new().await;
    network.proxy.inject_faults(faults);
    let guard =
        with_timeout(network.proxied_client().hold(acquire_request("door:a", "alice", 3_000))).await.unwrap();
    assert_eq!(guard.fence().0, 1, "{faults:?}");
    assert_eq!(network.leases_on("door:a").await.len(), 1, "{faults:?}");
    guard.release().await.unwrap();
    let next = network.direct_client().acquire(&acquire_request("door:a", "bob", 3_000), None).await.unwrap();
    assert_eq!(next.lease.fence, 2, "{faults:?}: nothing was ever granted besides");
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_response_leads_to_the_same_lease() {
    use ConnectionFault::{
        CloseBeforeRequest, CloseBeforeResponse, CloseDuringResponse, DropEverything, DropResponse,
    };
    assert_one_lease_despite(&[CloseBeforeRequest]).await;
    assert_one_lease_despite(&[CloseBeforeResponse]).await;
    assert_one_lease_despite(&[CloseDuringResponse]).await;
    assert_one_lease_despite(&[DropResponse]).await;
    assert_one_lease_despite(&[DropEverything]).await;
    assert_one_lease_despite(&[CloseBeforeResponse, CloseDuringResponse, DropResponse, CloseBeforeRequest])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lease_is_renewed_on_an_unreliable_network() {
    let network = ProxiedServer::new().await;
    let guard = network.proxied_client().hold(acquire_request("door:a", "alice", 2_000)).await.unwrap();
    let fates = [
        ConnectionFault::CloseBeforeResponse,
        ConnectionFault::None,
        ConnectionFault::CloseDuringResponse,
        ConnectionFault::DropResponse,
        ConnectionFault::None,
        ConnectionFault::CloseBeforeRequest,
    ];
    for _ in 0..6 {
        network.proxy.inject_faults(&fates);
        network.proxy.close_connections();
        wait_on_boot_clock(700).await;
        guard.check().unwrap();
    }
    assert_eq!(network.leases_on("door:a").await.len(), 1);
}

#[test]
fn stalled_process_finds_its_lease_lost_at_once() {
    let servers = tokio::runtime::Runtime::new().unwrap();
    let network = servers.block_on(ProxiedServer::new());
    let client = network.proxied_client();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let guard =
        runtime.block_on(async { client.hold(acquire_request("door:a", "alice", 1_000)).await.unwrap() });
    assert!(guard.check().is_ok());
    // No task runs: as if the process was stopped.
    while boot_microseconds() < guard.deadline() {
        std::hint::spin_loop();
    }
    assert_eq!(guard.check(), Err(LeaseLost::DeadlinePassed));
    runtime.block_on(async {
        assert_eq!(guard.wait_until_lost().await, LeaseLost::DeadlinePassed);
        // Not even when everything runs again.
        wait_on_boot_clock(300).await;
        assert_eq!(guard.check(), Err(LeaseLost::DeadlinePassed));
    });
    servers.block_on(async {
        let next = with_timeout(
            network.direct_client().hold(acquire_request("door:a", "bob", 1_000)).wait(WaitLimit::Forever),
        )
        .await;
        assert!(next.unwrap().fence() > guard.fence());
    });
    drop(runtime);
    drop(network);
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_a_held_lease_releases_it() {
    let network = ProxiedServer::new().await;
    let client = network.proxied_client();
    drop(client.hold(acquire_request("door:a", "alice", 60_000)).await.unwrap());
    with_timeout(client.drain()).await;
    let next = network.direct_client().acquire(&acquire_request("door:a", "bob", 1_000), None).await.unwrap();
    assert_eq!(next.lease.fence, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn release_is_retried_when_responses_are_lost() {
    let network = ProxiedServer::new().await;
    let guard = network.proxied_client().hold(acquire_request("door:a", "alice", 60_000)).await.unwrap();
    network.proxy.close_connections();
    network.proxy.inject_faults(&[
        ConnectionFault::CloseBeforeRequest,
        ConnectionFault::CloseDuringResponse,
        ConnectionFault::DropEverything,
    ]);
    with_timeout(guard.release_with_reason(Some("ABORTED"))).await.unwrap();
    let leases = network.leases_on("door:a").await;
    assert_eq!(leases[0].end.as_deref(), Some("ABORTED"));
}

#[tokio::test(flavor = "multi_thread")]
async fn release_without_a_server_returns_an_error() {
    let mut network = ProxiedServer::new().await;
    let guard = network.proxied_client().hold(acquire_request("door:a", "alice", 1_000)).await.unwrap();
    network.stop().await;
    let error = with_timeout(guard.release()).await.expect_err("nobody is there");
    assert!(matches!(error, Error::Unreachable { .. } | Error::OutcomeUnknown { .. }), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn revoked_lease_is_lost_with_the_next_renewal() {
    let network = ProxiedServer::new().await;
    let guard = network.proxied_client().hold(acquire_request("door:a", "alice", 1_500)).await.unwrap();
    let revoke = RevocationRequest { reason: "the door is broken".into() };
    network.direct_client().revoke(&guard.lease().id, &revoke).await.unwrap();
    let before = guard.deadline();
    let lost = with_timeout(guard.wait_until_lost()).await;
    assert!(matches!(lost, LeaseLost::Ended { .. }), "{lost:?}");
    assert!(boot_microseconds() < before, "long before its time");
    assert_eq!(guard.check(), Err(lost));
}

#[tokio::test(flavor = "multi_thread")]
async fn transferred_lease_is_kept_alive_by_its_new_holder() {
    let network = ProxiedServer::new().await;
    let (client, neighbour) = (network.proxied_client(), network.direct_client());
    let first = client.hold(acquire_request("door:a", "alice", 1_000)).await.unwrap();
    let sent = boot_microseconds();
    let transfer = TransferRequest { token: first.token().expose().to_owned(), to: "bob".into() };
    let granted = neighbour.transfer(&first.lease().id, &transfer).await.unwrap();
    let second = neighbour.keep_alive(granted, sent).await.unwrap();
    assert!(matches!(with_timeout(first.wait_until_lost()).await, LeaseLost::Ended { .. }));
    wait_on_boot_clock(2_500).await;
    assert_eq!(second.check().unwrap(), second.fence());
    assert_eq!(second.lease().holder, "bob");
    second.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn hold_all_keeps_every_lease_or_none() {
    let network = ProxiedServer::new().await;
    let client = network.proxied_client();
    let requests =
        |holder: &str| ["door:a", "door:b"].map(|door| acquire_request(door, holder, 1_000)).to_vec();
    let guard = client.hold_all(requests("alice")).await.unwrap();
    let refused = client.hold_all(requests("bob")).await.err().expect("they are held");
    assert!(matches!(refused, HoldError::Held(_)), "{refused:?}");
    wait_on_boot_clock(2_500).await;
    guard.check().unwrap();
    assert_eq!(guard.leases().iter().map(|lease| lease.fence).collect::<Vec<_>>(), [1, 2]);
    guard.release().await.unwrap();
    client.hold_all(requests("bob")).await.unwrap().release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn deadline_changed_resolves_for_each_renewal() {
    let network = ProxiedServer::new().await;
    let guard = network.proxied_client().hold(acquire_request("door:a", "alice", 1_000)).await.unwrap();
    let mut last = guard.deadline();
    for _ in 0..3 {
        let next = with_timeout(guard.wait_for_new_deadline()).await;
        assert!(next > last);
        last = next;
    }
}

#[tokio::test]
async fn hold_without_a_server_fails_at_once() {
    let client = Client::builder().socket("/nowhere/tenure.sock").token(Secret::new("x")).build().unwrap();
    let holding = client.hold(acquire_request("door:a", "alice", 30_000)).wait(WaitLimit::Forever);
    let error = with_timeout(holding).await.err().expect("nobody is there");
    assert!(matches!(error, HoldError::Failed(Error::Unreachable { .. })), "{error:?}");
    with_timeout(client.drain()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hold_returns_a_permanent_rejection_with_its_code() {
    let network = ProxiedServer::new().await;
    let client = network.proxied_client();
    let error = client
        .hold(acquire_request("door:a", "alice", 1))
        .wait(WaitLimit::Forever)
        .await
        .err()
        .expect("too short");
    let HoldError::Failed(Error::Problem(problem)) = error else { panic!("{error:?}") };
    assert_eq!(problem.code, Code::TtlOutOfRange);
    eventually(|| async { network.leases_on("door:a").await.is_empty() }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn remaining_leases_are_released_after_the_program_drops_them() {
    let network = ProxiedServer::new().await;
    let client = network.proxied_client();
    let wishes = ["door:a", "door:b"].map(|resource| acquire_request(resource, "alice", 9_000)).to_vec();
    let guard = client.hold_all(wishes).await.unwrap();
    let (lost, other) = (guard.leases()[0].id.clone(), guard.leases()[1].id.clone());
    let neighbour = network.direct_client();
    neighbour.revoke(&lost, &RevocationRequest { reason: "test".into() }).await.unwrap();
    assert_eq!(with_timeout(guard.wait_until_lost()).await, LeaseLost::Ended { end: "REVOKED".into() });
    wait_on_boot_clock(100).await;
    let state = async || neighbour.show(&other).await.unwrap().end;
    assert_eq!(state().await, None, "the program may still be at work");
    drop(guard);
    with_timeout(client.drain()).await;
    assert_eq!(state().await.as_deref(), Some("COMPLETED"));
}
