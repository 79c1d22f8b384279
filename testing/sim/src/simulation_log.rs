//! What happened, line by line. Two runs of one seed must write the same lines.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use crate::records_digest::RecordsDigest;

/// Hashes every line, and keeps them only where somebody will read them.
#[derive(Debug, Default)]
pub struct SimulationLog {
    hasher: blake3::Hasher,
    buffer: String,
    lines: Option<Vec<String>>,
    coverage: EventCoverage,
    records_digest: RecordsDigest,
}

/// How often each kind of thing happened: laws say little about a world in which nothing does.
pub type EventCoverage = BTreeMap<&'static str, u64>;

impl SimulationLog {
    /// A log that remembers nothing but its digest.
    pub fn digest_only() -> Self {
        Self::default()
    }

    /// A log that keeps its lines.
    pub fn with_lines() -> Self {
        Self { lines: Some(Vec::new()), ..Self::default() }
    }

    pub fn line(&mut self, line: fmt::Arguments<'_>) {
        self.buffer.clear();
        let _ = self.buffer.write_fmt(line);
        self.hasher.update(self.buffer.as_bytes());
        self.hasher.update(b"\n");
        if let Some(kept) = &mut self.lines {
            kept.push(self.buffer.clone());
        }
    }

    /// Counts that something of this kind happened.
    pub fn record_coverage(&mut self, kind: &'static str) {
        *self.coverage.entry(kind).or_default() += 1;
    }

    /// The digest that no renaming changes.
    pub fn records_digest(&mut self) -> &mut RecordsDigest {
        &mut self.records_digest
    }

    pub fn coverage(&self) -> &EventCoverage {
        &self.coverage
    }

    /// The digest of all lines so far.
    pub fn digest(&self) -> [u8; 32] {
        *self.hasher.finalize().as_bytes()
    }

    /// The lines, if they were kept.
    pub fn lines(&self) -> &[String] {
        self.lines.as_deref().unwrap_or_default()
    }
}
