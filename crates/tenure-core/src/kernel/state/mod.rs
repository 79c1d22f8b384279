//! State of the kernel: the result of all events so far, and no more than a decision needs.

pub(super) mod apply;
pub(super) mod checkpoint;
mod entry;
mod expiry_index;
mod fence_index;
mod invariants;
mod name_table;
pub(super) mod overlap_index;
mod retention;
mod slab;
mod view;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

pub use apply::{ApplyError, Removed};
pub use checkpoint::RestoreError;
pub(crate) use entry::{LeaseEntry, QueueEntry};
pub use invariants::ComparableState;
pub(crate) use invariants::ensure;
pub use name_table::HashSeed;
pub use retention::EndedLease;
pub(crate) use retention::IdempotencyOutcome;
pub(crate) use slab::Slot;
pub use view::{LeaseView, QueueTicketView};

use self::entry::{HolderIdleSince, KnownHolder, PrincipalEntry, ResourceEntry};
use self::expiry_index::{ExpiryIndex, TtlHistogram};
use self::fence_index::FenceIndex;
use self::name_table::NameTable;
use self::overlap_index::OverlapIndex;
use self::retention::{EndedLeases, IdempotencyKeys};
use self::slab::Slab;
use super::admission::{AdmissionLevel, active_restore_quarantine};
use super::agent::AgentStore;
use super::event::ClockReading;
use super::file::FileStore;
use super::intent::IntentSessionStore;
use super::work::WorkLeaseStore;
use crate::rules::is_expired;
use crate::value::{
    Fence, HOLDER_RETENTION, Holder, LedgerTag, Limits, Principal, Resource, Tick, TickDuration, Ticket,
};

/// The kernel's state. The fields that the APIs' parts of `apply` change are visible to them. It changes by [`KernelState::apply`] only, and is kept as bytes by [`KernelState::save`].
#[derive(Debug, Clone)]
pub struct KernelState {
    tag: LedgerTag,
    limits: Limits,
    now: Tick,
    clock: Option<ClockState>,
    last_fence: Fence,
    pub(super) last_ticket: Ticket,
    /// Nothing is granted before this tick.
    restore_hold: Option<Tick>,
    admission_level: AdmissionLevel,
    leases: Slab<LeaseEntry>,
    by_fence: FenceIndex,
    expiries: ExpiryIndex,
    resources: NameTable<ResourceEntry>,
    overlaps: OverlapIndex<Slot>,
    pub(super) holders: NameTable<KnownHolder>,
    /// Those who hold and wait for nothing, by the number of their rest.
    idle_holders: BTreeMap<u64, Slot>,
    last_idle_number: u64,
    /// Never forgotten: there are as many as there are tokens and local users.
    principals: NameTable<PrincipalEntry>,
    queue_entries: BTreeMap<Ticket, QueueEntry>,
    queue_deadlines: BTreeSet<(Tick, Ticket)>,
    pub(super) keys: IdempotencyKeys,
    pub(super) ended_leases: EndedLeases,
    ttl_histogram: TtlHistogram,
    pub(super) intent_sessions: IntentSessionStore,
    pub(super) agents: AgentStore,
    pub(super) work_leases: WorkLeaseStore,
    pub(super) files: FileStore,
}

/// How ticks, a clock and wall time go together, as the ledger last said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockState {
    pub tick: Tick,
    pub reading: ClockReading,
    /// From which tick on wall time is counted.
    pub anchor: ClockAnchor,
}

/// Ties ticks to wall time. Wall columns are for people and audit; they decide nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClockAnchor {
    pub tick: Tick,
    /// The Unix nanoseconds that stand for it.
    pub wall: u64,
}

impl ClockAnchor {
    pub fn wall_time_of(self, tick: Tick) -> u64 {
        let nanoseconds = |span: u64| span.saturating_mul(1_000);
        if tick >= self.tick {
            self.wall.saturating_add(nanoseconds(tick.0 - self.tick.0))
        } else {
            self.wall.saturating_sub(nanoseconds(self.tick.0 - tick.0))
        }
    }
}

impl Default for KernelState {
    fn default() -> Self {
        Self::new(LedgerTag::default(), Limits::default(), HashSeed::default())
    }
}

impl KernelState {
    /// The state before the first event. Neither `limits` nor `seed` changes what events add up to.
    pub fn new(tag: LedgerTag, limits: Limits, seed: HashSeed) -> Self {
        Self {
            tag,
            limits,
            now: Tick::default(),
            clock: None,
            last_fence: Fence::default(),
            last_ticket: Ticket::default(),
            restore_hold: None,
            admission_level: AdmissionLevel::default(),
            leases: Slab::default(),
            by_fence: FenceIndex::default(),
            expiries: ExpiryIndex::default(),
            resources: NameTable::new(seed),
            overlaps: OverlapIndex::default(),
            holders: NameTable::new(seed),
            idle_holders: BTreeMap::new(),
            last_idle_number: 0,
            principals: NameTable::new(seed),
            queue_entries: BTreeMap::new(),
            queue_deadlines: BTreeSet::new(),
            keys: IdempotencyKeys::default(),
            ended_leases: EndedLeases::default(),
            ttl_histogram: TtlHistogram::default(),
            intent_sessions: IntentSessionStore::default(),
            agents: AgentStore::default(),
            work_leases: WorkLeaseStore::default(),
            files: FileStore::default(),
        }
    }

    pub fn ledger_tag(&self) -> LedgerTag {
        self.tag
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The newest tick of any event.
    pub fn now(&self) -> Tick {
        self.now
    }

    /// How ticks, a clock and wall time go together; nothing before the first writer started.
    pub fn clock(&self) -> Option<&ClockState> {
        self.clock.as_ref()
    }

    /// The newest fence; 0 before the first grant.
    pub fn last_fence(&self) -> Fence {
        self.last_fence
    }

    pub fn admission_level(&self) -> AdmissionLevel {
        self.admission_level
    }

    /// Says what there is room for. Part of the configuration, not of the ledger: what events add up to is the
    /// same whatever it says.
    pub fn set_admission_level(&mut self, level: AdmissionLevel) {
        self.admission_level = level;
    }

    /// Until when nothing may be granted, if that is still to come at `now`.
    pub fn restore_quarantine_until(&self, now: Tick) -> Option<Tick> {
        active_restore_quarantine(self.restore_hold, now)
    }

    pub fn has_waiters(&self) -> bool {
        !self.queue_entries.is_empty() || self.has_waiting_agents()
    }

    /// Whether no agent waits and there is no session and no lease with authority, so that plain leases are all that a
    /// command on plain leases can affect.
    pub(crate) fn has_only_plain_leases(&self) -> bool {
        !self.has_waiting_agents()
            && self.intent_sessions.is_empty()
            && self.files.is_empty()
            && self.work_leases.is_empty()
    }

    /// When the next lease or wait is over, or a session has waited too long, if nothing happens before.
    pub fn next_deadline(&self) -> Option<Tick> {
        let lease = self.expiries.first().map(|(tick, _)| tick);
        let wait = self.queue_deadlines.first().map(|(tick, _)| *tick);
        lease
            .into_iter()
            .chain(wait)
            .chain(self.intent_sessions.next_deadline())
            .chain(self.agents.next_deadline(&self.limits))
            .min()
    }

    /// How often time has to be marked in the ledger, so that a restart on another clock adds little to any
    /// lease: at least every hundredth of the shortest live one. Nothing lives: not at all.
    pub fn clock_mark_interval(&self) -> Option<TickDuration> {
        self.ttl_histogram.clock_mark_interval()
    }

    /// How many leases there are, those that are over but not announced among them.
    pub fn lease_count(&self) -> usize {
        self.leases.len()
    }

    /// How many leases, waits and sessions there are. The end of each is an event.
    pub fn live_count(&self) -> usize {
        let waiting = self.queue_entries.len() + self.waiting_agent_counts().0 + self.files.ticket_count();
        let sessions = self.intent_sessions.active_count_and_size().0 + self.file_session_count();
        self.leases.len() + waiting + sessions
    }
}

/// What deciding reads. Slots are good as long as nothing is applied.
impl KernelState {
    pub(crate) fn last_ticket(&self) -> Ticket {
        self.last_ticket
    }

    pub(crate) fn find_lease(&self, fence: Fence) -> Option<&LeaseEntry> {
        self.by_fence.get(fence).map(|slot| self.leases.get(slot))
    }

    pub(crate) fn find_resource(&self, resource: &Resource) -> Option<Slot> {
        self.resources.find(resource.as_str())
    }

    pub(crate) fn find_holder(&self, holder: &Holder) -> Option<Slot> {
        self.holders.find(holder.as_str())
    }

    pub(crate) fn find_principal(&self, principal: &Principal) -> Option<Slot> {
        self.principals.find(principal.as_str())
    }

    pub(crate) fn resource_name(&self, slot: Slot) -> &Resource {
        &self.resources.get(slot).name
    }

    pub(crate) fn holder_name(&self, slot: Slot) -> &Holder {
        &self.holders.get(slot).name
    }

    pub(crate) fn principal_of(&self, holder: Slot) -> (Slot, &Principal) {
        let slot = self.holders.get(holder).principal;
        (slot, &self.principals.get(slot).name)
    }

    /// The leases on a resource, those that are over but not announced among them.
    pub(crate) fn leases_on(&self, resource: Slot) -> impl Iterator<Item = &LeaseEntry> {
        self.resources.get(resource).leases.as_slice().iter().map(|slot| self.leases.get(*slot))
    }

    /// Who waits for a resource, oldest first, those whose time is over among them.
    pub(crate) fn queue_on(&self, resource: Slot) -> impl Iterator<Item = &QueueEntry> {
        self.resources.get(resource).queue.iter().filter_map(|ticket| self.queue_entries.get(ticket))
    }

    pub(crate) fn has_queue(&self, resource: Slot) -> bool {
        !self.resources.get(resource).queue.is_empty()
    }

    /// Everybody who waits, oldest first.
    pub(crate) fn queue_entries(&self) -> impl Iterator<Item = &QueueEntry> {
        self.queue_entries.values()
    }

    pub(crate) fn queue_entry(&self, ticket: Ticket) -> Option<&QueueEntry> {
        self.queue_entries.get(&ticket)
    }

    /// The leases of a holder, newest first.
    pub(crate) fn leases_of(&self, holder: Slot) -> impl Iterator<Item = &LeaseEntry> {
        let slots = self.holders.get(holder).leases.iter();
        let mut leases: Vec<_> = slots.map(|slot| self.leases.get(slot)).collect();
        leases.sort_unstable_by_key(|lease| Reverse(lease.fence));
        leases.into_iter()
    }

    /// What a holder waits for, oldest first.
    pub(crate) fn queue_entries_of(&self, holder: Slot) -> impl Iterator<Item = &QueueEntry> {
        self.holders.get(holder).tickets.iter().filter_map(|ticket| self.queue_entries.get(ticket))
    }

    /// Whether a holder holds nothing and waits for nothing.
    pub(crate) fn is_holder_idle(&self, holder: Slot) -> bool {
        self.holders.get(holder).idle.is_some()
    }

    /// How many leases a principal has and waits for, and how many waits that is.
    pub(crate) fn usage_of(&self, principal: Slot) -> (usize, usize) {
        let entry = self.principals.get(principal);
        (entry.leases + entry.requested_leases, entry.queue_entry_count)
    }

    /// The leases that are over at `now` and not announced, oldest end first.
    pub(crate) fn expired_leases(&self, now: Tick) -> impl Iterator<Item = &LeaseEntry> {
        let expired = self.expiries.iter().take_while(move |(tick, _)| is_expired(now.0, tick.0));
        expired.filter_map(|(_, fence)| self.find_lease(fence))
    }

    /// The waits that are over at `now` and not announced, oldest end first.
    pub(crate) fn timed_out_queue_entries(&self, now: Tick) -> impl Iterator<Item = &QueueEntry> {
        let timed_out = self.queue_deadlines.iter().take_while(move |(tick, _)| is_expired(now.0, tick.0));
        timed_out.filter_map(|(_, ticket)| self.queue_entries.get(ticket))
    }

    /// Whether `principal` may use `holder` as a name: nobody else holds, waits, or recently did, under it.
    pub(crate) fn can_use_holder(&self, holder: &Holder, principal: &Principal, now: Tick) -> bool {
        self.can_use_holder_at(self.find_holder(holder), principal, now)
            && self.can_use_agent_name(holder, principal)
    }

    /// Whether no agent of another principal has this name.
    fn can_use_agent_name(&self, holder: &Holder, principal: &Principal) -> bool {
        self.agents.is_empty() || self.agent(holder).is_none_or(|agent| agent.principal == *principal)
    }

    /// The same of the holder at `slot`; nothing, if there is none.
    fn can_use_holder_at(&self, slot: Option<Slot>, principal: &Principal, now: Tick) -> bool {
        let Some(slot) = slot else { return true };
        let entry = self.holders.get(slot);
        let free_again =
            |rest: HolderIdleSince| is_expired(now.0, rest.since.saturating_add(HOLDER_RETENTION).0);
        self.principals.get(entry.principal).name == *principal || entry.idle.is_some_and(free_again)
    }

    pub(crate) fn idempotency_keys(&self) -> &IdempotencyKeys {
        &self.keys
    }

    /// A lease that is over and still remembered.
    pub fn ended_lease(&self, fence: Fence) -> Option<&EndedLease> {
        self.ended_leases.get(fence)
    }

    /// The leases that ended last, in the order of their numbers.
    pub fn ended_leases(&self) -> impl Iterator<Item = &EndedLease> {
        self.ended_leases.iter()
    }
}
