//! From the state to bytes.

use std::num::NonZeroU32;

use super::VERSION;
use super::bytes::CheckpointWriter;
use super::fields::CheckpointCodec;
use crate::kernel::state::retention::{IdempotencyEntry, IdempotencyOutcome};
use crate::kernel::state::{KernelState, QueueEntry, Slot};
use crate::value::{Fence, RequestDigest, Resource};

impl KernelState {
    /// Writes the state as bytes, piece by piece, from which [`KernelState::restore`] makes one that decides and
    /// applies everything as this one does.
    ///
    /// The same events lead to the same bytes, whatever the hash seed and whether or not the state was restored
    /// in between. Limits and the ledger's tag are not part of it.
    ///
    /// ```
    /// use tenure_core::kernel::KernelState;
    /// let mut bytes = Vec::new();
    /// KernelState::default().save(&mut |piece| bytes.extend_from_slice(piece));
    /// let state = KernelState::restore(&bytes, Default::default(), Default::default(), Default::default());
    /// assert_eq!(state.map(|state| state.to_comparable()), Ok(KernelState::default().to_comparable()));
    /// ```
    pub fn save(&self, write: &mut dyn FnMut(&[u8])) {
        let mut saving = CheckpointEncoder {
            state: self,
            writer: CheckpointWriter::new(write, self.now),
            principals: SlotNumbering::default(),
            holders: SlotNumbering::default(),
            resources: SlotNumbering::default(),
        };
        saving.head();
        let principals = saving.principals();
        saving.leases();
        saving.queue_entries();
        saving.idle_holders();
        principals.into_iter().for_each(|principal| saving.keys_of(principal));
        saving.ended_leases();
        saving.writer.encode_intent_sessions(self);
        saving.writer.encode_agents(self);
        saving.writer.encode_work_leases(self);
        saving.writer.encode_files(self);
        saving.writer.finish();
    }
}

struct CheckpointEncoder<'a> {
    state: &'a KernelState,
    writer: CheckpointWriter<'a>,
    principals: SlotNumbering,
    holders: SlotNumbering,
    resources: SlotNumbering,
}

impl CheckpointEncoder<'_> {
    fn head(&mut self) {
        let (state, put) = (self.state, &mut self.writer);
        put.byte(VERSION);
        put.varint(state.now.0);
        put.byte(u8::from(state.clock.is_some()));
        if let Some(clock) = &state.clock {
            put.past_tick(clock.tick);
            put.text(&clock.reading.clock);
            put.varint(clock.reading.microseconds);
            put.varint(clock.tick.since(clock.anchor.tick).0);
            put.varint(clock.anchor.wall);
        }
        put.varint(state.last_fence.0);
        put.varint(state.last_ticket.0);
        put.byte(u8::from(state.restore_hold.is_some()));
        if let Some(hold) = state.restore_hold {
            put.varint(hold.0);
        }
    }

    /// Gives the principals, which it writes, their numbers.
    fn principals(&mut self) -> Vec<Slot> {
        let mut principals: Vec<_> = self.state.principals.iter().collect();
        principals.sort_unstable_by_key(|(_, entry)| &entry.name);
        self.writer.count(principals.len());
        for (slot, entry) in &principals {
            self.writer.text(entry.name.as_str());
            self.principals.add(*slot);
        }
        principals.into_iter().map(|(slot, _)| slot).collect()
    }

    fn leases(&mut self) {
        let state = self.state;
        self.writer.count(state.leases.len());
        let mut before = 0;
        for slot in state.by_fence.iter_from(Fence(0)) {
            let lease = state.leases.get(slot);
            self.writer.delta(&mut before, lease.fence.0);
            self.holder(lease.holder);
            self.resource(lease.resource);
            lease.terms.write(&mut self.writer);
        }
    }

    fn queue_entries(&mut self) {
        self.writer.count(self.state.queue_entries.len());
        let mut before = 0;
        for (ticket, waiting) in &self.state.queue_entries {
            let QueueEntry { queued, holder, .. } = waiting;
            self.writer.delta(&mut before, ticket.0);
            self.holder(*holder);
            self.writer.past_tick(queued.at);
            self.writer.varint(queued.until.since(queued.at).0);
            self.writer.count(queued.requests.len());
            for request in &queued.requests {
                self.resource_named(&request.resource);
                self.writer.count(request.alternatives.len());
                request.alternatives.iter().for_each(|resource| self.resource_named(resource));
                self.writer.request(request);
            }
        }
    }

    fn idle_holders(&mut self) {
        self.writer.count(self.state.idle_holders.len());
        for slot in self.state.idle_holders.values() {
            let entry = self.state.holders.get(*slot);
            self.writer.text(entry.name.as_str());
            self.principal(entry.principal);
            let since = entry.idle.map_or(self.state.now, |rest| rest.since);
            self.writer.past_tick(since);
        }
    }

    fn keys_of(&mut self, principal: Slot) {
        let keys = || self.state.keys.of_principal(principal);
        self.writer.count(keys().count());
        keys().for_each(|(key, entry)| self.key(key, entry));
    }

    fn key(&mut self, key: &RequestDigest, entry: &IdempotencyEntry) {
        let put = &mut self.writer;
        put.bytes(&key.0);
        put.bytes(&entry.body.0);
        match &entry.outcome {
            IdempotencyOutcome::Waiting(ticket) => {
                put.count(0);
                put.varint(ticket.0);
            }
            // No lease, and no ticket either.
            IdempotencyOutcome::Spent(spent) => {
                put.count(0);
                put.varint(0);
                spent.write(put);
            }
            IdempotencyOutcome::Leases(leases) => {
                put.count(leases.len());
                let mut before = 0;
                leases.iter().for_each(|fence| put.delta(&mut before, fence.0));
            }
        }
        if let Some(forget_at) = entry.forget_at {
            put.varint(forget_at.since(self.state.now).0);
        }
    }

    fn ended_leases(&mut self) {
        self.writer.count(self.state.ended_leases.oldest_first().count());
        for ended in self.state.ended_leases.oldest_first() {
            self.writer.varint(ended.fence.0);
            self.writer.text(ended.resource.as_str());
            self.writer.text(ended.holder.as_str());
            let principal = self.state.find_principal(&ended.principal);
            self.principal(principal.expect("principals are never forgotten"));
            ended.terms.write(&mut self.writer);
            (ended.ended_at, ended.end).write(&mut self.writer);
        }
    }

    fn holder(&mut self, slot: Slot) {
        match self.holders.get(slot) {
            Some(number) => self.writer.varint(u64::from(number.get())),
            None => {
                let entry = self.state.holders.get(slot);
                self.writer.varint(0);
                self.writer.text(entry.name.as_str());
                self.principal(entry.principal);
                self.holders.add(slot);
            }
        }
    }

    fn resource(&mut self, slot: Slot) {
        match self.resources.get(slot) {
            Some(number) => self.writer.varint(u64::from(number.get())),
            None => {
                self.writer.varint(0);
                self.writer.text(self.state.resource_name(slot).as_str());
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
        self.writer.varint(u64::from(number.get()) - 1);
    }
}

/// Numbers from 1 for slots, in the order in which they are added.
#[derive(Default)]
struct SlotNumbering {
    numbers: Vec<Option<NonZeroU32>>,
    last: u32,
}

impl SlotNumbering {
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
