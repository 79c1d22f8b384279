//! From bytes to the state. Whatever could not have been saved is refused.

use super::bytes::Take;
use super::part::Saved;
use super::{RestoreError, VERSION};
use crate::kernel::answer::End;
use crate::kernel::event::{ClockReading, Queued};
use crate::kernel::limits::{KEY_KEPT, Limits};
use crate::kernel::mode::Modes;
use crate::kernel::name::{Holder, Principal, Resource};
use crate::kernel::state::entry::{Few, HolderEntry, LeaseEntry, PrincipalEntry, ResourceEntry, Rest, Terms};
use crate::kernel::state::memory::{EndedLease, KeyEntry, KeyOutcome, Keys};
use crate::kernel::state::own::Own;
use crate::kernel::state::works::SpentUnderKey;
use crate::kernel::state::{Anchor, ClockState, HashKey, Slot, State};
use crate::kernel::value::{Fence, LedgerTag, RequestKey, Tick, Ticket};
use crate::kernel::want::{Others, each_can_have_its_own};

impl State {
    /// The state that [`State::save`] wrote. It holds what [`State::check_invariants`] asks for, whatever the
    /// bytes are; that they are the ones that were saved is for whoever stores them to know.
    pub fn restore(
        bytes: &[u8],
        tag: LedgerTag,
        limits: Limits,
        key: HashKey,
    ) -> Result<State, RestoreError> {
        let mut take = Take::new(bytes);
        let version = take.byte()?;
        if version != VERSION {
            return Err(RestoreError::Version { found: version });
        }
        let state = State::new(tag, limits, key);
        let (principals, holders, resources) = (Vec::new(), Vec::new(), Vec::new());
        let mut restoring = Restoring { state, take, principals, holders, resources };
        restoring.head()?;
        restoring.principals()?;
        restoring.leases()?;
        restoring.waits()?;
        restoring.resting_holders()?;
        restoring.names()?;
        restoring.keys()?;
        restoring.ended_leases()?;
        restoring.sessions()?;
        restoring.agents()?;
        restoring.works()?;
        restoring.files()?;
        restoring.take.finish()?;
        Ok(restoring.state)
    }
}

pub(super) struct Restoring<'a> {
    pub(super) state: State,
    pub(super) take: Take<'a>,
    /// By their numbers.
    principals: Vec<Slot>,
    /// By their numbers, the first of which is 1.
    holders: Vec<Slot>,
    resources: Vec<Slot>,
}

impl Restoring<'_> {
    fn head(&mut self) -> Result<(), RestoreError> {
        let (state, take) = (&mut self.state, &mut self.take);
        state.now = Tick(take.number()?);
        take.now = state.now;
        state.clock = match take.byte()? {
            0 => None,
            1 => {
                let tick = take.past()?;
                let reading = ClockReading { clock: take.text()?.into(), microseconds: take.number()? };
                let anchor = Anchor { tick: take.before(tick)?, wall: take.number()? };
                Some(ClockState { tick, reading, anchor })
            }
            _ => return Err(take.damaged("there is neither a clock nor none")),
        };
        state.last_fence = Fence(take.number()?);
        take.ensure(state.last_fence <= Fence::MAX, "its last fence is too large")?;
        state.last_ticket = Ticket(take.number()?);
        state.hold = match take.byte()? {
            0 => None,
            1 => Some(Tick(take.number()?)),
            _ => return Err(take.damaged("nothing says whether grants are held back")),
        };
        Ok(())
    }

    fn principals(&mut self) -> Result<(), RestoreError> {
        for _ in 0..self.take.count(2)? {
            let name = self.take.name(Principal::parse)?;
            let before = self.principals.last().map(|slot| &self.state.principals.get(*slot).name);
            self.take.ensure(before.is_none_or(|before| *before < name), "principals are not in order")?;
            let entry = PrincipalEntry { name, leases: 0, wanted: 0, waits: 0 };
            self.principals.push(self.state.principals.push(entry));
        }
        Ok(())
    }

    fn leases(&mut self) -> Result<(), RestoreError> {
        let count = self.take.count(4 + Terms::LEAST)?;
        // One tree of all ends is made faster than a million insertions into it.
        let mut ends = Vec::with_capacity(count);
        let mut shared = Vec::new();
        let mut fence = Fence(0);
        for _ in 0..count {
            fence = Fence(self.take.after(fence.0)?);
            self.take.ensure(fence <= self.state.last_fence, "a lease was never given out")?;
            let holder = self.holder()?;
            let resource = self.resource()?;
            let terms = Terms::read(&mut self.take)?;
            ends.push((terms.expires_at, fence));
            self.state.enter_lease(LeaseEntry { fence, terms, key: None, resource, holder, place: 0 });
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
        let mut kept_out = Modes::default();
        for lease in self.state.leases_on(resource) {
            self.take.ensure(!kept_out.contains(lease.terms.mode), "two leases do not go together")?;
            kept_out = kept_out.union(Modes::kept_out_by(lease.terms.mode));
        }
        Ok(())
    }

    fn waits(&mut self) -> Result<(), RestoreError> {
        let mut ticket = Ticket(0);
        for _ in 0..self.take.count(5)? {
            ticket = Ticket(self.take.after(ticket.0)?);
            self.take.ensure(ticket <= self.state.last_ticket, "a ticket was never drawn")?;
            let holder = self.holder()?;
            let at = self.take.past()?;
            let until = Tick(self.take.after(at.0)?);
            let (mut wants, mut resources) = (Vec::new(), Vec::new());
            for _ in 0..self.take.count(1)? {
                let first = resources.len();
                resources.push(self.resource()?);
                for _ in 0..self.take.count(1)? {
                    resources.push(self.resource()?);
                }
                let mut names = resources[first..].iter().map(|slot| self.state.resource_name(*slot).clone());
                let resource = names.next().expect("the first was just read");
                let others = Others::new(names);
                wants.push(self.take.want(resource, others)?);
            }
            self.take.ensure(!wants.is_empty(), "it waits for nothing")?;
            self.take.ensure(each_can_have_its_own(&wants), "it waits for one resource twice")?;
            let (name, principal) = (self.state.holder_name(holder), self.state.principal_of(holder).1);
            let (name, principal) = (name.clone(), principal.clone());
            let queued = Queued { ticket, holder: name, principal, wants, at, until, key: None };
            let modes = queued.wants.iter().flat_map(|want| want.resources().map(|_| want.mode));
            let resources: Vec<_> = resources.into_iter().zip(modes).collect();
            self.state.enter_wait(queued, holder, resources);
        }
        Ok(())
    }

    fn resting_holders(&mut self) -> Result<(), RestoreError> {
        let mut before = Tick(0);
        for _ in 0..self.take.count(4)? {
            let name = self.take.name(Holder::parse)?;
            let principal = self.principal()?;
            let since = self.take.past()?;
            self.take.ensure(since >= before, "rests are not in their order")?;
            before = since;
            self.state.rests += 1;
            let number = self.state.rests;
            let slot = self.new_holder(name, principal, Some(Rest { since, number }));
            self.state.idle_holders.insert(number, slot);
        }
        Ok(())
    }

    fn keys(&mut self) -> Result<(), RestoreError> {
        let mut keys = Vec::new();
        for principal in self.principals.clone() {
            let mut before = None;
            for _ in 0..self.take.count(34)? {
                let key = RequestKey::read(&mut self.take)?;
                let ascends = before.is_none_or(|before| before < key.key);
                self.take.ensure(ascends, "keys are not in their order")?;
                before = Some(key.key);
                keys.push(((principal, key.key), self.key(principal, key)?));
            }
        }
        self.state.keys = Keys::from_sorted(keys);
        Ok(())
    }

    fn key(&mut self, principal: Slot, key: RequestKey) -> Result<KeyEntry, RestoreError> {
        let count = self.take.count(1)?;
        if count == 0 {
            let ticket = Ticket(self.take.number()?);
            if ticket == Ticket(0) {
                let spent = SpentUnderKey::read(&mut self.take)?;
                let given_out = spent.lease <= self.state.last_fence;
                self.take.ensure(given_out, "a key leads to a lease that never was")?;
                let outcome = KeyOutcome::Spent(Box::new(spent));
                return Ok(KeyEntry { body: key.body, outcome, live: 0, forget_at: Some(self.forget_at()?) });
            }
            let waiting = self.state.waits.get_mut(&ticket);
            let waiting = waiting.ok_or_else(|| self.take.damaged("a key waits for nothing"))?;
            let own = self.state.holders.get(waiting.holder).principal == principal;
            self.take.ensure(own, "a key leads to somebody else's ticket")?;
            let earlier = waiting.queued.key.replace(key);
            self.take.ensure(earlier.is_none(), "two keys lead to one ticket")?;
            let outcome = KeyOutcome::Waiting(ticket);
            return Ok(KeyEntry { body: key.body, outcome, live: 0, forget_at: None });
        }
        let (mut leases, mut live, mut fence) = (Vec::with_capacity(count), 0, Fence(0));
        for _ in 0..count {
            fence = Fence(self.take.after(fence.0)?);
            self.take.ensure(fence <= self.state.last_fence, "a key leads to a lease that never was")?;
            if let Some(slot) = self.state.by_fence.get(fence) {
                let lease = self.state.leases.get_mut(slot);
                let own = self.state.holders.get(lease.holder).principal == principal;
                self.take.ensure(own, "a key leads to somebody else's lease")?;
                let earlier = lease.key.replace(Box::new(key));
                self.take.ensure(earlier.is_none(), "two keys lead to one lease")?;
                live += 1;
            }
            leases.push(fence);
        }
        let forget_at = if live == 0 { Some(self.forget_at()?) } else { None };
        Ok(KeyEntry { body: key.body, outcome: KeyOutcome::Leases(leases), live, forget_at })
    }

    /// No later than for a key whose last lease ended just now: the queue of keys goes by that.
    fn forget_at(&mut self) -> Result<Tick, RestoreError> {
        let forget_at = Tick(self.take.after(self.state.now.0)?);
        let latest = self.state.now.saturating_add(KEY_KEPT);
        self.take.ensure(forget_at <= latest, "a key is kept too long")?;
        Ok(forget_at)
    }

    fn ended_leases(&mut self) -> Result<(), RestoreError> {
        let mut before = Tick(0);
        for _ in 0..self.take.count(8 + Terms::LEAST)? {
            let fence = Fence(self.take.after(0)?);
            let over = self.state.by_fence.get(fence).is_none() && self.state.ended(fence).is_none();
            self.take.ensure(fence <= self.state.last_fence && over, "an ended lease lives or never was")?;
            let resource = self.take.name(Resource::parse)?;
            let holder = self.take.name(Holder::parse)?;
            let principal = self.principal()?;
            let principal = self.state.principals.get(principal).name.clone();
            let terms = Terms::read(&mut self.take)?;
            let ended_at = self.take.past()?;
            self.take.ensure(ended_at >= before, "ends are not in their order")?;
            before = ended_at;
            self.state.ended.add(EndedLease {
                fence,
                resource,
                holder,
                principal,
                terms,
                ended_at,
                end: End::read(&mut self.take)?,
                work: None,
            });
        }
        Ok(())
    }

    fn resource(&mut self) -> Result<Slot, RestoreError> {
        let number = self.take.number()?;
        if number == 0 {
            let name = self.take.name(Resource::parse)?;
            let entry = ResourceEntry { name, leases: Few::None, queue: Default::default() };
            let slot = self.state.resources.push(entry);
            self.resources.push(slot);
            return Ok(slot);
        }
        self.numbered(&self.resources, number - 1, "there is no such resource")
    }

    fn principal(&mut self) -> Result<Slot, RestoreError> {
        let number = self.take.number()?;
        self.numbered(&self.principals, number, "there is no such principal")
    }

    fn holder(&mut self) -> Result<Slot, RestoreError> {
        let number = self.take.number()?;
        if number == 0 {
            let name = self.take.name(Holder::parse)?;
            let principal = self.principal()?;
            let slot = self.new_holder(name, principal, None);
            self.holders.push(slot);
            return Ok(slot);
        }
        self.numbered(&self.holders, number - 1, "there is no such holder")
    }

    fn numbered(&self, slots: &[Slot], place: u64, missing: &'static str) -> Result<Slot, RestoreError> {
        let found = usize::try_from(place).ok().and_then(|place| slots.get(place));
        found.copied().ok_or_else(|| self.take.damaged(missing))
    }

    fn new_holder(&mut self, name: Holder, principal: Slot, rest: Option<Rest>) -> Slot {
        let (leases, tickets) = (Own::default(), Default::default());
        self.state.holders.push(HolderEntry { name, principal, leases, tickets, rest })
    }

    /// From here on, everything is found by its name.
    fn names(&mut self) -> Result<(), RestoreError> {
        self.take.ensure(self.state.principals.index_all(), "a principal stands twice")?;
        self.take.ensure(self.state.holders.index_all(), "a holder stands twice")?;
        self.take.ensure(self.state.resources.index_all(), "a resource stands twice")?;
        let state = &mut self.state;
        state.resources.iter().for_each(|(slot, entry)| state.reaches.insert(&entry.name, slot));
        let fits = state.invariant_what_overlaps_goes_together().is_ok();
        self.take.ensure(fits, "two leases that overlap do not go together")
    }
}
