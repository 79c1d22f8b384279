//! Bounds on what gathers.

/// How much the registrar takes on at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchSettings {
    /// The most requests that wait to be decided. One more is told at once that the registrar is busy.
    pub max_waiting: usize,
    /// The most requests in one durable write. With this many events, no further request is taken in either:
    /// one that asks for many leases must not make a write that nobody can sign or send.
    pub max_batch: usize,
    /// The most bytes, about, in one durable write. With this many, no further request is taken in: names and labels
    /// may be long, and the ledger limits what it takes at once.
    pub max_batch_bytes: usize,
    /// The most ends that are announced in one durable write, so that a million of them delay nobody for long.
    pub max_sweep: usize,
    /// So many requests are decided at a time while a write is under way. Whoever waits for that write is answered, and the
    /// next one begun, after so many more decisions at most.
    pub stride: usize,
    /// With so many decided, the next write does not wait until all that came in are: the disk would stand still.
    pub write_threshold: usize,
}

/// What an end takes on the disk, at most.
const MAX_END_BYTES: u64 = 256;

impl BatchSettings {
    /// The same for a ledger whose batches have so many bytes at most.
    #[must_use]
    pub fn with_max_batch_bytes(self, bytes: u64) -> BatchSettings {
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        BatchSettings {
            max_batch_bytes: self.max_batch_bytes.min(count(bytes)),
            max_sweep: self.max_sweep.min(count(bytes / MAX_END_BYTES).max(1)),
            ..self
        }
    }
}

impl Default for BatchSettings {
    fn default() -> Self {
        Self {
            max_waiting: 8_192,
            max_batch: 1_024,
            max_batch_bytes: 1 << 20,
            max_sweep: 1_024,
            stride: 12,
            write_threshold: 40,
        }
    }
}
