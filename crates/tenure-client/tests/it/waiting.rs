//! Waiting for a lease: in order, over lost connections and restarts; and whoever gives up leaves nothing behind.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure_client::{Client, Guard, HoldError, Place, Wait};
use tenure_testkit::network::{Network, acquire};
use tenure_testkit::proxy::Fate;
use tenure_testkit::{eventually, in_time};
use tokio::task::JoinHandle;

fn wait(client: &Client, holder: &str, wait: Wait) -> JoinHandle<Result<Guard, HoldError>> {
    let holding = client.hold(acquire("door:a", holder, 3_000)).wait(wait);
    tokio::spawn(async move { holding.await })
}

/// Held by alice, with bob and carol waiting in this order.
async fn queue(network: &Network, client: &Client) -> (Guard, Vec<JoinHandle<Result<Guard, HoldError>>>) {
    let guard = network.neighbour().hold(acquire("door:a", "alice", 30_000)).await.unwrap();
    let mut waiting = Vec::new();
    for (number, holder) in ["bob", "carol"].iter().enumerate() {
        waiting.push(wait(client, holder, Wait::Forever));
        network.wait_for_waiters(&guard.lease().id, number + 1).await;
    }
    (guard, waiting)
}

/// Each is served after the other, and nobody else is.
async fn served_in_order(first: Guard, waiting: Vec<JoinHandle<Result<Guard, HoldError>>>) {
    let mut holder = first;
    for (waiting, name) in waiting.into_iter().zip(["bob", "carol"]) {
        let fence = holder.fence();
        holder.release().await.unwrap();
        holder = in_time(waiting).await.unwrap().unwrap();
        assert_eq!((holder.lease().holder.as_str(), holder.fence().0), (name, fence.0 + 1));
        holder.check().unwrap();
    }
    holder.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn waiters_are_served_in_order() {
    let network = Network::new().await;
    let (guard, waiting) = queue(&network, &network.client()).await;
    served_in_order(guard, waiting).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_position_survives_lost_connections() {
    let network = Network::new().await;
    let (guard, waiting) = queue(&network, &network.client()).await;
    for _ in 0..3 {
        network.proxy.next(&[Fate::EndsBeforeTheRequest, Fate::Passes, Fate::SwallowsAll]);
        network.proxy.end_connections();
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    network.wait_for_waiters(&guard.lease().id, 2).await;
    served_in_order(guard, waiting).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_position_survives_a_server_restart() {
    let mut network = Network::new().await;
    let (guard, waiting) = queue(&network, &network.client()).await;
    network.stop().await;
    tokio::time::sleep(Duration::from_millis(700)).await;
    network.start_again().await;
    served_in_order(guard, waiting).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn grant_with_a_lost_response_is_found_before_it_expires() {
    let network = Network::new().await;
    let client = network.client();
    let guard = network.neighbour().hold(acquire("door:a", "alice", 30_000)).await.unwrap();
    network.proxy.next(&[Fate::SwallowsTheAnswer]);
    let waiting = wait(&client, "bob", Wait::Forever);
    network.wait_for_waiters(&guard.lease().id, 1).await;
    guard.release().await.unwrap();
    let guard = in_time(waiting).await.unwrap().unwrap();
    assert_eq!(guard.fence().0, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn wait_timeout_names_the_holder() {
    let network = Network::new().await;
    let client = network.client();
    let _guard = network.neighbour().hold(acquire("door:a", "alice", 30_000)).await.unwrap();
    let error =
        in_time(wait(&client, "bob", Wait::For(Duration::from_millis(600)))).await.unwrap().err().unwrap();
    let HoldError::Held(problem) = error else { panic!("{error:?}") };
    assert_eq!(problem.holder.as_deref(), Some("alice"));
    assert!(problem.waited_ms.is_some_and(|waited| waited >= 600), "{problem:?}");
    in_time(client.settle()).await;
    assert_eq!(network.leases_on("door:a").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn holder_is_recalled_when_another_client_is_queued() {
    let network = Network::new().await;
    let guard = network.client().hold(acquire("door:a", "alice", 1_500)).await.unwrap();
    let waiting = wait(&network.neighbour(), "bob", Wait::Forever);
    let recall = in_time(guard.recalled()).await;
    assert_eq!((recall.by.as_str(), recall.waiting), ("bob", 1));
    guard.release().await.unwrap();
    in_time(waiting).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_wait_leaves_no_ticket_and_no_lease() {
    let network = Network::new().await;
    let client = network.client();
    let guard = network.neighbour().hold(acquire("door:a", "alice", 30_000)).await.unwrap();
    for round in 0..4 {
        let waiting = wait(&client, "bob", Wait::Forever);
        network.wait_for_waiters(&guard.lease().id, 1).await;
        if round > 1 {
            // Also when the connection that waited is gone.
            network.proxy.end_connections();
        }
        waiting.abort();
        in_time(client.settle()).await;
        network.wait_for_waiters(&guard.lease().id, 0).await;
    }
    guard.release().await.unwrap();
    assert_eq!(network.leases_on("door:a").await.len(), 1, "nobody was served who did not want it");
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_pool_wait_leaves_no_ticket_and_no_lease() {
    let network = Network::new().await;
    let client = network.client();
    let mut guards = Vec::new();
    for _ in 0..2 {
        guards.push(network.neighbour().hold(acquire("tuner:*", "alice", 30_000)).await.unwrap());
    }
    let holding = client.hold(acquire("tuner:*", "bob", 3_000)).wait(Wait::Forever);
    let waiting = tokio::spawn(async move { holding.await });
    network.wait_for_waiters(&guards[0].lease().id, 1).await;
    waiting.abort();
    in_time(client.settle()).await;
    for guard in guards {
        network.wait_for_waiters(&guard.lease().id, 0).await;
        let resource = guard.lease().resource;
        guard.release().await.unwrap();
        assert_eq!(network.leases_on(&resource).await.len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wait_cancelled_during_its_grant_releases_the_lease() {
    let network = Network::new().await;
    let client = network.client();
    for round in 0..8 {
        let guard = network.neighbour().hold(acquire("door:a", "alice", 30_000)).await.unwrap();
        let waiting = wait(&client, "bob", Wait::Forever);
        network.wait_for_waiters(&guard.lease().id, 1).await;
        let release = tokio::spawn(guard.release());
        tokio::time::sleep(Duration::from_micros(300 * round)).await;
        waiting.abort();
        let served = waiting.await;
        release.await.unwrap().unwrap();
        drop(served);
        in_time(client.settle()).await;
        eventually(|| async {
            network.leases_on("door:a").await.iter().all(|lease| lease.ended_at.is_some())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_one_of_two_identical_requests_keeps_the_other() {
    let network = Network::new().await;
    let client = network.client();
    let guard = network.neighbour().hold(acquire("door:a", "alice", 30_000)).await.unwrap();
    let (first, second) = (wait(&client, "bob", Wait::Forever), wait(&client, "bob", Wait::Forever));
    network.wait_for_waiters(&guard.lease().id, 2).await;
    first.abort();
    assert!(first.await.is_err());
    guard.release().await.unwrap();
    let guard = in_time(second).await.unwrap().unwrap();
    guard.check().unwrap();
    guard.release().await.unwrap();
    in_time(client.settle()).await;
    assert!(network.leases_on("door:a").await.iter().all(|lease| lease.ended_at.is_some()));
}

#[tokio::test(flavor = "multi_thread")]
async fn waiter_is_notified_of_its_queue_position() {
    let network = Network::new().await;
    let guard = network.neighbour().hold(acquire("door:a", "alice", 30_000)).await.unwrap();
    let places: Arc<Mutex<Vec<Place>>> = Arc::default();
    let told = places.clone();
    let holding = network.client().hold(acquire("door:a", "bob", 3_000)).wait(Wait::Forever);
    let holding = holding.on_queue(move |place| told.lock().unwrap().push(place));
    let waiting = tokio::spawn(async move { holding.await });
    eventually(|| async { !places.lock().unwrap().is_empty() }).await;
    let place = places.lock().unwrap()[0].clone();
    assert_eq!((place.position, place.waiting, place.held[0].holder.as_str()), (1, 1, "alice"));
    guard.release().await.unwrap();
    in_time(waiting).await.unwrap().unwrap();
}
