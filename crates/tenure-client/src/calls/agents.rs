//! What agents ask.

use tenure_api::{
    AgentLeases, AgentView, Agents, Contention, Heartbeat, Manifest, Reconciled, ReleasedLeases, ReportState,
    ResourceState, Touch, Touched, Verdict,
};

use crate::client::Client;
use crate::connection::{Call, Query, Repeat};
use crate::error::Error;

const AGENTS: &str = "/v1/agents";

impl Client {
    /// Says everything that an agent is about to touch: it gets all of it, waits, or has to come back later. The same said
    /// again says how that went.
    pub async fn declare(&self, manifest: &Manifest) -> Result<Verdict, Error> {
        self.ask(&Call::post("/v1/manifest".into(), manifest, Repeat::Harmless).for_a_list()).await
    }

    /// Gives these leases of an agent more time, each by itself.
    pub async fn heartbeat(&self, leases: &AgentLeases) -> Result<Heartbeat, Error> {
        self.ask(&Call::post("/v1/leases/heartbeat".into(), leases, Repeat::Harmless)).await
    }

    /// Gives these leases of an agent back. What is over already stays so.
    pub async fn release_all(&self, leases: &AgentLeases) -> Result<ReleasedLeases, Error> {
        self.ask(&Call::post("/v1/leases/release".into(), leases, Repeat::Harmless)).await
    }

    /// What is true of these leases, whatever the agent remembers.
    pub async fn reconcile(&self, leases: &AgentLeases) -> Result<Reconciled, Error> {
        self.ask(&Call::post("/v1/leases/reconcile".into(), leases, Repeat::Harmless).for_a_list()).await
    }

    /// Says what an agent is doing, and hears how it stands.
    pub async fn report(&self, agent: &str, report: &ReportState) -> Result<AgentView, Error> {
        let path = Query::path(AGENTS, &[agent, "state"]).into_text();
        self.ask(&Call::post(path, report, Repeat::Harmless).for_a_list()).await
    }

    /// Says what an agent touches, or was seen to touch.
    pub async fn touch(&self, agent: &str, touch: &Touch) -> Result<Touched, Error> {
        let path = Query::path(AGENTS, &[agent, "touch"]).into_text();
        self.ask(&Call::post(path, touch, Repeat::Harmless)).await
    }

    /// One agent as it is.
    pub async fn agent(&self, agent: &str) -> Result<AgentView, Error> {
        self.ask(&Call::get(Query::path(AGENTS, &[agent]).into_text()).for_a_list()).await
    }

    /// Every agent of whom something is known.
    pub async fn agents(&self) -> Result<Vec<AgentView>, Error> {
        let answer = self.ask::<Agents>(&Call::get(AGENTS.into()).for_a_list()).await;
        answer.map(|answer| answer.agents)
    }

    /// Who has a resource, or something that overlaps it, and who waits for it.
    pub async fn resource_state(&self, resource: &str) -> Result<ResourceState, Error> {
        let path = Query::path("/v1/resource", &[resource, "state"]).into_text();
        self.ask(&Call::get(path).for_a_list()).await
    }

    /// Who waits for whom.
    pub async fn contention(&self) -> Result<Contention, Error> {
        self.ask(&Call::get("/v1/contention".into()).for_a_list()).await
    }
}
