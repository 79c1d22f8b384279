//! The state as plain, sorted data: what two states are compared by.

use super::agents::Agent;
use super::entry::Terms;
use super::memory::{EndedLease, KeyEntry};
use super::{ClockState, State, Work};
use crate::kernel::agent::Pending;
use crate::kernel::event::Queued;
use crate::kernel::file::{FileSession, FileTicket, LeftFile};
use crate::kernel::intent::Session;
use crate::kernel::name::{Holder, Principal, Resource};
use crate::kernel::value::{Digest, Fence, RequestKey, Tick, Ticket};

/// Everything that the events add up to, without how it is laid out in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    now: Tick,
    clock: Option<ClockState>,
    last_fence: Fence,
    last_ticket: Ticket,
    hold: Option<Tick>,
    leases: Vec<Lease>,
    waits: Vec<Queued>,
    holders: Vec<(Holder, Principal, Option<Tick>)>,
    keys: Vec<(Principal, Digest, KeyEntry)>,
    ended: Vec<EndedLease>,
    sessions: Vec<Session>,
    sessions_revision: u64,
    agents: Vec<(Holder, Agent)>,
    pending: Vec<Pending>,
    works: Vec<(Fence, Work)>,
    file_sessions: Vec<FileSession>,
    file_tickets: Vec<FileTicket>,
    file_reports: Vec<FileTicket>,
    left_files: Vec<(Resource, LeftFile)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Lease {
    fence: Fence,
    resource: Resource,
    holder: Holder,
    terms: Terms,
    key: Option<RequestKey>,
}

impl State {
    /// A copy to compare with. It visits everything: for tests and the simulator.
    pub fn snapshot(&self) -> Snapshot {
        let leases = self.by_fence.from(Fence(0)).map(|slot| {
            let entry = self.leases.get(slot);
            Lease {
                fence: entry.fence,
                resource: self.resource_name(entry.resource).clone(),
                holder: self.holder_name(entry.holder).clone(),
                terms: entry.terms.clone(),
                key: entry.key.as_deref().copied(),
            }
        });
        let holders = self.holders.iter().map(|(slot, entry)| {
            (entry.name.clone(), self.principal_of(slot).1.clone(), entry.rest.map(|rest| rest.since))
        });
        let mut holders: Vec<_> = holders.collect();
        holders.sort_unstable();
        let keys = self.keys.iter().map(|((principal, digest), entry)| {
            (self.principals.get(*principal).name.clone(), *digest, entry.clone())
        });
        let mut keys: Vec<_> = keys.collect();
        keys.sort_unstable_by(|one, other| (&one.0, one.1).cmp(&(&other.0, other.1)));
        Snapshot {
            now: self.now,
            clock: self.clock.clone(),
            last_fence: self.last_fence,
            last_ticket: self.last_ticket,
            hold: self.hold,
            leases: leases.collect(),
            waits: self.waits.values().map(|waiting| waiting.queued.clone()).collect(),
            holders,
            keys,
            ended: self.ended.iter().cloned().collect(),
            sessions: self.sessions.iter().cloned().collect(),
            sessions_revision: self.sessions.revision(),
            agents: self.agents.iter().map(|(id, agent)| (id.clone(), agent.clone())).collect(),
            pending: self.agents.waits.iter().cloned().collect(),
            works: self.works.iter().map(|(fence, work)| (*fence, work.clone())).collect(),
            file_sessions: self.file_sessions().cloned().collect(),
            file_tickets: self.file_tickets().cloned().collect(),
            file_reports: self.file_reports().cloned().collect(),
            left_files: self
                .files
                .left_in_order()
                .map(|(resource, left)| (resource.clone(), left.clone()))
                .collect(),
        }
    }
}
