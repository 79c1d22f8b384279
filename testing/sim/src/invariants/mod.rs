//! The laws, judged from durable events and responses: models that are as simple as can be, and share
//! nothing with the kernel but the events.

mod agents;
mod files;
mod intent_sessions;
mod work;

use std::collections::BTreeMap;

use tenure_core::kernel::{
    Event, Fence, Holder, IssuedLease, LeaseMode, LeaseRequest, QueuedAcquire, Resource, Tick, Ticket,
};

pub use agents::AgentsModel;
pub use files::FilesModel;
pub use intent_sessions::{IntentSessionModel, IntentSessionsModel};
pub(crate) use work::key_of;
pub use work::{WorkLaw, WorkModel};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation(pub String);

pub type InvariantResult = Result<(), Violation>;

/// Everything that the ledger says, as plain lists.
#[derive(Debug, Default)]
pub struct LedgerModel {
    leases: BTreeMap<Fence, LeaseModel>,
    queue: BTreeMap<Ticket, QueuedAcquire>,
    ended: BTreeMap<Fence, Tick>,
    last_fence: Fence,
    last_tick: Tick,
    sessions: IntentSessionsModel,
    agents: AgentsModel,
    files: FilesModel,
    work: WorkModel,
}

#[derive(Debug, Clone)]
struct LeaseModel {
    resource: Resource,
    holder: Holder,
    mode: LeaseMode,
    expires_at: Tick,
    /// When, in true time, the holder was last given time, and up to which tick from which tick.
    last_time_grant: GrantTime,
}

#[derive(Debug, Clone, Copy)]
struct GrantTime {
    true_time: u64,
    at: Tick,
}

/// How much a server's clock may be fast, in microseconds per second, and still not end a lease early.
const CLOCK_ALLOWANCE: u64 = 2_500;

impl LedgerModel {
    /// Judges an event that has become durable. `true_time` is when its tick was reached.
    pub fn apply_durable(&mut self, event: &Event, true_time: u64) -> InvariantResult {
        ensure(event.occurred_at() >= self.last_tick, || format!("time goes back at {event:?}"))?;
        self.last_tick = event.occurred_at();
        if let Event::Released { lease, at, .. }
        | Event::Expired { lease, at }
        | Event::Revoked { lease, at, .. } = event
        {
            self.ended.insert(*lease, *at);
        }
        self.files.apply_lease(event)?;
        self.work.apply(event)?;
        match event {
            Event::Issued(issued) => self.apply_issued(issued, true_time),
            Event::Renewed { lease, at, expires_at, .. } => {
                let model = self.active_lease(*lease, *at, "renewed")?;
                ensure(*expires_at > model.expires_at, || format!("{lease:?} is shortened by a renewal"))?;
                model.expires_at = *expires_at;
                model.last_time_grant = GrantTime { true_time, at: *at };
                Ok(())
            }
            Event::Released { lease, at, .. } | Event::Revoked { lease, at, .. } => {
                self.active_lease(*lease, *at, "ended")?;
                self.leases.remove(lease);
                Ok(())
            }
            Event::Expired { lease, at } => self.apply_expired(*lease, *at, true_time),
            Event::Queued(queued) => {
                ensure(!self.queue.contains_key(&queued.ticket), || format!("{:?} twice", queued.ticket))?;
                self.queue.insert(queued.ticket, queued.clone());
                Ok(())
            }
            Event::Left { ticket, .. } => {
                let waiter = self.queue.remove(ticket);
                ensure(waiter.is_some(), || format!("{ticket:?} leaves without having come"))
            }
            Event::Intent(event) => self.sessions.apply(event),
            Event::Agent(event) => self.agents.apply(event, &self.leases),
            Event::File(event) => self.files.apply(event),
            Event::Work(_) | Event::Marked { .. } | Event::Resumed { .. } | Event::Restored { .. } => Ok(()),
        }
    }

    /// Judges a grant that somebody is told of: it must be durable by now.
    pub fn check_acknowledged(&self, fence: Fence) -> InvariantResult {
        ensure(fence <= self.last_fence, || format!("{fence:?} was acknowledged and is not durable"))
    }

    /// When a lease ended, also if nobody was told: a write of which nobody knew may have been the end of it.
    pub fn ended_at(&self, fence: Fence) -> Option<Tick> {
        self.ended.get(&fence).copied()
    }

    /// Whether nothing is held and nobody waits.
    pub fn is_idle(&self) -> bool {
        self.leases.is_empty() && self.queue.is_empty() && self.agents.wait_entries().next().is_none()
    }

    /// The live leases: number, resource, holder.
    pub fn active_leases(&self) -> impl Iterator<Item = (Fence, &Resource, &Holder)> {
        self.leases.iter().map(|(fence, lease)| (*fence, &lease.resource, &lease.holder))
    }

    /// The sessions, as the ledger tells of them.
    pub fn sessions(&self) -> &IntentSessionsModel {
        &self.sessions
    }

    /// The agents, as the ledger tells of them.
    pub fn agents(&self) -> &AgentsModel {
        &self.agents
    }

    /// Sessions of coding agents and their files, as the ledger tells of them.
    pub fn files(&self) -> &FilesModel {
        &self.files
    }

    /// The same, to be told what is known of processes.
    pub fn files_mut(&mut self) -> &mut FilesModel {
        &mut self.files
    }

    /// Work leases, as the ledger and the answers tell of them.
    pub fn work(&self) -> &WorkModel {
        &self.work
    }

    /// The same, to be told what clients request and are answered.
    pub fn work_mut(&mut self) -> &mut WorkModel {
        &mut self.work
    }

    /// Judges a moment between two batches: sessions and leases agree, and nobody waits for an older one.
    pub fn check_between_batches(&mut self) -> InvariantResult {
        self.sessions.check_leases(self.active_leases())?;
        self.files.check_between_batches()?;
        self.work.check_between_batches()?;
        self.agents.check_between_batches(&self.leases, self.last_tick)
    }

    /// Judges a moment in which nothing is left to do: whoever waits waits for something.
    pub fn check_no_stuck_waiter(&self) -> InvariantResult {
        for waiting in self.queue.values() {
            let free = self.can_serve(waiting, &waiting.requests, &mut Vec::new());
            ensure(!free, || format!("{:?} waits, and what it wants is free", waiting.ticket))?;
        }
        self.agents.check_no_stuck_agent(&self.leases, self.last_tick)
    }

    /// Whether there is a free resource for each of the wants, none of them `taken`.
    fn can_serve<'a>(
        &self,
        own: &QueuedAcquire,
        requests: &'a [LeaseRequest],
        taken: &mut Vec<&'a Resource>,
    ) -> bool {
        let Some((request, rest)) = requests.split_first() else { return true };
        request.resources().any(|resource| {
            if taken.contains(&resource) || !self.is_free(own, resource, request.mode) {
                return false;
            }
            taken.push(resource);
            let served = self.can_serve(own, rest, taken);
            taken.pop();
            served
        })
    }

    fn is_free(&self, own: &QueuedAcquire, resource: &Resource, mode: LeaseMode) -> bool {
        let mut leases = self.leases.values().filter(|lease| lease.resource == *resource);
        let mut older = self.queue.range(..own.ticket).flat_map(|(_, waiting)| &waiting.requests);
        leases.all(|lease| lease.mode.is_compatible(mode))
            && older.all(|request| request.mode.is_compatible(mode) || !includes_resource(request, resource))
    }

    fn apply_issued(&mut self, issued: &IssuedLease, true_time: u64) -> InvariantResult {
        let (fence, terms) = (issued.fence, &issued.terms);
        ensure(fence > self.last_fence, || format!("{fence:?} is used again"))?;
        self.last_fence = fence;
        for (other, lease) in self.leases.iter().filter(|(_, lease)| lease.resource == issued.resource) {
            let together = lease.mode.is_compatible(terms.mode);
            ensure(together, || format!("{fence:?} and {other:?} both hold {}", issued.resource))?;
        }
        for (other, lease) in self.leases.iter().filter(|(_, lease)| lease.holder != issued.holder) {
            let conflicts = agents::overlaps(lease.resource.as_str(), issued.resource.as_str())
                && !agents::is_compatible(lease.mode, terms.mode);
            ensure(!conflicts, || format!("{fence:?} and {other:?} hold {} in part", issued.resource))?;
        }
        self.agents.record_grant(&issued.holder, issued.ticket, terms.issued_at)?;
        self.check_fifo_order(issued)?;
        let last_time_grant = GrantTime { true_time, at: terms.issued_at };
        let (resource, holder) = (issued.resource.clone(), issued.holder.clone());
        let (mode, expires_at) = (terms.mode, terms.expires_at);
        self.leases.insert(fence, LeaseModel { resource, holder, mode, expires_at, last_time_grant });
        Ok(())
    }

    /// First come, first served, and nobody after its patience.
    fn check_fifo_order(&mut self, issued: &IssuedLease) -> InvariantResult {
        if let Some(own) = issued.ticket.and_then(|ticket| self.queue.remove(&ticket)) {
            let in_time = issued.terms.issued_at < own.until;
            ensure(in_time, || format!("{:?} is served after its patience", own.ticket))?;
            ensure(own.holder == issued.holder, || format!("{:?} is served to another", own.ticket))?;
            let is_requested = own.requests.iter().any(|request| {
                request.mode == issued.terms.mode && includes_resource(request, &issued.resource)
            });
            ensure(is_requested, || format!("{:?} is served with what it did not wait for", own.ticket))?;
        }
        if issued.continues.is_some() {
            return Ok(());
        }
        let older =
            self.queue.values().filter(|waiting| issued.ticket.is_none_or(|own| waiting.ticket < own));
        for waiting in older.filter(|waiting| issued.terms.issued_at < waiting.until) {
            let overtaken = waiting.requests.iter().any(|request| {
                includes_resource(request, &issued.resource) && !request.mode.is_compatible(issued.terms.mode)
            });
            ensure(!overtaken, || format!("{:?} overtakes {:?}", issued.fence, waiting.ticket))?;
        }
        Ok(())
    }

    fn apply_expired(&mut self, lease: Fence, at: Tick, true_time: u64) -> InvariantResult {
        let model = self.leases.remove(&lease);
        let model = model.ok_or_else(|| Violation(format!("{lease:?} expires and does not live")))?;
        ensure(at >= model.expires_at, || format!("{lease:?} expires early by its tick"))?;
        let promised = model.expires_at.since(model.last_time_grant.at).0;
        let lived = true_time.saturating_sub(model.last_time_grant.true_time);
        // A tick is a whole microsecond: two roundings.
        let enough = lived + 2 + promised * CLOCK_ALLOWANCE / 1_000_000 >= promised;
        ensure(enough, || format!("{lease:?} was promised {promised} µs and lived {lived} µs of true time"))
    }

    fn active_lease(&mut self, lease: Fence, at: Tick, what: &str) -> Result<&mut LeaseModel, Violation> {
        let model = self.leases.get_mut(&lease);
        let model = model.ok_or_else(|| Violation(format!("{lease:?} is {what} and does not live")))?;
        ensure(at < model.expires_at, || format!("{lease:?} is {what} at {at:?}, when it is over"))?;
        Ok(model)
    }
}

fn includes_resource(request: &LeaseRequest, resource: &Resource) -> bool {
    request.resources().any(|other| other == resource)
}

pub fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> InvariantResult {
    if holds { Ok(()) } else { Err(Violation(otherwise())) }
}
