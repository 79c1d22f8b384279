//! An agent that is cut off pauses before anybody else can have what it holds, and has it again only by asking.

use std::time::Duration;

use tenure_client::agent::{Doubt, Intent};
use tenure_client::{Lost, Wait, boot_microseconds};
use tenure_testkit::network::Network;
use tenure_testkit::{eventually, in_time};

use crate::agents::{agent, is_held, mutates};

// S3-27, S3-30, S3-31, S3-32
#[tokio::test(flavor = "multi_thread")]
async fn disconnected_agent_pauses_before_its_deadline_and_stays_lost() {
    let network = Network::new().await;
    let claim = mutates(&agent(&network.client(), "alice", 2_000).priority(2_000), "FILE:a").await;
    let other = agent(&network.neighbour(), "bob", 30_000).priority(1_000);
    let next = tokio::spawn(async move {
        let next = other.declare([Intent::mutates("FILE:a")]).wait(Wait::Forever).await.unwrap();
        (boot_microseconds(), next)
    });
    let neighbour = network.neighbour();
    eventually(|| async { neighbour.agent("bob").await.is_ok_and(|bob| !bob.waits.is_empty()) }).await;
    network.proxy.cut(true);
    assert_eq!(in_time(claim.paused()).await, Doubt::Paused);
    assert!(boot_microseconds() < claim.believed_until(), "it pauses while the lease still lives");
    assert_eq!(in_time(claim.resumed()).await, Err(Lost::TimeUp));
    let lost_at = boot_microseconds();
    let (held_at, next) = in_time(next).await.unwrap();
    assert!(lost_at < held_at, "lost {lost_at}, held by the next {held_at}");
    assert!(next.fence("FILE:a") > claim.fence("FILE:a"));

    // Whatever comes through now comes too late.
    network.proxy.cut(false);
    let end = boot_microseconds() + 1_000_000;
    while boot_microseconds() < end {
        assert_eq!(claim.check(), Err(Doubt::Lost(Lost::TimeUp)));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(next.is_sure(), "and takes nothing away from the next");
}

// S3-17, S3-30, S3-31
#[tokio::test(flavor = "multi_thread")]
async fn manifest_lost_during_an_outage_is_reacquired_with_the_same_priority() {
    let mut network = Network::new().await;
    let claim = mutates(&agent(&network.client(), "alice", 1_500), "FILE:a").await;
    let before = claim.digest("EXECUTING").identity.priority_timestamp;
    network.stop().await;
    assert_eq!(in_time(claim.paused()).await, Doubt::Paused);
    assert_eq!(in_time(claim.resumed()).await, Err(Lost::TimeUp));
    network.start_again().await;
    let neighbour = network.neighbour();
    eventually(|| async { !is_held(&neighbour, "FILE:a").await }).await;
    assert!(!claim.is_sure());
    let fence = claim.fence("FILE:a");
    network.proxy.asked();
    let claim = in_time(claim.reacquire()).await.unwrap();
    assert_eq!(network.proxy.asked()[..2], ["POST /v1/leases/reconcile", "POST /v1/manifest"]);
    assert!(claim.is_sure() && !claim.is_unbroken() && claim.fence("FILE:a") > fence);
    assert_eq!(claim.digest("EXECUTING").identity.priority_timestamp, before);
    claim.release().await.unwrap();
    assert!(!is_held(&neighbour, "FILE:a").await);
}

// S3-30, S3-31
#[tokio::test(flavor = "multi_thread")]
async fn agent_resumes_when_the_server_returns_before_the_deadline() {
    let mut network = Network::new().await;
    let claim = mutates(&agent(&network.client(), "alice", 9_000), "FILE:a").await;
    network.stop().await;
    assert_eq!(in_time(claim.paused()).await, Doubt::Paused);
    assert!(claim.touch([Intent::mutates("FILE:a")]).await.is_err(), "it is not even asked");
    network.start_again().await;
    assert_eq!(in_time(claim.resumed()).await, Ok(()));
    assert!(claim.is_sure());
    let claim = in_time(claim.reacquire()).await.unwrap();
    assert!(claim.is_unbroken(), "nobody else can have had it");
}
