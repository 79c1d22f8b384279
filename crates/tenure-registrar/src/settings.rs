//! Bounds on what gathers.

/// How much the registrar takes on at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The most requests that wait to be decided. One more is told at once that the registrar is busy.
    pub inbox: usize,
    /// The most requests in one durable write. With this many events, no further request is taken in either:
    /// one that asks for many leases must not make a write that nobody can sign or send.
    pub batch: usize,
    /// The most ends that are announced in one durable write, so that a million of them delay nobody for long.
    pub sweep: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { inbox: 8_192, batch: 1_024, sweep: 1_024 }
    }
}
