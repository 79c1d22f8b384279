//! Requests of agents.

use tenure_api::{
    AgentLeaseIds, AgentList, AgentReleaseResult, AgentStateReport, AgentView, ContentionGraph,
    HeartbeatResult, Manifest, ManifestVerdict, ReconcileResult, ResourceState, ResourceTouchReport,
    TouchResult,
};

use crate::client::Client;
use crate::error::Error;
use crate::http::{ApiRequest, Idempotency, PathAndQuery};

const AGENTS: &str = "/v1/agents";

impl Client {
    /// Says everything that an agent is about to touch: it gets all of it, waits, or has to come back later. The same said
    /// again says how that went.
    pub async fn declare(&self, manifest: &Manifest) -> Result<ManifestVerdict, Error> {
        self.send(
            &ApiRequest::post("/v1/manifest".into(), manifest, Idempotency::Idempotent).with_list_limit(),
        )
        .await
    }

    /// Gives these leases of an agent more time, each by itself.
    pub async fn heartbeat(&self, leases: &AgentLeaseIds) -> Result<HeartbeatResult, Error> {
        self.send(&ApiRequest::post("/v1/leases/heartbeat".into(), leases, Idempotency::Idempotent)).await
    }

    /// Gives these leases of an agent back. What is over already stays so.
    pub async fn release_agent_leases(&self, leases: &AgentLeaseIds) -> Result<AgentReleaseResult, Error> {
        self.send(&ApiRequest::post("/v1/leases/release".into(), leases, Idempotency::Idempotent)).await
    }

    /// What is true of these leases, whatever the agent remembers.
    pub async fn reconcile(&self, leases: &AgentLeaseIds) -> Result<ReconcileResult, Error> {
        self.send(
            &ApiRequest::post("/v1/leases/reconcile".into(), leases, Idempotency::Idempotent)
                .with_list_limit(),
        )
        .await
    }

    /// Says what an agent is doing, and hears how it stands.
    pub async fn report(&self, agent: &str, report: &AgentStateReport) -> Result<AgentView, Error> {
        let path = PathAndQuery::path(AGENTS, &[agent, "state"]).into_text();
        self.send(&ApiRequest::post(path, report, Idempotency::Idempotent).with_list_limit()).await
    }

    /// Says what an agent touches, or was seen to touch.
    pub async fn touch(&self, agent: &str, touch: &ResourceTouchReport) -> Result<TouchResult, Error> {
        let path = PathAndQuery::path(AGENTS, &[agent, "touch"]).into_text();
        self.send(&ApiRequest::post(path, touch, Idempotency::Idempotent)).await
    }

    /// One agent as it is.
    pub async fn agent(&self, agent: &str) -> Result<AgentView, Error> {
        self.send(&ApiRequest::get(PathAndQuery::path(AGENTS, &[agent]).into_text()).with_list_limit()).await
    }

    /// Every agent of whom something is known.
    pub async fn agents(&self) -> Result<Vec<AgentView>, Error> {
        let answer = self.send::<AgentList>(&ApiRequest::get(AGENTS.into()).with_list_limit()).await;
        answer.map(|answer| answer.agents)
    }

    /// Who has a resource, or something that overlaps it, and who waits for it.
    pub async fn resource_state(&self, resource: &str) -> Result<ResourceState, Error> {
        let path = PathAndQuery::path("/v1/resource", &[resource, "state"]).into_text();
        self.send(&ApiRequest::get(path).with_list_limit()).await
    }

    /// Who waits for whom.
    pub async fn contention(&self) -> Result<ContentionGraph, Error> {
        self.send(&ApiRequest::get("/v1/contention".into()).with_list_limit()).await
    }
}
