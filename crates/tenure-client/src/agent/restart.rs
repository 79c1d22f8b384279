//! An agent whose process restarts, or that was cut off: first it asks what is true, then it declares anew.

use std::time::Duration;

use tenure_api::ReportState;

use super::attempt::Attempt;
use super::claim::Claim;
use super::course::{Course, Next};
use super::declaring::Declaring;
use super::digest::{Digest, Identity, Recovery};
use super::failure::DeclareError;
use super::identity::Agent;
use crate::client::Client;
use crate::clock::{boot_microseconds, sleep_until};
use crate::error::Error;
use crate::hold::Wait;
use crate::key::random;

/// The most leases that can be asked about at once.
const MOST_ASKED: usize = 1_024;

impl Claim {
    /// What to remember, for a process that may end at any time. `phase` is what the agent is doing: `EXECUTING`, say.
    pub fn digest(&self, phase: &str) -> Digest {
        let agent = self.agent();
        Digest {
            version: "1.0".into(),
            identity: Identity {
                agent_id: agent.id.to_string(),
                priority_timestamp: agent.attempt.priority(),
                epoch: agent.epoch.saturating_add(1),
            },
            recovery: Recovery {
                last_phase: phase.into(),
                pending_intents: self.intents().to_vec(),
                lease_ids: self.leases().iter().map(|lease| lease.id.clone()).collect(),
            },
            session_id: agent.session.to_string(),
            ttl_ms: milliseconds(agent.ttl),
            skew_ms: milliseconds(agent.skew),
        }
    }

    /// The process ends, and is started again: says so, which gives each lease 15 s more, and sends no heartbeat any more.
    /// Save what this returns, and exit with [`RESTART_EXIT_CODE`](super::RESTART_EXIT_CODE).
    pub async fn restart(self) -> Result<Digest, Error> {
        let digest = self.digest("DIE_RESTART");
        self.agent().report("DIE_RESTART").await?;
        self.hand_over().await;
        Ok(digest)
    }
}

impl Agent {
    /// Goes on where an earlier process of this agent was: shows what it remembers, asks what is true of its leases, and
    /// declares everything anew with the same priority. What is still the agent's stays so.
    ///
    /// `DIGEST_STALE` says that the memory is too old: begin with a new [`Agent`].
    pub async fn resume(client: &Client, digest: &Digest) -> Result<Claim, DeclareError> {
        let mut agent = Agent::new(client, digest.identity.agent_id.as_str())
            .session(digest.session_id.as_str())
            .ttl(Duration::from_millis(digest.ttl_ms))
            .skew(Duration::from_millis(digest.skew_ms));
        agent.attempt = Attempt::remembered(digest.identity.priority_timestamp);
        agent.epoch = digest.identity.epoch;
        let engaged = agent.attempt.engage();
        let (session_id, state) = (digest.session_id.clone(), "VERIFYING".to_owned());
        let report = ReportState { session_id, state, digest: Some(digest.told()) };
        insist(&agent, agent.wait, || client.report(&agent.id, &report)).await?;
        let declaring = Declaring::new(agent.clone(), digest.recovery.pending_intents.clone()).go_on(engaged);
        have_again(&agent, &digest.recovery.lease_ids, declaring, agent.wait).await
    }
}

/// What the server says of the leases counts, whatever the agent remembers.
pub(super) async fn have_again(
    agent: &Agent,
    remembered: &[String],
    declaring: Declaring,
    wait: Wait,
) -> Result<Claim, DeclareError> {
    let mut living = Vec::new();
    for some in remembered.chunks(MOST_ASKED) {
        let asked = agent.leases(some.to_vec());
        let truth = insist(agent, wait, || agent.client.reconcile(&asked)).await?;
        living.extend(truth.leases.into_iter().filter(|(_, lease)| lease.held).map(|(id, _)| id));
    }
    let mut claim = declaring.await?;
    claim.compare_with(&living);
    Ok(claim)
}

/// Asks until there is an answer, for as long as the agent waits.
async fn insist<T, F: Future<Output = Result<T, Error>>>(
    agent: &Agent,
    wait: Wait,
    ask: impl Fn() -> F,
) -> Result<T, Error> {
    let mut course = Course::new(wait, milliseconds(agent.ttl).saturating_mul(1_000), boot_microseconds());
    loop {
        let error = match ask().await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        match course.ask_again(boot_microseconds(), random()) {
            Next::AskAt(at) if error.passes() => sleep_until(at).await,
            _ => return Err(error),
        }
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
