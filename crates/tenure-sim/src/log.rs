//! What happened, line by line. Two runs of one seed must write the same lines.

use std::fmt::{self, Write as _};

/// Hashes every line, and keeps them only where somebody will read them.
#[derive(Debug, Default)]
pub struct Log {
    hasher: blake3::Hasher,
    buffer: String,
    kept: Option<Vec<String>>,
}

impl Log {
    /// A log that remembers nothing but its digest.
    pub fn hashed() -> Self {
        Self::default()
    }

    /// A log that keeps its lines.
    pub fn kept() -> Self {
        Self { kept: Some(Vec::new()), ..Self::default() }
    }

    /// Writes a line.
    pub fn line(&mut self, line: fmt::Arguments<'_>) {
        self.buffer.clear();
        let _ = self.buffer.write_fmt(line);
        self.hasher.update(self.buffer.as_bytes());
        self.hasher.update(b"\n");
        if let Some(kept) = &mut self.kept {
            kept.push(self.buffer.clone());
        }
    }

    /// The digest of all lines so far.
    pub fn digest(&self) -> [u8; 32] {
        *self.hasher.finalize().as_bytes()
    }

    /// The lines, if they were kept.
    pub fn lines(&self) -> &[String] {
        self.kept.as_deref().unwrap_or_default()
    }
}
