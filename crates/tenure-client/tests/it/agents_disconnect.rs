//! An agent that is cut off pauses before anybody else can have what it holds, and has it again only by asking.

use std::time::Duration;

use tenure_client::agent::{AgentIntent, CheckError};
use tenure_client::{LeaseLost, WaitLimit, boot_microseconds};
use tenure_testkit::proxied_server::ProxiedServer;
use tenure_testkit::{eventually, with_timeout};

use crate::agents::{agent, declare_mutation, is_held};

// S3-27, S3-30, S3-31, S3-32
#[tokio::test(flavor = "multi_thread")]
async fn disconnected_agent_pauses_before_its_deadline_and_stays_lost() {
    let network = ProxiedServer::new().await;
    let claim =
        declare_mutation(&agent(&network.proxied_client(), "alice", 2_000).priority(2_000), "FILE:a").await;
    let other = agent(&network.direct_client(), "bob", 30_000).priority(1_000);
    let next = tokio::spawn(async move {
        let next = other.declare([AgentIntent::mutates("FILE:a")]).wait(WaitLimit::Forever).await.unwrap();
        (boot_microseconds(), next)
    });
    let neighbour = network.direct_client();
    eventually(|| async { neighbour.agent("bob").await.is_ok_and(|bob| !bob.waits.is_empty()) }).await;
    network.proxy.set_cut(true);
    assert_eq!(with_timeout(claim.wait_until_paused()).await, CheckError::Paused);
    assert!(boot_microseconds() < claim.deadline(), "it pauses while the lease still lives");
    assert_eq!(with_timeout(claim.wait_until_resumed()).await, Err(LeaseLost::DeadlinePassed));
    let lost_at = boot_microseconds();
    let (held_at, next) = with_timeout(next).await.unwrap();
    assert!(lost_at < held_at, "lost {lost_at}, held by the next {held_at}");
    assert!(next.fence("FILE:a") > claim.fence("FILE:a"));

    // Whatever comes through now comes too late.
    network.proxy.set_cut(false);
    let end = boot_microseconds() + 1_000_000;
    while boot_microseconds() < end {
        assert_eq!(claim.check(), Err(CheckError::Lost(LeaseLost::DeadlinePassed)));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(next.is_valid(), "and takes nothing away from the next");
}

// S3-17, S3-30, S3-31
#[tokio::test(flavor = "multi_thread")]
async fn manifest_lost_during_an_outage_is_reacquired_with_the_same_priority() {
    let mut network = ProxiedServer::new().await;
    let claim = declare_mutation(&agent(&network.proxied_client(), "alice", 1_500), "FILE:a").await;
    let before = claim.persisted_state("EXECUTING").identity.priority_timestamp;
    network.stop().await;
    assert_eq!(with_timeout(claim.wait_until_paused()).await, CheckError::Paused);
    assert_eq!(with_timeout(claim.wait_until_resumed()).await, Err(LeaseLost::DeadlinePassed));
    network.restart().await;
    let neighbour = network.direct_client();
    eventually(|| async { !is_held(&neighbour, "FILE:a").await }).await;
    assert!(!claim.is_valid());
    let fence = claim.fence("FILE:a");
    network.proxy.take_requests();
    let claim = with_timeout(claim.reacquire()).await.unwrap();
    assert_eq!(network.proxy.take_requests()[..2], ["POST /v1/leases/reconcile", "POST /v1/manifest"]);
    assert!(claim.is_valid() && !claim.is_continuous() && claim.fence("FILE:a") > fence);
    assert_eq!(claim.persisted_state("EXECUTING").identity.priority_timestamp, before);
    claim.release().await.unwrap();
    assert!(!is_held(&neighbour, "FILE:a").await);
}

// S3-30, S3-31
#[tokio::test(flavor = "multi_thread")]
async fn agent_resumes_when_the_server_returns_before_the_deadline() {
    let mut network = ProxiedServer::new().await;
    let claim = declare_mutation(&agent(&network.proxied_client(), "alice", 9_000), "FILE:a").await;
    network.stop().await;
    assert_eq!(with_timeout(claim.wait_until_paused()).await, CheckError::Paused);
    assert!(claim.touch([AgentIntent::mutates("FILE:a")]).await.is_err(), "it is not even asked");
    network.restart().await;
    assert_eq!(with_timeout(claim.wait_until_resumed()).await, Ok(()));
    assert!(claim.is_valid());
    let claim = with_timeout(claim.reacquire()).await.unwrap();
    assert!(claim.is_continuous(), "nobody else can have had it");
}
