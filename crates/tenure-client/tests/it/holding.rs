//! A guard keeps its lease while it can, and knows when it cannot.

use std::time::Duration;

use tenure_client::{
    Client, Code, Error, HoldError, Lost, Revoke, Secret, Transfer, Wait, boot_microseconds,
};
use tenure_testkit::network::{Network, acquire};
use tenure_testkit::proxy::Fate;
use tenure_testkit::{eventually, in_time};

/// Lets so many milliseconds of the local clock pass.
async fn pass(milliseconds: u64) {
    let end = boot_microseconds() + milliseconds * 1_000;
    while boot_microseconds() < end {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lease_is_renewed_past_its_ttl_and_released_at_once() {
    let network = Network::new().await;
    let guard = network.client().hold(acquire("door:a", "alice", 1_000)).await.unwrap();
    let neighbour = network.neighbour();
    let end = boot_microseconds() + 5_000_000;
    while boot_microseconds() < end {
        assert_eq!(guard.check().unwrap(), guard.fence());
        let held = neighbour.acquire(&acquire("door:a", "bob", 1_000), None).await.err().expect("it is held");
        assert_eq!(held.code(), Some(Code::Held));
        pass(50).await;
    }
    let lease = guard.lease();
    assert!(lease.renewal_count >= 8 && guard.passport().is_some(), "{lease:?}");
    guard.release().await.unwrap();
    let next = neighbour.acquire(&acquire("door:a", "bob", 1_000), None).await.unwrap();
    assert_eq!(next.lease.fence, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn server_restart_does_not_lose_held_leases() {
    let mut network = Network::new().await;
    let guard = network.client().hold(acquire("door:a", "alice", 4_000)).await.unwrap();
    for _ in 0..2 {
        network.stop().await;
        pass(500).await;
        network.start_again().await;
        pass(4_500).await;
        guard.check().unwrap();
    }
    assert_eq!(network.leases_on("door:a").await.len(), 1);
    guard.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn disconnected_holder_loses_the_lease_before_the_next_grant() {
    let network = Network::new().await;
    for round in 0..3 {
        let resource = format!("door:{round}");
        let guard = network.client().hold(acquire(&resource, "alice", 1_500)).await.unwrap();
        let next = network.neighbour().hold(acquire(&resource, "bob", 1_500)).wait(Wait::Forever);
        let next = tokio::spawn(async move {
            let guard = next.await.unwrap();
            (boot_microseconds(), guard)
        });
        network.wait_for_waiters(&guard.lease().id, 1).await;
        network.proxy.cut(true);
        let lost = in_time(guard.lost()).await;
        let lost_at = boot_microseconds();
        assert_eq!((lost, guard.check()), (Lost::TimeUp, Err(Lost::TimeUp)));
        assert!(lost_at >= guard.believed_until());
        let (held_at, next) = in_time(next).await.unwrap();
        assert!(lost_at < held_at, "lost {lost_at}, held by the next {held_at}");
        assert!(next.fence() > guard.fence());
        network.proxy.cut(false);
        next.release().await.unwrap();
    }
}

/// The first connection suffers this; what comes after goes well.
async fn one_lease_in_spite_of(fates: &[Fate]) {
    let network = Network::new().await;
    network.proxy.next(fates);
    let guard = in_time(network.client().hold(acquire("door:a", "alice", 3_000))).await.unwrap();
    assert_eq!(guard.fence().0, 1, "{fates:?}");
    assert_eq!(network.leases_on("door:a").await.len(), 1, "{fates:?}");
    guard.release().await.unwrap();
    let next = network.neighbour().acquire(&acquire("door:a", "bob", 3_000), None).await.unwrap();
    assert_eq!(next.lease.fence, 2, "{fates:?}: nothing was ever granted besides");
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_response_leads_to_the_same_lease() {
    use Fate::{EndsBeforeTheAnswer, EndsBeforeTheRequest, EndsInTheAnswer, SwallowsAll, SwallowsTheAnswer};
    one_lease_in_spite_of(&[EndsBeforeTheRequest]).await;
    one_lease_in_spite_of(&[EndsBeforeTheAnswer]).await;
    one_lease_in_spite_of(&[EndsInTheAnswer]).await;
    one_lease_in_spite_of(&[SwallowsTheAnswer]).await;
    one_lease_in_spite_of(&[SwallowsAll]).await;
    one_lease_in_spite_of(&[EndsBeforeTheAnswer, EndsInTheAnswer, SwallowsTheAnswer, EndsBeforeTheRequest])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lease_is_renewed_on_an_unreliable_network() {
    let network = Network::new().await;
    let guard = network.client().hold(acquire("door:a", "alice", 2_000)).await.unwrap();
    let fates = [
        Fate::EndsBeforeTheAnswer,
        Fate::Passes,
        Fate::EndsInTheAnswer,
        Fate::SwallowsTheAnswer,
        Fate::Passes,
        Fate::EndsBeforeTheRequest,
    ];
    for _ in 0..6 {
        network.proxy.next(&fates);
        network.proxy.end_connections();
        pass(700).await;
        guard.check().unwrap();
    }
    assert_eq!(network.leases_on("door:a").await.len(), 1);
}

#[test]
fn stalled_process_finds_its_lease_lost_at_once() {
    let servers = tokio::runtime::Runtime::new().unwrap();
    let network = servers.block_on(Network::new());
    let client = network.client();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let guard = runtime.block_on(async { client.hold(acquire("door:a", "alice", 1_000)).await.unwrap() });
    assert!(guard.check().is_ok());
    // No task runs: as if the process was stopped.
    while boot_microseconds() < guard.believed_until() {
        std::hint::spin_loop();
    }
    assert_eq!(guard.check(), Err(Lost::TimeUp));
    runtime.block_on(async {
        assert_eq!(guard.lost().await, Lost::TimeUp);
        // Not even when everything runs again.
        pass(300).await;
        assert_eq!(guard.check(), Err(Lost::TimeUp));
    });
    servers.block_on(async {
        let next =
            in_time(network.neighbour().hold(acquire("door:a", "bob", 1_000)).wait(Wait::Forever)).await;
        assert!(next.unwrap().fence() > guard.fence());
    });
    drop(runtime);
    drop(network);
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_a_held_lease_releases_it() {
    let network = Network::new().await;
    let client = network.client();
    drop(client.hold(acquire("door:a", "alice", 60_000)).await.unwrap());
    in_time(client.settle()).await;
    let next = network.neighbour().acquire(&acquire("door:a", "bob", 1_000), None).await.unwrap();
    assert_eq!(next.lease.fence, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn release_is_retried_when_responses_are_lost() {
    let network = Network::new().await;
    let guard = network.client().hold(acquire("door:a", "alice", 60_000)).await.unwrap();
    network.proxy.end_connections();
    network.proxy.next(&[Fate::EndsBeforeTheRequest, Fate::EndsInTheAnswer, Fate::SwallowsAll]);
    in_time(guard.release_with(Some("ABORTED"))).await.unwrap();
    let leases = network.leases_on("door:a").await;
    assert_eq!(leases[0].end.as_deref(), Some("ABORTED"));
}

#[tokio::test(flavor = "multi_thread")]
async fn release_without_a_server_returns_an_error() {
    let mut network = Network::new().await;
    let guard = network.client().hold(acquire("door:a", "alice", 1_000)).await.unwrap();
    network.stop().await;
    let error = in_time(guard.release()).await.expect_err("nobody is there");
    assert!(matches!(error, Error::Unreachable { .. } | Error::Unknown { .. }), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn revoked_lease_is_lost_with_the_next_renewal() {
    let network = Network::new().await;
    let guard = network.client().hold(acquire("door:a", "alice", 1_500)).await.unwrap();
    let revoke = Revoke { reason: "the door is broken".into() };
    network.neighbour().revoke(&guard.lease().id, &revoke).await.unwrap();
    let before = guard.believed_until();
    let lost = in_time(guard.lost()).await;
    assert!(matches!(lost, Lost::Ended { .. }), "{lost:?}");
    assert!(boot_microseconds() < before, "long before its time");
    assert_eq!(guard.check(), Err(lost));
}

#[tokio::test(flavor = "multi_thread")]
async fn transferred_lease_is_kept_alive_by_its_new_holder() {
    let network = Network::new().await;
    let (client, neighbour) = (network.client(), network.neighbour());
    let first = client.hold(acquire("door:a", "alice", 1_000)).await.unwrap();
    let sent = boot_microseconds();
    let transfer = Transfer { token: first.token().expose().to_owned(), to: "bob".into() };
    let granted = neighbour.transfer(&first.lease().id, &transfer).await.unwrap();
    let second = neighbour.keep(granted, sent).await.unwrap();
    assert!(matches!(in_time(first.lost()).await, Lost::Ended { .. }));
    pass(2_500).await;
    assert_eq!(second.check().unwrap(), second.fence());
    assert_eq!(second.lease().holder, "bob");
    second.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn hold_all_keeps_every_lease_or_none() {
    let network = Network::new().await;
    let client = network.client();
    let wishes = |holder: &str| ["door:a", "door:b"].map(|door| acquire(door, holder, 1_000)).to_vec();
    let guard = client.hold_all(wishes("alice")).await.unwrap();
    let refused = client.hold_all(wishes("bob")).await.err().expect("they are held");
    assert!(matches!(refused, HoldError::Held(_)), "{refused:?}");
    pass(2_500).await;
    guard.check().unwrap();
    assert_eq!(guard.leases().iter().map(|lease| lease.fence).collect::<Vec<_>>(), [1, 2]);
    guard.release().await.unwrap();
    client.hold_all(wishes("bob")).await.unwrap().release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn deadline_changed_resolves_for_each_renewal() {
    let network = Network::new().await;
    let guard = network.client().hold(acquire("door:a", "alice", 1_000)).await.unwrap();
    let mut last = guard.believed_until();
    for _ in 0..3 {
        let next = in_time(guard.deadline_moved()).await;
        assert!(next > last);
        last = next;
    }
}

#[tokio::test]
async fn hold_without_a_server_fails_at_once() {
    let client = Client::builder().socket("/nowhere/tenure.sock").token(Secret::new("x")).build().unwrap();
    let holding = client.hold(acquire("door:a", "alice", 30_000)).wait(Wait::Forever);
    let error = in_time(holding).await.err().expect("nobody is there");
    assert!(matches!(error, HoldError::Failed(Error::Unreachable { .. })), "{error:?}");
    in_time(client.settle()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hold_returns_a_permanent_rejection_with_its_code() {
    let network = Network::new().await;
    let client = network.client();
    let error =
        client.hold(acquire("door:a", "alice", 1)).wait(Wait::Forever).await.err().expect("too short");
    let HoldError::Failed(Error::Problem(problem)) = error else { panic!("{error:?}") };
    assert_eq!(problem.code, Code::TtlOutOfRange);
    eventually(|| async { network.leases_on("door:a").await.is_empty() }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn remaining_leases_are_released_after_the_program_drops_them() {
    let network = Network::new().await;
    let client = network.client();
    let wishes = ["door:a", "door:b"].map(|resource| acquire(resource, "alice", 9_000)).to_vec();
    let guard = client.hold_all(wishes).await.unwrap();
    let (lost, other) = (guard.leases()[0].id.clone(), guard.leases()[1].id.clone());
    let neighbour = network.neighbour();
    neighbour.revoke(&lost, &Revoke { reason: "test".into() }).await.unwrap();
    assert_eq!(in_time(guard.lost()).await, Lost::Ended { how: "REVOKED".into() });
    pass(100).await;
    let state = async || neighbour.show(&other).await.unwrap().end;
    assert_eq!(state().await, None, "the program may still be at work");
    drop(guard);
    in_time(client.settle()).await;
    assert_eq!(state().await.as_deref(), Some("COMPLETED"));
}
