//! Agents get all that they declare, or nothing, and give it back.

use std::time::Duration;

use tenure_client::agent::{Agent, Claim, DeclareError, Doubt, Intent, TouchError};
use tenure_client::{Client, Code, Lost, Wait, Wanted, boot_microseconds};
use tenure_testkit::network::Network;
use tenure_testkit::{eventually, in_time};

/// An agent whose leases live for so many milliseconds.
pub fn agent(client: &Client, name: &str, ttl_ms: u64) -> Agent {
    Agent::new(client, name).ttl(Duration::from_millis(ttl_ms)).skew(Duration::from_millis(100))
}

pub async fn mutates(agent: &Agent, resource: &str) -> Claim {
    in_time(agent.declare([Intent::mutates(resource)])).await.unwrap()
}

pub async fn is_held(client: &Client, resource: &str) -> bool {
    client.resource_state(resource).await.unwrap().held
}

// S3-11, S3-12
#[tokio::test(flavor = "multi_thread")]
async fn held_manifest_is_renewed_past_its_ttl_and_released_at_once() {
    let network = Network::new().await;
    let wanted = [Intent::mutates("FILE:a"), Intent::consumes("FILE:b/"), Intent::provides("SYMBOL:c")];
    let claim = agent(&network.client(), "alice", 1_000).declare(wanted).await.unwrap();
    assert_eq!(claim.leases().len(), 3);
    let neighbour = network.neighbour();
    let end = boot_microseconds() + 4_000_000;
    network.proxy.asked();
    while boot_microseconds() < end {
        for resource in ["FILE:a", "FILE:b/", "SYMBOL:c"] {
            assert!(is_held(&neighbour, resource).await, "{resource}");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // All of them in one request, each third of a second or a little earlier.
    let beats = network.proxy.asked();
    assert!(beats.iter().all(|asked| asked == "POST /v1/leases/heartbeat"), "{beats:?}");
    assert!((10..=24).contains(&beats.len()), "{}", beats.len());
    in_time(claim.release()).await.unwrap();
    for resource in ["FILE:a", "FILE:b/", "SYMBOL:c"] {
        assert!(!is_held(&neighbour, resource).await, "{resource}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wait_die_lets_the_older_agent_wait_and_the_younger_agent_retry() {
    let network = Network::new().await;
    let client = network.client();
    let middle = agent(&client, "middle", 30_000).priority(2_000);
    let first = mutates(&middle, "FILE:a").await;
    let (turns, mut took) = tokio::sync::mpsc::unbounded_channel();
    for (name, priority) in [("older", 1_000), ("younger", 3_000)] {
        let (agent, turns) = (agent(&client, name, 30_000).priority(priority), turns.clone());
        tokio::spawn(async move {
            let claim = mutates(&agent, "FILE:a").await;
            turns.send(name).unwrap();
            claim.release().await.unwrap();
        });
    }
    eventually(|| async {
        let waits = client.agent("older").await.is_ok_and(|older| !older.waits.is_empty());
        waits && client.agent("younger").await.is_ok_and(|younger| younger.deaths > 0)
    })
    .await;
    first.release().await.unwrap();
    assert_eq!(in_time(took.recv()).await, Some("older"));
    assert_eq!(in_time(took.recv()).await, Some("younger"));
}

#[tokio::test(flavor = "multi_thread")]
async fn declaration_that_times_out_or_is_dropped_leaves_no_wait() {
    let network = Network::new().await;
    let client = network.client();
    let _owner = mutates(&agent(&client, "owner", 30_000).priority(2_000), "FILE:a").await;
    let impatient = agent(&client, "impatient", 30_000).priority(1_000);
    let wait = Wait::For(Duration::from_millis(200));
    let declared = in_time(impatient.declare([Intent::mutates("FILE:a")]).wait(wait)).await;
    let Err(DeclareError::InTheWay { blocked_by }) = declared else { panic!("it is not to be had") };
    assert_eq!(blocked_by, ["owner"]);
    assert!(client.agent("impatient").await.unwrap().waits.is_empty());

    let cancelled = impatient.clone();
    let waiting = tokio::spawn(async move { mutates(&cancelled, "FILE:a").await });
    eventually(|| async { !client.agent("impatient").await.unwrap().waits.is_empty() }).await;
    waiting.abort();
    assert!(waiting.await.is_err());
    in_time(mutates(&impatient, "FILE:b")).await.release().await.unwrap();
    assert!(client.agent("impatient").await.unwrap().waits.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_manifest_is_released_and_the_next_priority_is_younger() {
    let network = Network::new().await;
    let client = network.client();
    let alice = agent(&client, "alice", 30_000);
    let first = mutates(&alice, "FILE:a").await.digest("EXECUTING").identity.priority_timestamp;
    in_time(client.settle()).await;
    assert!(!is_held(&client, "FILE:a").await);
    let claim = mutates(&alice, "FILE:a").await;
    assert!(claim.digest("EXECUTING").identity.priority_timestamp > first);
}

#[tokio::test(flavor = "multi_thread")]
async fn touching_an_undeclared_resource_is_a_scope_violation() {
    let network = Network::new().await;
    let claim = mutates(&agent(&network.client(), "alice", 30_000), "FILE:src/").await;
    claim.touch([Intent::mutates("FILE:src/a")]).await.unwrap();
    let touched = claim.touch([Intent::mutates("FILE:src/a"), Intent::deletes("FILE:b")]).await;
    let Err(TouchError::Outside(outside)) = touched else { panic!("it is outside: {touched:?}") };
    assert_eq!(outside, [Wanted { resource: "FILE:b".into(), predicate: "DELETES".into() }]);
}

#[tokio::test(flavor = "multi_thread")]
async fn explicit_priority_is_not_replaced_by_the_servers() {
    let network = Network::new().await;
    let client = network.client();
    let _claim = mutates(&agent(&client, "alice", 30_000).priority(2_000), "FILE:a").await;
    let other = agent(&client, "alice", 30_000).priority(1_000);
    let refused = other.declare([Intent::mutates("FILE:b")]).await.err().expect("it is fixed");
    assert_eq!(refused.code(), Some(Code::PriorityFixed));
    // One that the client chose gives way.
    let same = mutates(&agent(&client, "alice", 30_000), "FILE:b").await;
    assert_eq!(same.digest("EXECUTING").identity.priority_timestamp, 2_000);
}

// S3-30, S3-31
#[tokio::test(flavor = "multi_thread")]
async fn released_agent_lease_is_lost_with_the_next_heartbeat() {
    let network = Network::new().await;
    let client = network.client();
    let claim = mutates(&agent(&client, "alice", 1_500), "FILE:a").await;
    agent(&client, "alice", 1_500).complete().await.unwrap();
    let lost = Doubt::Lost(Lost::Ended { how: "RELEASED".into() });
    assert_eq!(in_time(claim.paused()).await, lost);
    assert_eq!(claim.check(), Err(lost));
    let claim = in_time(claim.reacquire()).await.unwrap();
    assert!(claim.is_sure() && !claim.is_unbroken());
}
