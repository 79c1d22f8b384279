//! Agents get all that they declare, or nothing, and give it back.

use std::time::Duration;

use tenure_client::agent::{Agent, AgentIntent, CheckError, DeclareError, HeldManifest, TouchError};
use tenure_client::{Client, Code, LeaseLost, ResourceAccess, WaitLimit, boot_microseconds};
use tenure_testkit::proxied_server::ProxiedServer;
use tenure_testkit::{eventually, with_timeout};

/// An agent whose leases live for so many milliseconds.
pub fn agent(client: &Client, name: &str, ttl_ms: u64) -> Agent {
    Agent::new(client, name).ttl(Duration::from_millis(ttl_ms)).skew(Duration::from_millis(100))
}

pub async fn declare_mutation(agent: &Agent, resource: &str) -> HeldManifest {
    with_timeout(agent.declare([AgentIntent::mutates(resource)])).await.unwrap()
}

pub async fn is_held(client: &Client, resource: &str) -> bool {
    client.resource_state(resource).await.unwrap().held
}

// S3-11, S3-12
#[tokio::test(flavor = "multi_thread")]
async fn held_manifest_is_renewed_past_its_ttl_and_released_at_once() {
    let network = ProxiedServer::new().await;
    let intents =
        [AgentIntent::mutates("FILE:a"), AgentIntent::consumes("FILE:b/"), AgentIntent::provides("SYMBOL:c")];
    let claim = agent(&network.proxied_client(), "alice", 1_000).declare(intents).await.unwrap();
    assert_eq!(claim.leases().len(), 3);
    let neighbour = network.direct_client();
    let end = boot_microseconds() + 4_000_000;
    network.proxy.take_requests();
    while boot_microseconds() < end {
        for resource in ["FILE:a", "FILE:b/", "SYMBOL:c"] {
            assert!(is_held(&neighbour, resource).await, "{resource}");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // All of them in one request, each third of a second or a little earlier.
    let heartbeats = network.proxy.take_requests();
    assert!(heartbeats.iter().all(|request| request == "POST /v1/leases/heartbeat"), "{heartbeats:?}");
    assert!((10..=24).contains(&heartbeats.len()), "{}", heartbeats.len());
    with_timeout(claim.release()).await.unwrap();
    for resource in ["FILE:a", "FILE:b/", "SYMBOL:c"] {
        assert!(!is_held(&neighbour, resource).await, "{resource}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wait_die_lets_the_older_agent_wait_and_the_younger_agent_retry() {
    let network = ProxiedServer::new().await;
    let client = network.proxied_client();
    let middle = agent(&client, "middle", 30_000).priority(2_000);
    let first = declare_mutation(&middle, "FILE:a").await;
    let (turns, mut took) = tokio::sync::mpsc::unbounded_channel();
    for (name, priority) in [("older", 1_000), ("younger", 3_000)] {
        let (agent, turns) = (agent(&client, name, 30_000).priority(priority), turns.clone());
        tokio::spawn(async move {
            let claim = declare_mutation(&agent, "FILE:a").await;
            turns.send(name).unwrap();
            claim.release().await.unwrap();
        });
    }
    eventually(|| async {
        let is_waiting = client.agent("older").await.is_ok_and(|older| !older.waits.is_empty());
        is_waiting && client.agent("younger").await.is_ok_and(|younger| younger.deaths > 0)
    })
    .await;
    first.release().await.unwrap();
    assert_eq!(with_timeout(took.recv()).await, Some("older"));
    assert_eq!(with_timeout(took.recv()).await, Some("younger"));
}

#[tokio::test(flavor = "multi_thread")]
async fn declaration_that_times_out_or_is_dropped_leaves_no_wait() {
    let network = ProxiedServer::new().await;
    let client = network.proxied_client();
    let _owner = declare_mutation(&agent(&client, "owner", 30_000).priority(2_000), "FILE:a").await;
    let impatient = agent(&client, "impatient", 30_000).priority(1_000);
    let wait = WaitLimit::For(Duration::from_millis(200));
    let declared = with_timeout(impatient.declare([AgentIntent::mutates("FILE:a")]).wait(wait)).await;
    let Err(DeclareError::Blocked { blocked_by }) = declared else { panic!("it is not to be had") };
    assert_eq!(blocked_by, ["owner"]);
    assert!(client.agent("impatient").await.unwrap().waits.is_empty());

    let cancelled = impatient.clone();
    let waiting = tokio::spawn(async move { declare_mutation(&cancelled, "FILE:a").await });
    eventually(|| async { !client.agent("impatient").await.unwrap().waits.is_empty() }).await;
    waiting.abort();
    assert!(waiting.await.is_err());
    with_timeout(declare_mutation(&impatient, "FILE:b")).await.release().await.unwrap();
    assert!(client.agent("impatient").await.unwrap().waits.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_manifest_is_released_and_the_next_priority_is_younger() {
    let network = ProxiedServer::new().await;
    let client = network.proxied_client();
    let alice = agent(&client, "alice", 30_000);
    let first =
        declare_mutation(&alice, "FILE:a").await.persisted_state("EXECUTING").identity.priority_timestamp;
    with_timeout(client.drain()).await;
    assert!(!is_held(&client, "FILE:a").await);
    let claim = declare_mutation(&alice, "FILE:a").await;
    assert!(claim.persisted_state("EXECUTING").identity.priority_timestamp > first);
}

#[tokio::test(flavor = "multi_thread")]
async fn touching_an_undeclared_resource_is_a_scope_violation() {
    let network = ProxiedServer::new().await;
    let claim = declare_mutation(&agent(&network.proxied_client(), "alice", 30_000), "FILE:src/").await;
    claim.touch([AgentIntent::mutates("FILE:src/a")]).await.unwrap();
    let touched = claim.touch([AgentIntent::mutates("FILE:src/a"), AgentIntent::deletes("FILE:b")]).await;
    let Err(TouchError::ScopeViolation(outside)) = touched else { panic!("it is outside: {touched:?}") };
    assert_eq!(outside, [ResourceAccess { resource: "FILE:b".into(), predicate: "DELETES".into() }]);
}

#[tokio::test(flavor = "multi_thread")]
async fn explicit_priority_is_not_replaced_by_the_servers() {
    let network = ProxiedServer::new().await;
    let client = network.proxied_client();
    let _claim = declare_mutation(&agent(&client, "alice", 30_000).priority(2_000), "FILE:a").await;
    let other = agent(&client, "alice", 30_000).priority(1_000);
    let refused = other.declare([AgentIntent::mutates("FILE:b")]).await.err().expect("it is fixed");
    assert_eq!(refused.code(), Some(Code::PriorityFixed));
    // One that the client chose gives way.
    let same = declare_mutation(&agent(&client, "alice", 30_000), "FILE:b").await;
    assert_eq!(same.persisted_state("EXECUTING").identity.priority_timestamp, 2_000);
}

// S3-30, S3-31
#[tokio::test(flavor = "multi_thread")]
async fn released_agent_lease_is_lost_with_the_next_heartbeat() {
    let network = ProxiedServer::new().await;
    let client = network.proxied_client();
    let claim = declare_mutation(&agent(&client, "alice", 1_500), "FILE:a").await;
    agent(&client, "alice", 1_500).complete().await.unwrap();
    let lost = CheckError::Lost(LeaseLost::Ended { end: "RELEASED".into() });
    assert_eq!(with_timeout(claim.wait_until_paused()).await, lost);
    assert_eq!(claim.check(), Err(lost));
    let claim = with_timeout(claim.reacquire()).await.unwrap();
    assert!(claim.is_valid() && !claim.is_continuous());
}
