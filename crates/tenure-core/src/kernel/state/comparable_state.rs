//! The state as plain, sorted data: what two states are compared by.

use super::agents::AgentRecord;
use super::retention::{EndedLease, IdempotencyEntry};
use super::{ClockState, KernelState, WorkLease};
use crate::kernel::agent::AgentWait;
use crate::kernel::event::LeaseTerms;
use crate::kernel::event::QueuedAcquire;
use crate::kernel::file::{FileSession, RetryTicket, UncommittedFile};
use crate::kernel::intent::IntentSession;
use crate::kernel::name::{Holder, Principal, Resource};
use crate::kernel::newtypes::{Fence, IdempotencyKey, RequestDigest, Tick, Ticket};

/// Everything that the events add up to, without how it is laid out in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComparableState {
    now: Tick,
    clock: Option<ClockState>,
    last_fence: Fence,
    last_ticket: Ticket,
    restore_hold: Option<Tick>,
    leases: Vec<ComparableLease>,
    queue_entries: Vec<QueuedAcquire>,
    holders: Vec<(Holder, Principal, Option<Tick>)>,
    keys: Vec<(Principal, RequestDigest, IdempotencyEntry)>,
    ended_leases: Vec<EndedLease>,
    intent_sessions: Vec<IntentSession>,
    intent_sessions_revision: u64,
    agents: Vec<(Holder, AgentRecord)>,
    waiting_agents: Vec<AgentWait>,
    work_leases: Vec<(Fence, WorkLease)>,
    file_sessions: Vec<FileSession>,
    retry_tickets: Vec<RetryTicket>,
    blocked_reports: Vec<RetryTicket>,
    uncommitted_files: Vec<(Resource, UncommittedFile)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ComparableLease {
    fence: Fence,
    resource: Resource,
    holder: Holder,
    terms: LeaseTerms,
    key: Option<IdempotencyKey>,
}

impl KernelState {
    /// A copy to compare with. It visits everything: for tests and the simulator.
    pub fn to_comparable(&self) -> ComparableState {
        let leases = self.by_fence.iter_from(Fence(0)).map(|slot| {
            let entry = self.leases.get(slot);
            ComparableLease {
                fence: entry.fence,
                resource: self.resource_name(entry.resource).clone(),
                holder: self.holder_name(entry.holder).clone(),
                terms: entry.terms.clone(),
                key: entry.key.as_deref().copied(),
            }
        });
        let holders = self.holders.iter().map(|(slot, entry)| {
            (entry.name.clone(), self.principal_of(slot).1.clone(), entry.idle.map(|rest| rest.since))
        });
        let mut holders: Vec<_> = holders.collect();
        holders.sort_unstable();
        let keys = self.keys.iter().map(|((principal, digest), entry)| {
            (self.principals.get(*principal).name.clone(), *digest, entry.clone())
        });
        let mut keys: Vec<_> = keys.collect();
        keys.sort_unstable_by(|one, other| (&one.0, one.1).cmp(&(&other.0, other.1)));
        ComparableState {
            now: self.now,
            clock: self.clock.clone(),
            last_fence: self.last_fence,
            last_ticket: self.last_ticket,
            restore_hold: self.restore_hold,
            leases: leases.collect(),
            queue_entries: self.queue_entries.values().map(|waiting| waiting.queued.clone()).collect(),
            holders,
            keys,
            ended_leases: self.ended_leases.iter().cloned().collect(),
            intent_sessions: self.intent_sessions.iter().cloned().collect(),
            intent_sessions_revision: self.intent_sessions.revision(),
            agents: self.agents.iter().map(|(id, agent)| (id.clone(), agent.clone())).collect(),
            waiting_agents: self.agents.wait_index.iter().cloned().collect(),
            work_leases: self.work_leases.iter().map(|(fence, work)| (*fence, work.clone())).collect(),
            file_sessions: self.file_sessions().cloned().collect(),
            retry_tickets: self.retry_tickets().cloned().collect(),
            blocked_reports: self.blocked_reports().cloned().collect(),
            uncommitted_files: self
                .files
                .uncommitted_oldest_first()
                .map(|(resource, uncommitted)| (resource.clone(), uncommitted.clone()))
                .collect(),
        }
    }
}
