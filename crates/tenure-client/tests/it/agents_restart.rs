//! An agent whose process ends and is started again.

use tenure_client::Code;
use tenure_client::agent::{Agent, Digest, RESTART_EXIT_CODE};
use tenure_testkit::network::Network;
use tenure_testkit::{eventually, in_time};

use crate::agents::{agent, is_held, mutates};

// S3-8, S3-17, O-19
#[tokio::test(flavor = "multi_thread")]
async fn agent_that_restarts_in_time_resumes_its_leases_and_priority() {
    let network = Network::new().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.json");
    let claim = mutates(&agent(&network.client(), "alice", 2_000), "FILE:a").await;
    let fence = claim.fence("FILE:a");
    let saved = in_time(claim.restart()).await.unwrap();
    saved.save(&path).unwrap();
    assert_eq!(RESTART_EXIT_CODE, 107);
    let state = network.neighbour().resource_state("FILE:a").await.unwrap();
    assert!(state.leases[0].remaining_ms > 10_000, "nothing is given back, and there are 15 s more");

    let digest = Digest::load(&path).unwrap();
    assert_eq!(digest, saved);
    // Another process would have another client.
    network.proxy.asked();
    let claim = in_time(Agent::resume(&network.client(), &digest)).await.unwrap();
    let asked = network.proxy.asked();
    assert_eq!(asked[..3], ["POST /v1/agents/alice/state", "POST /v1/leases/reconcile", "POST /v1/manifest"]);
    assert!(claim.is_sure() && claim.is_unbroken());
    assert_eq!(claim.fence("FILE:a"), fence);
    let next = claim.digest("EXECUTING");
    assert_eq!(next.identity.priority_timestamp, digest.identity.priority_timestamp);
    assert_eq!(next.identity.epoch, digest.identity.epoch + 1);

    let next = in_time(claim.restart()).await.unwrap();
    in_time(Agent::resume(&network.client(), &next)).await.unwrap().release().await.unwrap();
    let refused = Agent::resume(&network.client(), &digest).await.err().expect("an older life");
    assert_eq!(refused.code(), Some(Code::DigestStale));
}

// S3-17
#[tokio::test(flavor = "multi_thread")]
async fn resume_trusts_the_server_not_the_digest() {
    let network = Network::new().await;
    let client = network.client();
    let claim = mutates(&agent(&client, "alice", 30_000), "FILE:a").await;
    let digest = claim.digest("EXECUTING");
    // The process died without a word, and the leases are gone.
    claim.release().await.unwrap();
    eventually(|| async { !is_held(&client, "FILE:a").await }).await;
    let claim = in_time(Agent::resume(&client, &digest)).await.unwrap();
    assert!(claim.is_sure() && !claim.is_unbroken());
    assert!(is_held(&client, "FILE:a").await);
}
