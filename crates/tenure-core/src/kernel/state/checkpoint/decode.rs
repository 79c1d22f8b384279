//! From bytes to the state. Whatever could not have been saved is refused.

use super::bytes::CheckpointReader;
use super::fields::CheckpointCodec;
use super::{RestoreError, VERSION};
use crate::kernel::event::{ClockReading, LeaseTerms, QueuedAcquire};
use crate::kernel::lease::lease_request::{Alternatives, can_be_assigned};
use crate::kernel::outcome::LeaseEnd;
use crate::kernel::state::entry::{
    HolderIdleSince, HolderLeases, KnownHolder, LeaseEntry, PrincipalEntry, ResourceEntry, SmallList,
};
use crate::kernel::state::retention::{EndedLease, IdempotencyEntry, IdempotencyKeys, IdempotencyOutcome};
use crate::kernel::state::{ClockAnchor, ClockState, HashSeed, KernelState, Slot};
use crate::kernel::work::KeyedSpend;
use crate::value::{
    Fence, Holder, IdempotencyKey, KEY_RETENTION, LedgerTag, Limits, ModeSet, Principal, Resource, Tick,
    Ticket,
};

impl KernelState {
    /// The state that [`KernelState::save`] wrote. It holds what [`KernelState::check_invariants`] asks for, whatever the
    /// bytes are; that they are the ones that were saved is for whoever stores them to know.
    pub fn restore(
        bytes: &[u8],
        tag: LedgerTag,
        limits: Limits,
        hash_seed: HashSeed,
    ) -> Result<KernelState, RestoreError> {
        let mut take = CheckpointReader::new(bytes);
        let version = take.byte()?;
        if version != VERSION {
            return Err(RestoreError::Version { found: version });
        }
        let state = KernelState::new(tag, limits, hash_seed);
        let (principals, holders, resources) = (Vec::new(), Vec::new(), Vec::new());
        let mut restoring = CheckpointDecoder { state, reader: take, principals, holders, resources };
        restoring.head()?;
        restoring.principals()?;
        restoring.leases()?;
        restoring.queue_entries()?;
        restoring.idle_holders()?;
        restoring.index_names()?;
        restoring.keys()?;
        restoring.ended_leases()?;
        restoring.decode_intent_sessions()?;
        restoring.decode_agents()?;
        restoring.decode_work_leases()?;
        restoring.decode_files()?;
        restoring.reader.finish()?;
        Ok(restoring.state)
    }
}

pub(in crate::kernel) struct CheckpointDecoder<'a> {
    pub(in crate::kernel) state: KernelState,
    pub(in crate::kernel) reader: CheckpointReader<'a>,
    /// By their numbers.
    principals: Vec<Slot>,
    /// By their numbers, the first of which is 1.
    holders: Vec<Slot>,
    resources: Vec<Slot>,
}

impl CheckpointDecoder<'_> {
    fn head(&mut self) -> Result<(), RestoreError> {
        let (state, take) = (&mut self.state, &mut self.reader);
        state.now = Tick(take.varint()?);
        take.now = state.now;
        state.clock = match take.byte()? {
            0 => None,
            1 => {
                let tick = take.past_tick()?;
                let reading = ClockReading { clock: take.text()?.into(), microseconds: take.varint()? };
                let anchor = ClockAnchor { tick: take.tick_before(tick)?, wall: take.varint()? };
                Some(ClockState { tick, reading, anchor })
            }
            _ => return Err(take.damaged("there is neither a clock nor none")),
        };
        state.last_fence = Fence(take.varint()?);
        take.ensure(state.last_fence <= Fence::MAX, "its last fence is too large")?;
        state.last_ticket = Ticket(take.varint()?);
        state.restore_hold = match take.byte()? {
            0 => None,
            1 => Some(Tick(take.varint()?)),
            _ => return Err(take.damaged("nothing says whether grants are held back")),
        };
        Ok(())
    }

    fn principals(&mut self) -> Result<(), RestoreError> {
        for _ in 0..self.reader.count(2)? {
            let name = self.reader.name(Principal::parse)?;
            let before = self.principals.last().map(|slot| &self.state.principals.get(*slot).name);
            self.reader.ensure(before.is_none_or(|before| *before < name), "principals are not in order")?;
            let entry = PrincipalEntry { name, leases: 0, requested_leases: 0, queue_entry_count: 0 };
            self.principals.push(self.state.principals.push(entry));
        }
        Ok(())
    }

    fn leases(&mut self) -> Result<(), RestoreError> {
        let count = self.reader.count(4 + LeaseTerms::MIN_BYTES)?;
        // One tree of all ends is made faster than a million insertions into it.
        let mut ends = Vec::with_capacity(count);
        let mut shared = Vec::new();
        let mut fence = Fence(0);
        for _ in 0..count {
            fence = Fence(self.reader.delta(fence.0)?);
            self.reader.ensure(fence <= self.state.last_fence, "a lease was never given out")?;
            let holder = self.holder()?;
            let resource = self.resource()?;
            let terms = LeaseTerms::read(&mut self.reader)?;
            ends.push((terms.expires_at, fence));
            self.state.insert_lease(LeaseEntry {
                fence,
                terms,
                key: None,
                resource,
                holder,
                holder_index: 0,
            });
            if self.state.resources.get(resource).leases.as_slice().len() == 2 {
                shared.push(resource);
            }
        }
        ends.sort_unstable();
        self.state.expiries = ends.into_iter().collect();
        shared.into_iter().try_for_each(|resource| self.check_modes(resource))
    }

    /// Whether each of several leases on a resource goes with those before it.
    fn check_modes(&self, resource: Slot) -> Result<(), RestoreError> {
        let mut kept_out = ModeSet::default();
        for lease in self.state.leases_on(resource) {
            self.reader.ensure(!kept_out.contains(lease.terms.mode), "two leases do not go together")?;
            kept_out = kept_out.union(ModeSet::conflicting_with(lease.terms.mode));
        }
        Ok(())
    }

    fn queue_entries(&mut self) -> Result<(), RestoreError> {
        let mut ticket = Ticket(0);
        for _ in 0..self.reader.count(5)? {
            ticket = Ticket(self.reader.delta(ticket.0)?);
            self.reader.ensure(ticket <= self.state.last_ticket, "a ticket was never drawn")?;
            let holder = self.holder()?;
            let at = self.reader.past_tick()?;
            let until = Tick(self.reader.delta(at.0)?);
            let (mut requests, mut resources) = (Vec::new(), Vec::new());
            for _ in 0..self.reader.count(1)? {
                let first = resources.len();
                resources.push(self.resource()?);
                for _ in 0..self.reader.count(1)? {
                    resources.push(self.resource()?);
                }
                let mut names = resources[first..].iter().map(|slot| self.state.resource_name(*slot).clone());
                let resource = names.next().expect("the first was just read");
                let alternatives = Alternatives::new(names);
                requests.push(self.reader.request(resource, alternatives)?);
            }
            self.reader.ensure(!requests.is_empty(), "it waits for nothing")?;
            self.reader.ensure(can_be_assigned(&requests), "it waits for one resource twice")?;
            let (name, principal) = (self.state.holder_name(holder), self.state.principal_of(holder).1);
            let (name, principal) = (name.clone(), principal.clone());
            let queued = QueuedAcquire { ticket, holder: name, principal, requests, at, until, key: None };
            let modes = queued.requests.iter().flat_map(|request| request.resources().map(|_| request.mode));
            let resources: Vec<_> = resources.into_iter().zip(modes).collect();
            self.state.insert_queue_entry(queued, holder, resources);
        }
        Ok(())
    }

    fn idle_holders(&mut self) -> Result<(), RestoreError> {
        let mut before = Tick(0);
        for _ in 0..self.reader.count(4)? {
            let name = self.reader.name(Holder::parse)?;
            let principal = self.principal()?;
            let since = self.reader.past_tick()?;
            self.reader.ensure(since >= before, "rests are not in their order")?;
            before = since;
            self.state.last_idle_number += 1;
            let number = self.state.last_idle_number;
            let slot = self.new_holder(name, principal, Some(HolderIdleSince { since, number }));
            self.state.idle_holders.insert(number, slot);
        }
        Ok(())
    }

    fn keys(&mut self) -> Result<(), RestoreError> {
        let mut keys = Vec::new();
        for principal in self.principals.clone() {
            let mut before = None;
            for _ in 0..self.reader.count(34)? {
                let key = IdempotencyKey::read(&mut self.reader)?;
                let ascends = before.is_none_or(|before| before < key.key);
                self.reader.ensure(ascends, "keys are not in their order")?;
                before = Some(key.key);
                keys.push(((principal, key.key), self.key(principal, key)?));
            }
        }
        self.state.keys = IdempotencyKeys::from_sorted(keys);
        Ok(())
    }

    fn key(&mut self, principal: Slot, key: IdempotencyKey) -> Result<IdempotencyEntry, RestoreError> {
        let count = self.reader.count(1)?;
        if count == 0 {
            let ticket = Ticket(self.reader.varint()?);
            if ticket == Ticket(0) {
                let spent = KeyedSpend::read(&mut self.reader)?;
                let was_issued = spent.lease <= self.state.last_fence;
                self.reader.ensure(was_issued, "a key leads to a lease that never was")?;
                let outcome = IdempotencyOutcome::Spent(Box::new(spent));
                return Ok(IdempotencyEntry {
                    body: key.body,
                    outcome,
                    live: 0,
                    forget_at: Some(self.forget_at()?),
                });
            }
            let waiting = self.state.queue_entries.get_mut(&ticket);
            let waiting = waiting.ok_or_else(|| self.reader.damaged("a key waits for nothing"))?;
            let own = self.state.holders.get(waiting.holder).principal == principal;
            self.reader.ensure(own, "a key leads to somebody else's ticket")?;
            let earlier = waiting.queued.key.replace(key);
            self.reader.ensure(earlier.is_none(), "two keys lead to one ticket")?;
            let outcome = IdempotencyOutcome::Waiting(ticket);
            return Ok(IdempotencyEntry { body: key.body, outcome, live: 0, forget_at: None });
        }
        let (mut leases, mut live, mut fence) = (Vec::with_capacity(count), 0, Fence(0));
        for _ in 0..count {
            fence = Fence(self.reader.delta(fence.0)?);
            self.reader.ensure(fence <= self.state.last_fence, "a key leads to a lease that never was")?;
            if let Some(slot) = self.state.by_fence.get(fence) {
                let lease = self.state.leases.get_mut(slot);
                let own = self.state.holders.get(lease.holder).principal == principal;
                self.reader.ensure(own, "a key leads to somebody else's lease")?;
                let earlier = lease.key.replace(Box::new(key));
                self.reader.ensure(earlier.is_none(), "two keys lead to one lease")?;
                live += 1;
            }
            leases.push(fence);
        }
        let forget_at = if live == 0 { Some(self.forget_at()?) } else { None };
        Ok(IdempotencyEntry { body: key.body, outcome: IdempotencyOutcome::Leases(leases), live, forget_at })
    }

    /// No later than for a key whose last lease ended just now: the queue of keys goes by that.
    fn forget_at(&mut self) -> Result<Tick, RestoreError> {
        let forget_at = Tick(self.reader.delta(self.state.now.0)?);
        let latest = self.state.now.saturating_add(KEY_RETENTION);
        self.reader.ensure(forget_at <= latest, "a key is kept too long")?;
        Ok(forget_at)
    }

    fn ended_leases(&mut self) -> Result<(), RestoreError> {
        let mut before = Tick(0);
        for _ in 0..self.reader.count(8 + LeaseTerms::MIN_BYTES)? {
            let fence = Fence(self.reader.delta(0)?);
            let ended = self.state.by_fence.get(fence).is_none() && self.state.ended_lease(fence).is_none();
            self.reader
                .ensure(fence <= self.state.last_fence && ended, "an ended lease lives or never was")?;
            let resource = self.reader.name(Resource::parse)?;
            let holder = self.reader.name(Holder::parse)?;
            let principal = self.principal()?;
            let principal = self.state.principals.get(principal).name.clone();
            let terms = LeaseTerms::read(&mut self.reader)?;
            let ended_at = self.reader.past_tick()?;
            self.reader.ensure(ended_at >= before, "ends are not in their order")?;
            before = ended_at;
            self.state.ended_leases.add(EndedLease {
                fence,
                resource,
                holder,
                principal,
                terms,
                ended_at,
                end: LeaseEnd::read(&mut self.reader)?,
                work_lease: None,
            });
        }
        Ok(())
    }

    fn resource(&mut self) -> Result<Slot, RestoreError> {
        let number = self.reader.varint()?;
        if number == 0 {
            let name = self.reader.name(Resource::parse)?;
            let entry = ResourceEntry { name, leases: SmallList::None, queue: Default::default() };
            let slot = self.state.resources.push(entry);
            self.resources.push(slot);
            return Ok(slot);
        }
        self.numbered(&self.resources, number - 1, "there is no such resource")
    }

    fn principal(&mut self) -> Result<Slot, RestoreError> {
        let number = self.reader.varint()?;
        self.numbered(&self.principals, number, "there is no such principal")
    }

    fn holder(&mut self) -> Result<Slot, RestoreError> {
        let number = self.reader.varint()?;
        if number == 0 {
            let name = self.reader.name(Holder::parse)?;
            let principal = self.principal()?;
            let slot = self.new_holder(name, principal, None);
            self.holders.push(slot);
            return Ok(slot);
        }
        self.numbered(&self.holders, number - 1, "there is no such holder")
    }

    fn numbered(&self, slots: &[Slot], place: u64, missing: &'static str) -> Result<Slot, RestoreError> {
        let found = usize::try_from(place).ok().and_then(|place| slots.get(place));
        found.copied().ok_or_else(|| self.reader.damaged(missing))
    }

    fn new_holder(&mut self, name: Holder, principal: Slot, rest: Option<HolderIdleSince>) -> Slot {
        let (leases, tickets) = (HolderLeases::default(), Default::default());
        self.state.holders.push(KnownHolder { name, principal, leases, tickets, idle: rest })
    }

    /// From here on, everything is found by its name.
    fn index_names(&mut self) -> Result<(), RestoreError> {
        self.reader.ensure(self.state.principals.index_all(), "a principal stands twice")?;
        self.reader.ensure(self.state.holders.index_all(), "a holder stands twice")?;
        self.reader.ensure(self.state.resources.index_all(), "a resource stands twice")?;
        let state = &mut self.state;
        state.resources.iter().for_each(|(slot, entry)| state.overlaps.insert(&entry.name, slot));
        let fits = state.invariant_overlapping_leases_are_compatible().is_ok();
        self.reader.ensure(fits, "two leases that overlap do not go together")
    }
}
