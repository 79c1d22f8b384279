//! Reading and writing byte forms, of which each value has exactly one.

use thiserror::Error;

/// Bytes that are not the form they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// Another program wrote this, or a newer version of this one.
    #[error("form {found} is unknown; this version reads form {known}")]
    UnknownVersion {
        /// What it says.
        found: u8,
        /// What can be read.
        known: u8,
    },
    /// It ends too early.
    #[error("it is cut off")]
    Truncated,
    /// Something follows where nothing may.
    #[error("something follows its end")]
    TrailingBytes,
    /// A part has a value that it cannot have.
    #[error("its {part} {problem}")]
    Invalid {
        /// Which part.
        part: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
}

/// Takes a byte form apart from its beginning. Every method fails where it ends too early.
pub(super) struct ByteReader<'a> {
    rest: &'a [u8],
}

impl<'a> ByteReader<'a> {
    /// Reads `bytes`, which must begin with the version byte `known`.
    pub(super) fn with_version(known: u8, bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Self { rest: bytes };
        match reader.array()? {
            [found] if found == known => Ok(reader),
            [found] => Err(DecodeError::UnknownVersion { found, known }),
        }
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(super) fn u16(&mut self) -> Result<u16, DecodeError> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_be_bytes)
    }

    /// A text with its length before it.
    pub(super) fn text(&mut self, part: &'static str) -> Result<&'a str, DecodeError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| DecodeError::Invalid { part, problem: "is not UTF-8" })
    }

    /// Bytes with their length before them.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = u32::from_be_bytes(self.array()?);
        let length = usize::try_from(length).map_err(|_| DecodeError::Truncated)?;
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    /// All that is left.
    pub(super) fn remaining(self) -> &'a [u8] {
        self.rest
    }

    /// Sees that nothing is left.
    pub(super) fn finish(self) -> Result<(), DecodeError> {
        if self.rest.is_empty() { Ok(()) } else { Err(DecodeError::TrailingBytes) }
    }
}

/// Writes a text with its length before it, so that no two lists of texts give the same bytes.
pub(super) fn put_text(bytes: &mut Vec<u8>, text: impl AsRef<[u8]>) {
    let text = text.as_ref();
    // A name has at most 4 KiB. Were one ever longer than 4 GiB, its length would be wrong and nothing verify.
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(text);
}
