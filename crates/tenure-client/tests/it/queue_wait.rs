//! Waiting for a lease: in order, over lost connections and restarts; and whoever gives up leaves nothing behind.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure_client::{Client, HeldLease, HoldError, QueuePosition, WaitLimit};
use tenure_testkit::proxied_server::{ProxiedServer, acquire_request};
use tenure_testkit::proxy::ConnectionFault;
use tenure_testkit::{eventually, with_timeout};
use tokio::task::JoinHandle;

fn start_wait(client: &Client, holder: &str, wait: WaitLimit) -> JoinHandle<Result<HeldLease, HoldError>> {
    let holding = client.hold(acquire_request("door:a", holder, 3_000)).wait(wait);
    tokio::spawn(async move { holding.await })
}

/// Held by alice, with bob and carol waiting in this order.
async fn queue(
    network: &ProxiedServer,
    client: &Client,
) -> (HeldLease, Vec<JoinHandle<Result<HeldLease, HoldError>>>) {
    let guard = network.direct_client().hold(acquire_request("door:a", "alice", 30_000)).await.unwrap();
    let mut waiting = Vec::new();
    for (number, holder) in ["bob", "carol"].iter().enumerate() {
        waiting.push(start_wait(client, holder, WaitLimit::Forever));
        network.wait_for_waiters(&guard.lease().id, number + 1).await;
    }
    (guard, waiting)
}

/// Each is served after the other, and nobody else is.
async fn assert_served_in_order(first: HeldLease, waiting: Vec<JoinHandle<Result<HeldLease, HoldError>>>) {
    let mut holder = first;
    for (waiting, name) in waiting.into_iter().zip(["bob", "carol"]) {
        let fence = holder.fence();
        holder.release().await.unwrap();
        holder = with_timeout(waiting).await.unwrap().unwrap();
        assert_eq!((holder.lease().holder.as_str(), holder.fence().0), (name, fence.0 + 1));
        holder.check().unwrap();
    }
    holder.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn waiters_are_served_in_order() {
    let network = ProxiedServer::new().await;
    let (guard, waiting) = queue(&network, &network.proxied_client()).await;
    assert_served_in_order(guard, waiting).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_position_survives_lost_connections() {
    let network = ProxiedServer::new().await;
    let (guard, waiting) = queue(&network, &network.proxied_client()).await;
    for _ in 0..3 {
        network.proxy.inject_faults(&[
            ConnectionFault::CloseBeforeRequest,
            ConnectionFault::None,
            ConnectionFault::DropEverything,
        ]);
        network.proxy.close_connections();
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    network.wait_for_waiters(&guard.lease().id, 2).await;
    assert_served_in_order(guard, waiting).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_position_survives_a_server_restart() {
    let mut network = ProxiedServer::new().await;
    let (guard, waiting) = queue(&network, &network.proxied_client()).await;
    network.stop().await;
    tokio::time::sleep(Duration::from_millis(700)).await;
    network.restart().await;
    assert_served_in_order(guard, waiting).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn grant_with_a_lost_response_is_found_before_it_expires() {
    let network = ProxiedServer::new().await;
    let client = network.proxied_client();
    let guard = network.direct_client().hold(acquire_request("door:a", "alice", 30_000)).await.unwrap();
    network.proxy.inject_faults(&[ConnectionFault::DropResponse]);
    let waiting = start_wait(&client, "bob", WaitLimit::Forever);
    network.wait_for_waiters(&guard.lease().id, 1).await;
    guard.release().await.unwrap();
    let guard = with_timeout(waiting).await.unwrap().unwrap();
    assert_eq!(guard.fence().0, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn wait_timeout_names_the_holder() {
    let network = ProxiedServer::new().await;
    let client = network.proxied_client();
    let _guard = network.direct_client().hold(acquire_request("door:a", "alice", 30_000)).await.unwrap();
    let error = with_timeout(start_wait(&client, "bob", WaitLimit::For(Duration::from_millis(600))))
        .await
        .unwrap()
        .err()
        .unwrap();
    let HoldError::Held(problem) = error else { panic!("{error:?}") };
    assert_eq!(problem.holder.as_deref(), Some("alice"));
    assert!(problem.waited_ms.is_some_and(|waited| waited >= 600), "{problem:?}");
    with_timeout(client.drain()).await;
    assert_eq!(network.leases_on("door:a").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn holder_is_recalled_when_another_client_is_queued() {
    let network = ProxiedServer::new().await;
    let guard = network.proxied_client().hold(acquire_request("door:a", "alice", 1_500)).await.unwrap();
    let waiting = start_wait(&network.direct_client(), "bob", WaitLimit::Forever);
    let waiters = with_timeout(guard.wait_until_recalled()).await;
    assert_eq!((waiters.by.as_str(), waiters.waiting), ("bob", 1));
    guard.release().await.unwrap();
    with_timeout(waiting).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_wait_leaves_no_ticket_and_no_lease() {
    let network = ProxiedServer::new().await;
    let client = network.proxied_client();
    let guard = network.direct_client().hold(acquire_request("door:a", "alice", 30_000)).await.unwrap();
    for round in 0..4 {
        let waiting = start_wait(&client, "bob", WaitLimit::Forever);
        network.wait_for_waiters(&guard.lease().id, 1).await;
        if round > 1 {
            // Also when the connection that waited is gone.
            network.proxy.close_connections();
        }
        waiting.abort();
        with_timeout(client.drain()).await;
        network.wait_for_waiters(&guard.lease().id, 0).await;
    }
    guard.release().await.unwrap();
    assert_eq!(network.leases_on("door:a").await.len(), 1, "nobody was served who did not want it");
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_pool_wait_leaves_no_ticket_and_no_lease() {
    let network = ProxiedServer::new().await;
    let client = network.proxied_client();
    let mut guards = Vec::new();
    for _ in 0..2 {
        guards.push(network.direct_client().hold(acquire_request("tuner:*", "alice", 30_000)).await.unwrap());
    }
    let holding = client.hold(acquire_request("tuner:*", "bob", 3_000)).wait(WaitLimit::Forever);
    let waiting = tokio::spawn(async move { holding.await });
    network.wait_for_waiters(&guards[0].lease().id, 1).await;
    waiting.abort();
    with_timeout(client.drain()).await;
    for guard in guards {
        network.wait_for_waiters(&guard.lease().id, 0).await;
        let resource = guard.lease().resource;
        guard.release().await.unwrap();
        assert_eq!(network.leases_on(&resource).await.len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wait_cancelled_during_its_grant_releases_the_lease() {
    let network = ProxiedServer::new().await;
    let client = network.proxied_client();
    for round in 0..8 {
        let guard = network.direct_client().hold(acquire_request("door:a", "alice", 30_000)).await.unwrap();
        let waiting = start_wait(&client, "bob", WaitLimit::Forever);
        network.wait_for_waiters(&guard.lease().id, 1).await;
        let release = tokio::spawn(guard.release());
        tokio::time::sleep(Duration::from_micros(300 * round)).await;
        waiting.abort();
        let served = waiting.await;
        release.await.unwrap().unwrap();
        drop(served);
        with_timeout(client.drain()).await;
        eventually(|| async {
            network.leases_on("door:a").await.iter().all(|lease| lease.ended_at.is_some())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_one_of_two_identical_requests_keeps_the_other() {
    let network = ProxiedServer::new().await;
    let client = network.proxied_client();
    let guard = network.direct_client().hold(acquire_request("door:a", "alice", 30_000)).await.unwrap();
    let (first, second) =
        (start_wait(&client, "bob", WaitLimit::Forever), start_wait(&client, "bob", WaitLimit::Forever));
    network.wait_for_waiters(&guard.lease().id, 2).await;
    first.abort();
    assert!(first.await.is_err());
    guard.release().await.unwrap();
    let guard = with_timeout(second).await.unwrap().unwrap();
    guard.check().unwrap();
    guard.release().await.unwrap();
    with_timeout(client.drain()).await;
    assert!(network.leases_on("door:a").await.iter().all(|lease| lease.ended_at.is_some()));
}

#[tokio::test(flavor = "multi_thread")]
async fn waiter_is_notified_of_its_queue_position() {
    let network = ProxiedServer::new().await;
    let guard = network.direct_client().hold(acquire_request("door:a", "alice", 30_000)).await.unwrap();
    let places: Arc<Mutex<Vec<QueuePosition>>> = Arc::default();
    let reported = places.clone();
    let holding =
        network.proxied_client().hold(acquire_request("door:a", "bob", 3_000)).wait(WaitLimit::Forever);
    let holding = holding.on_queue(move |place| reported.lock().unwrap().push(place));
    let waiting = tokio::spawn(async move { holding.await });
    eventually(|| async { !places.lock().unwrap().is_empty() }).await;
    let place = places.lock().unwrap()[0].clone();
    assert_eq!((place.position, place.waiting, place.held[0].holder.as_str()), (1, 1, "alice"));
    guard.release().await.unwrap();
    with_timeout(waiting).await.unwrap().unwrap();
}
