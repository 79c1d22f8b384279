//! An agent whose process ends and is started again.

use tenure_client::Code;
use tenure_client::agent::{Agent, PersistedAgentState, RESTART_EXIT_CODE};
use tenure_testkit::proxied_server::ProxiedServer;
use tenure_testkit::{eventually, with_timeout};

use crate::agents::{agent, declare_mutation, is_held};

// S3-8, S3-17, O-19
#[tokio::test(flavor = "multi_thread")]
async fn agent_that_restarts_in_time_resumes_its_leases_and_priority() {
    let network = ProxiedServer::new().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.json");
    let claim = declare_mutation(&agent(&network.proxied_client(), "alice", 2_000), "FILE:a").await;
    let fence = claim.fence("FILE:a");
    let digest_before_restart = with_timeout(claim.prepare_restart()).await.unwrap();
    digest_before_restart.save(&path).unwrap();
    assert_eq!(RESTART_EXIT_CODE, 107);
    let state = network.direct_client().resource_state("FILE:a").await.unwrap();
    assert!(state.leases[0].remaining_ms > 10_000, "nothing is given back, and there are 15 s more");

    let digest = PersistedAgentState::load(&path).unwrap();
    assert_eq!(digest, digest_before_restart);
    // Another process would have another client.
    network.proxy.take_requests();
    let claim = with_timeout(Agent::resume(&network.proxied_client(), &digest)).await.unwrap();
    let requests = network.proxy.take_requests();
    assert_eq!(
        requests[..3],
        ["POST /v1/agents/alice/state", "POST /v1/leases/reconcile", "POST /v1/manifest"]
    );
    assert!(claim.is_valid() && claim.is_continuous());
    assert_eq!(claim.fence("FILE:a"), fence);
    let next = claim.persisted_state("EXECUTING");
    assert_eq!(next.identity.priority_timestamp, digest.identity.priority_timestamp);
    assert_eq!(next.identity.epoch, digest.identity.epoch + 1);

    let next = with_timeout(claim.prepare_restart()).await.unwrap();
    with_timeout(Agent::resume(&network.proxied_client(), &next)).await.unwrap().release().await.unwrap();
    let refused = Agent::resume(&network.proxied_client(), &digest).await.err().expect("an older life");
    assert_eq!(refused.code(), Some(Code::DigestStale));
}

// S3-17
#[tokio::test(flavor = "multi_thread")]
async fn resume_trusts_the_server_not_the_digest() {
    let network = ProxiedServer::new().await;
    let client = network.proxied_client();
    let claim = declare_mutation(&agent(&client, "alice", 30_000), "FILE:a").await;
    let digest = claim.persisted_state("EXECUTING");
    // The process died without a word, and the leases are gone.
    claim.release().await.unwrap();
    eventually(|| async { !is_held(&client, "FILE:a").await }).await;
    let claim = with_timeout(Agent::resume(&client, &digest)).await.unwrap();
    assert!(claim.is_valid() && !claim.is_continuous());
    assert!(is_held(&client, "FILE:a").await);
}
