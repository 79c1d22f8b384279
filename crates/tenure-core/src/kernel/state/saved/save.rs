//! From the state to bytes.

use std::num::NonZeroU32;

use super::VERSION;
use super::bytes::Put;
use super::part::Saved;
use crate::kernel::name::Resource;
use crate::kernel::state::memory::{KeyEntry, KeyOutcome};
use crate::kernel::state::{Slot, State, Waiting};
use crate::kernel::value::{Digest, Fence};

impl State {
    /// Writes the state as bytes, piece by piece, from which [`State::restore`] makes one that decides and
    /// applies everything as this one does.
    ///
    /// The same events lead to the same bytes, whatever the hash key and whether or not the state was restored
    /// in between. Limits and the ledger's tag are not part of it.
    ///
    /// ```
    /// use tenure_core::kernel::State;
    /// let mut bytes = Vec::new();
    /// State::default().save(&mut |piece| bytes.extend_from_slice(piece));
    /// let state = State::restore(&bytes, Default::default(), Default::default(), Default::default());
    /// assert_eq!(state.map(|state| state.snapshot()), Ok(State::default().snapshot()));
    /// ```
    pub fn save(&self, write: &mut dyn FnMut(&[u8])) {
        let mut saving = Saving {
            state: self,
            put: Put::new(write, self.now),
            principals: Numbering::default(),
            holders: Numbering::default(),
            resources: Numbering::default(),
        };
        saving.head();
        let principals = saving.principals();
        saving.leases();
        saving.waits();
        saving.resting_holders();
        principals.into_iter().for_each(|principal| saving.keys_of(principal));
        saving.ended_leases();
        saving.put.sessions(self);
        saving.put.agents(self);
        saving.put.works(self);
        saving.put.files(self);
        saving.put.finish();
    }
}

struct Saving<'a> {
    state: &'a State,
    put: Put<'a>,
    principals: Numbering,
    holders: Numbering,
    resources: Numbering,
}

impl Saving<'_> {
    fn head(&mut self) {
        let (state, put) = (self.state, &mut self.put);
        put.byte(VERSION);
        put.number(state.now.0);
        put.byte(u8::from(state.clock.is_some()));
        if let Some(clock) = &state.clock {
            put.past(clock.tick);
            put.text(&clock.reading.clock);
            put.number(clock.reading.microseconds);
            put.number(clock.tick.since(clock.anchor.tick).0);
            put.number(clock.anchor.wall);
        }
        put.number(state.last_fence.0);
        put.number(state.last_ticket.0);
        put.byte(u8::from(state.hold.is_some()));
        if let Some(hold) = state.hold {
            put.number(hold.0);
        }
    }

    /// Gives the principals, which it writes, their numbers.
    fn principals(&mut self) -> Vec<Slot> {
        let mut principals: Vec<_> = self.state.principals.iter().collect();
        principals.sort_unstable_by_key(|(_, entry)| &entry.name);
        self.put.count(principals.len());
        for (slot, entry) in &principals {
            self.put.text(entry.name.as_str());
            self.principals.add(*slot);
        }
        principals.into_iter().map(|(slot, _)| slot).collect()
    }

    fn leases(&mut self) {
        let state = self.state;
        self.put.count(state.leases.len());
        let mut before = 0;
        for slot in state.by_fence.from(Fence(0)) {
            let lease = state.leases.get(slot);
            self.put.after(&mut before, lease.fence.0);
            self.holder(lease.holder);
            self.resource(lease.resource);
            lease.terms.put(&mut self.put);
        }
    }

    fn waits(&mut self) {
        self.put.count(self.state.waits.len());
        let mut before = 0;
        for (ticket, waiting) in &self.state.waits {
            let Waiting { queued, holder, .. } = waiting;
            self.put.after(&mut before, ticket.0);
            self.holder(*holder);
            self.put.past(queued.at);
            self.put.number(queued.until.since(queued.at).0);
            self.put.count(queued.wants.len());
            for want in &queued.wants {
                self.resource_named(&want.resource);
                self.put.count(want.others.len());
                want.others.iter().for_each(|resource| self.resource_named(resource));
                self.put.want(want);
            }
        }
    }

    fn resting_holders(&mut self) {
        self.put.count(self.state.idle_holders.len());
        for slot in self.state.idle_holders.values() {
            let entry = self.state.holders.get(*slot);
            self.put.text(entry.name.as_str());
            self.principal(entry.principal);
            let since = entry.rest.map_or(self.state.now, |rest| rest.since);
            self.put.past(since);
        }
    }

    fn keys_of(&mut self, principal: Slot) {
        let keys = || self.state.keys.of(principal);
        self.put.count(keys().count());
        keys().for_each(|(key, entry)| self.key(key, entry));
    }

    fn key(&mut self, key: &Digest, entry: &KeyEntry) {
        let put = &mut self.put;
        put.bytes(&key.0);
        put.bytes(&entry.body.0);
        match &entry.outcome {
            KeyOutcome::Waiting(ticket) => {
                put.count(0);
                put.number(ticket.0);
            }
            // No lease, and no ticket either.
            KeyOutcome::Spent(spent) => {
                put.count(0);
                put.number(0);
                spent.put(put);
            }
            KeyOutcome::Leases(leases) => {
                put.count(leases.len());
                let mut before = 0;
                leases.iter().for_each(|fence| put.after(&mut before, fence.0));
            }
        }
        if let Some(forget_at) = entry.forget_at {
            put.number(forget_at.since(self.state.now).0);
        }
    }

    fn ended_leases(&mut self) {
        self.put.count(self.state.ended.in_order().count());
        for ended in self.state.ended.in_order() {
            self.put.number(ended.fence.0);
            self.put.text(ended.resource.as_str());
            self.put.text(ended.holder.as_str());
            let principal = self.state.find_principal(&ended.principal);
            self.principal(principal.expect("principals are never forgotten"));
            ended.terms.put(&mut self.put);
            (ended.ended_at, ended.end).put(&mut self.put);
        }
    }

    fn holder(&mut self, slot: Slot) {
        match self.holders.get(slot) {
            Some(number) => self.put.number(u64::from(number.get())),
            None => {
                let entry = self.state.holders.get(slot);
                self.put.number(0);
                self.put.text(entry.name.as_str());
                self.principal(entry.principal);
                self.holders.add(slot);
            }
        }
    }

    fn resource(&mut self, slot: Slot) {
        match self.resources.get(slot) {
            Some(number) => self.put.number(u64::from(number.get())),
            None => {
                self.put.number(0);
                self.put.text(self.state.resource_name(slot).as_str());
                self.resources.add(slot);
            }
        }
    }

    fn resource_named(&mut self, name: &Resource) {
        let slot = self.state.find_resource(name);
        self.resource(slot.expect("whoever waits stands in the queue of each resource that it names"));
    }

    fn principal(&mut self, slot: Slot) {
        let number = self.principals.get(slot).expect("every principal has a number");
        self.put.number(u64::from(number.get()) - 1);
    }
}

/// Numbers from 1 for slots, in the order in which they are added.
#[derive(Default)]
struct Numbering {
    numbers: Vec<Option<NonZeroU32>>,
    last: u32,
}

impl Numbering {
    fn get(&self, slot: Slot) -> Option<NonZeroU32> {
        *self.numbers.get(slot.index())?
    }

    fn add(&mut self, slot: Slot) {
        if self.numbers.len() <= slot.index() {
            self.numbers.resize(slot.index() + 1, None);
        }
        self.last += 1;
        self.numbers[slot.index()] = NonZeroU32::new(self.last);
    }
}
