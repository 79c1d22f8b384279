//! Everything that is needed to answer a request, and nothing else: what the events so far add up to.

mod agents;
mod apply;
mod ends;
mod enter;
mod entry;
mod files;
mod index;
mod invariants;
mod lengths;
mod memory;
mod numbers;
mod own;
mod reaches;
mod saved;
mod sessions;
mod slab;
mod snapshot;
mod table;
mod view;
mod works;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

pub use agents::Agent;
pub(crate) use agents::wants_apart;
pub use apply::Misfit;
pub use entry::Terms;
pub(crate) use entry::{LeaseEntry, Waiting};
pub(crate) use invariants::ensure;
pub use memory::EndedLease;
pub(crate) use memory::KeyOutcome;
pub use saved::RestoreError;
pub(crate) use slab::Slot;
pub use snapshot::Snapshot;
pub use table::HashKey;
pub use view::{LeaseView, TicketView};
pub use works::Work;

use self::agents::Agents;
use self::ends::Ends;
use self::entry::{HolderEntry, PrincipalEntry, ResourceEntry, Rest};
use self::files::Files;
use self::lengths::Lengths;
use self::memory::{EndedLeases, Keys};
use self::numbers::Numbers;
use self::reaches::Reaches;
use self::sessions::Sessions;
use self::slab::Slab;
use self::table::Table;
use self::works::Works;
use super::event::ClockReading;
use super::granting::{Granting, still_held_back};
use super::limits::{HOLDER_KEPT, Limits};
use super::name::{Holder, Principal, Resource};
use super::value::{Fence, LedgerTag, Span, Tick, Ticket};
use crate::rules::time::is_over;

/// The kernel's state. It changes by [`State::apply`] only, and is kept as bytes by [`State::save`].
#[derive(Debug, Clone)]
pub struct State {
    tag: LedgerTag,
    limits: Limits,
    now: Tick,
    clock: Option<ClockState>,
    last_fence: Fence,
    last_ticket: Ticket,
    /// Nothing is granted before this tick.
    hold: Option<Tick>,
    granting: Granting,
    leases: Slab<LeaseEntry>,
    by_fence: Numbers,
    expiries: Ends,
    resources: Table<ResourceEntry>,
    reaches: Reaches<Slot>,
    holders: Table<HolderEntry>,
    /// Those who hold and wait for nothing, by the number of their rest.
    idle_holders: BTreeMap<u64, Slot>,
    rests: u64,
    /// Never forgotten: there are as many as there are tokens and local users.
    principals: Table<PrincipalEntry>,
    waits: BTreeMap<Ticket, Waiting>,
    deadlines: BTreeSet<(Tick, Ticket)>,
    keys: Keys,
    ended: EndedLeases,
    lengths: Lengths,
    sessions: Sessions,
    agents: Agents,
    works: Works,
    files: Files,
}

/// How ticks, a clock and wall time go together, as the ledger last said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockState {
    pub tick: Tick,
    pub reading: ClockReading,
    /// From which tick on wall time is counted.
    pub anchor: Anchor,
}

/// Ties ticks to wall time. Wall columns are for people and audit; they decide nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Anchor {
    pub tick: Tick,
    /// The Unix nanoseconds that stand for it.
    pub wall: u64,
}

impl Anchor {
    pub fn wall_of(self, tick: Tick) -> u64 {
        let nanoseconds = |span: u64| span.saturating_mul(1_000);
        if tick >= self.tick {
            self.wall.saturating_add(nanoseconds(tick.0 - self.tick.0))
        } else {
            self.wall.saturating_sub(nanoseconds(self.tick.0 - tick.0))
        }
    }
}

impl Default for State {
    fn default() -> Self {
        Self::new(LedgerTag::default(), Limits::default(), HashKey::default())
    }
}

impl State {
    /// The state before the first event. Neither `limits` nor `key` changes what events add up to.
    pub fn new(tag: LedgerTag, limits: Limits, key: HashKey) -> Self {
        Self {
            tag,
            limits,
            now: Tick::default(),
            clock: None,
            last_fence: Fence::default(),
            last_ticket: Ticket::default(),
            hold: None,
            granting: Granting::default(),
            leases: Slab::default(),
            by_fence: Numbers::default(),
            expiries: Ends::default(),
            resources: Table::new(key),
            reaches: Reaches::default(),
            holders: Table::new(key),
            idle_holders: BTreeMap::new(),
            rests: 0,
            principals: Table::new(key),
            waits: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            keys: Keys::default(),
            ended: EndedLeases::default(),
            lengths: Lengths::default(),
            sessions: Sessions::default(),
            agents: Agents::default(),
            works: Works::default(),
            files: Files::default(),
        }
    }

    pub fn tag(&self) -> LedgerTag {
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

    pub fn granting(&self) -> Granting {
        self.granting
    }

    /// Says what there is room for. Part of the configuration, not of the ledger: what events add up to is the
    /// same whatever it says.
    pub fn set_granting(&mut self, granting: Granting) {
        self.granting = granting;
    }

    /// Until when nothing may be granted, if that is still to come at `now`.
    pub fn held_back_until(&self, now: Tick) -> Option<Tick> {
        still_held_back(self.hold, now)
    }

    pub fn has_waiters(&self) -> bool {
        !self.waits.is_empty() || self.has_pending()
    }

    /// When the next lease or wait is over, or a session has waited too long, if nothing happens before.
    pub fn next_deadline(&self) -> Option<Tick> {
        let lease = self.expiries.first().map(|(tick, _)| tick);
        let wait = self.deadlines.first().map(|(tick, _)| *tick);
        lease
            .into_iter()
            .chain(wait)
            .chain(self.sessions.next_deadline())
            .chain(self.agents.next_deadline(&self.limits))
            .min()
    }

    /// How often time has to be marked in the ledger, so that a restart on another clock adds little to any
    /// lease: at least every hundredth of the shortest live one. Nothing lives: not at all.
    pub fn mark_interval(&self) -> Option<Span> {
        self.lengths.mark_interval()
    }

    /// How many leases there are, those that are over but not announced among them.
    pub fn live_leases(&self) -> usize {
        self.leases.len()
    }
}

/// What deciding reads. Slots are good as long as nothing is applied.
impl State {
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
    pub(crate) fn queue_on(&self, resource: Slot) -> impl Iterator<Item = &Waiting> {
        self.resources.get(resource).queue.iter().filter_map(|ticket| self.waits.get(ticket))
    }

    pub(crate) fn is_waited_for(&self, resource: Slot) -> bool {
        !self.resources.get(resource).queue.is_empty()
    }

    /// Everybody who waits, oldest first.
    pub(crate) fn waits(&self) -> impl Iterator<Item = &Waiting> {
        self.waits.values()
    }

    pub(crate) fn waiting(&self, ticket: Ticket) -> Option<&Waiting> {
        self.waits.get(&ticket)
    }

    /// The leases of a holder, newest first.
    pub(crate) fn leases_of(&self, holder: Slot) -> impl Iterator<Item = &LeaseEntry> {
        let slots = self.holders.get(holder).leases.iter();
        let mut leases: Vec<_> = slots.map(|slot| self.leases.get(slot)).collect();
        leases.sort_unstable_by_key(|lease| Reverse(lease.fence));
        leases.into_iter()
    }

    /// What a holder waits for, oldest first.
    pub(crate) fn waits_of(&self, holder: Slot) -> impl Iterator<Item = &Waiting> {
        self.holders.get(holder).tickets.iter().filter_map(|ticket| self.waits.get(ticket))
    }

    /// Whether a holder holds nothing and waits for nothing.
    pub(crate) fn rests(&self, holder: Slot) -> bool {
        self.holders.get(holder).rest.is_some()
    }

    /// How many leases a principal has and waits for, and how many waits that is.
    pub(crate) fn usage_of(&self, principal: Slot) -> (usize, usize) {
        let entry = self.principals.get(principal);
        (entry.leases + entry.wanted, entry.waits)
    }

    /// The leases that are over at `now` and not announced, oldest end first.
    pub(crate) fn over_leases(&self, now: Tick) -> impl Iterator<Item = &LeaseEntry> {
        let over = self.expiries.iter().take_while(move |(tick, _)| is_over(now.0, tick.0));
        over.filter_map(|(_, fence)| self.find_lease(fence))
    }

    /// The waits that are over at `now` and not announced, oldest end first.
    pub(crate) fn over_waits(&self, now: Tick) -> impl Iterator<Item = &Waiting> {
        let over = self.deadlines.iter().take_while(move |(tick, _)| is_over(now.0, tick.0));
        over.filter_map(|(_, ticket)| self.waits.get(ticket))
    }

    /// Whether `principal` may use `holder` as a name: nobody else holds, waits, or recently did, under it.
    pub(crate) fn may_be(&self, holder: &Holder, principal: &Principal, now: Tick) -> bool {
        self.may_be_at(self.find_holder(holder), principal, now) && self.may_be_agent(holder, principal)
    }

    /// Whether no agent of another principal has this name.
    fn may_be_agent(&self, holder: &Holder, principal: &Principal) -> bool {
        self.agents.is_empty() || self.agent(holder).is_none_or(|agent| agent.principal == *principal)
    }

    /// The same of the holder at `slot`; nothing, if there is none.
    fn may_be_at(&self, slot: Option<Slot>, principal: &Principal, now: Tick) -> bool {
        let Some(slot) = slot else { return true };
        let entry = self.holders.get(slot);
        let free_again = |rest: Rest| is_over(now.0, rest.since.saturating_add(HOLDER_KEPT).0);
        self.principals.get(entry.principal).name == *principal || entry.rest.is_some_and(free_again)
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.keys
    }

    /// A lease that is over and still remembered.
    pub fn ended(&self, fence: Fence) -> Option<&EndedLease> {
        self.ended.get(fence)
    }

    /// The leases that ended last, in the order of their numbers.
    pub fn ended_leases(&self) -> impl Iterator<Item = &EndedLease> {
        self.ended.iter()
    }
}
