//! How a test or a simulator tells a faulty disk what is to go wrong.

use super::faults::Faults;
use super::faulty_disk::{DiskState, FaultyDisk};
use super::rng::FaultRng;

/// Operations are what changes something or makes it durable: creating, writing, renaming, removing, syncing. They
/// are counted from 0; what only reads is not counted.
impl FaultyDisk {
    /// How many operations there were so far.
    pub fn operation_count(&self) -> u64 {
        self.state().faults.operations
    }

    /// After `count` more operations the machine goes off in the middle of the next one: that one has happened, or
    /// a part of it, or nothing. Every call fails from then on, until a restart.
    pub fn crash_after(&self, count: u64) {
        self.state().faults.crash_after = Some(count);
    }

    /// Whether the machine went off.
    pub fn is_powered_off(&self) -> bool {
        self.state().faults.is_powered_off
    }

    /// The power was cut, and comes back. What was synced is there. Of each sector of 512 bytes that was written and
    /// not synced, the old content is there, or any that was written; a file that grew has its old length or its
    /// new one. Of names that were changed and not synced, the changes that hang together (they have a name in
    /// common) are kept up to any point, and what hangs together with nothing else is kept or undone by itself.
    pub fn restart_after_power_cut(&self) {
        let mut parts = self.state();
        let DiskState { entries: names, files, rng, .. } = &mut *parts;
        files.values_mut().for_each(|content| content.lose_power(rng));
        names.lose_power(rng);
        parts.drop_unlinked_files();
        parts.begin_process();
    }

    /// Only the process was killed, and another one starts: nothing that was written is lost, and nothing that was
    /// not synced is durable. What a failed sync gave up may show itself as it is on the platter now.
    pub fn restart_process(&self) {
        let mut parts = self.state();
        let DiskState { files, rng, .. } = &mut *parts;
        files.values_mut().for_each(|content| content.evict(rng));
        parts.begin_process();
    }

    /// A copy of the disk as it is, with a chance of its own: one crash can be looked at in many ways.
    pub fn fork(&self, seed: u64) -> FaultyDisk {
        FaultyDisk::from_state(DiskState { rng: FaultRng::new(seed), ..self.state().clone() })
    }

    /// Over this many bytes, writes and creations fail for want of space; a write may be done in part. Files take
    /// whole sectors, and at least one. `None`: there is no end.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state().faults.capacity = bytes;
    }

    /// How many bytes are taken.
    pub fn used_bytes(&self) -> u64 {
        self.state().used_bytes()
    }

    /// After `count` more syncs, of files or of names, one fails. The sectors of that file hold old or new content,
    /// and no later sync writes them, though it says that all is well.
    pub fn fail_sync_after(&self, count: u64) {
        self.state().faults.failing_sync = Some(count);
    }

    /// After `count` more writes one fails, done in part.
    pub fn fail_write_after(&self, count: u64) {
        self.state().faults.failing_write = Some(count);
    }

    /// After `count` more syncs one takes this many microseconds, of whatever time the caller has.
    pub fn stall_sync_after(&self, count: u64, microseconds: u64) {
        self.state().faults.stalling_sync = Some((count, microseconds));
    }

    /// How many microseconds syncs have taken since this was last asked.
    pub fn take_sync_duration(&self) -> u64 {
        std::mem::take(&mut self.state().faults.sync_cost)
    }

    /// From now on, syncs say that all is well and make nothing durable; or they are honest again.
    pub fn set_ignoring_syncs(&self, ignores_syncs: bool) {
        self.state().faults.ignores_syncs = ignores_syncs;
    }

    /// After `count` more reads one gives another bit than what is there.
    pub fn flip_bit_after(&self, count: u64) {
        self.state().faults.flipping_read = Some(count);
    }

    /// Nothing more goes wrong than has gone wrong already.
    pub fn clear_faults(&self) {
        let mut parts = self.state();
        let Faults { operations, is_powered_off: is_off, sync_cost, .. } = parts.faults;
        parts.faults = Faults { operations, is_powered_off: is_off, sync_cost, ..Faults::default() };
    }
}

impl DiskState {
    fn begin_process(&mut self) {
        self.process += 1;
        self.is_locked = false;
        self.faults.is_powered_off = false;
        self.faults.crash_after = None;
    }
}
