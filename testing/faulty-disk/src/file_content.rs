//! The content of a file: now, and after a power cut.

use std::collections::{BTreeMap, BTreeSet};

use super::rng::FaultRng;

/// What a disk writes whole or not at all.
pub(crate) const SECTOR: usize = 512;

type Sector = [u8; SECTOR];

/// The bytes of one file. Both forms are kept in whole sectors, filled with zeros behind the end.
#[derive(Debug, Clone, Default)]
pub(crate) struct FileContent {
    /// What the system's memory says.
    cached: FileImage,
    /// What is on the platter.
    durable: FileImage,
    /// What was written to each sector since it was last synced, oldest first. Any of it may be on the platter.
    dirty: BTreeMap<usize, Vec<Sector>>,
    /// Sectors that a failed sync gave up: nobody will write them again, and the platter may hold something else.
    lost_sectors: BTreeSet<usize>,
}

#[derive(Debug, Clone, Default)]
struct FileImage {
    bytes: Vec<u8>,
    length: usize,
}

impl FileImage {
    fn sector(&self, index: usize) -> Sector {
        let from = index * SECTOR;
        self.bytes.get(from..from + SECTOR).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; SECTOR])
    }

    fn put(&mut self, index: usize, sector: &Sector) {
        let (from, end) = (index * SECTOR, (index + 1) * SECTOR);
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[from..end].copy_from_slice(sector);
    }

    /// Nothing stands behind the end, and all before it is there.
    fn set_length(&mut self, length: usize) {
        self.length = length;
        self.bytes.resize(length.div_ceil(SECTOR) * SECTOR, 0);
        self.bytes[length..].fill(0);
    }
}

impl FileContent {
    pub(crate) fn length(&self) -> usize {
        self.cached.length
    }

    /// How much of the disk it takes: at least a sector, also when it is empty.
    pub(crate) fn allocated_size(&self) -> usize {
        allocated_size_for(self.cached.length)
    }

    pub(crate) fn read(&self, offset: usize, length: usize) -> Vec<u8> {
        let end = offset.saturating_add(length).min(self.cached.length);
        self.cached.bytes.get(offset..end).unwrap_or_default().to_vec()
    }

    pub(crate) fn write(&mut self, bytes: &[u8], offset: usize) {
        let end = offset + bytes.len();
        if bytes.is_empty() {
            return;
        }
        if end > self.cached.length {
            self.cached.set_length(end);
        }
        self.cached.bytes[offset..end].copy_from_slice(bytes);
        for index in offset / SECTOR..end.div_ceil(SECTOR) {
            self.dirty.entry(index).or_default().push(self.cached.sector(index));
            self.lost_sectors.remove(&index);
        }
    }

    /// Everything that was written is on the platter, but for what an earlier sync gave up.
    pub(crate) fn sync(&mut self) {
        for (index, _) in std::mem::take(&mut self.dirty) {
            self.durable.put(index, &self.cached.sector(index));
        }
        self.durable.set_length(self.cached.length);
    }

    /// As ext4 does: an error, and then nobody tries again. Each sector is on the platter as it was, or as it was
    /// written at any time since; reads go on to see what is in memory.
    pub(crate) fn persist_random_sectors(&mut self, rng: &mut FaultRng) {
        let cached = self.cached.clone();
        let lost_sectors: Vec<usize> = self.dirty.keys().copied().collect();
        self.lose_power(rng);
        self.cached = cached;
        self.lost_sectors.extend(lost_sectors);
    }

    /// The memory is used for something else: what was given up is read from the platter from now on.
    pub(crate) fn evict(&mut self, rng: &mut FaultRng) {
        for index in std::mem::take(&mut self.lost_sectors) {
            let sector =
                if rng.random_bool() { self.durable.sector(index) } else { self.cached.sector(index) };
            if (index + 1) * SECTOR <= self.cached.bytes.len() {
                self.cached.put(index, &sector);
            }
        }
    }

    /// The platter is all that is left, with each unsynced sector in any state that it had, and of a file that grew
    /// the old length or the new one.
    pub(crate) fn lose_power(&mut self, rng: &mut FaultRng) {
        let grew = self.cached.length > self.durable.length;
        let length = if grew && rng.random_bool() { self.cached.length } else { self.durable.length };
        for (index, versions) in std::mem::take(&mut self.dirty) {
            let kept = rng.below(versions.len() + 1);
            if let Some(version) = kept.checked_sub(1).and_then(|kept| versions.get(kept)) {
                self.durable.put(index, version);
            }
        }
        self.durable.set_length(length);
        self.lost_sectors.clear();
        self.cached = self.durable.clone();
    }
}

/// How much of the disk a file of this length takes.
pub(crate) fn allocated_size_for(length: usize) -> usize {
    length.div_ceil(SECTOR).max(1) * SECTOR
}
