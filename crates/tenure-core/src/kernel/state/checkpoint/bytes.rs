//! Numbers and texts as bytes. It knows no leases.

use super::RestoreError;
use crate::value::Tick;

/// Collects bytes and passes them on in pieces: a million leases never stand in memory a second time.
pub(in crate::kernel) struct CheckpointWriter<'a> {
    piece: Vec<u8>,
    write: &'a mut dyn FnMut(&[u8]),
    /// From which ticks that have passed are counted back.
    pub(in crate::kernel) now: Tick,
}

const CHUNK_BYTES: usize = 1 << 16;

impl<'a> CheckpointWriter<'a> {
    pub(in crate::kernel) fn new(write: &'a mut dyn FnMut(&[u8]), now: Tick) -> Self {
        Self { piece: Vec::with_capacity(CHUNK_BYTES + CHUNK_BYTES / 4), write, now }
    }

    pub(in crate::kernel) fn byte(&mut self, byte: u8) {
        self.piece.push(byte);
    }

    pub(in crate::kernel) fn bytes(&mut self, bytes: &[u8]) {
        self.piece.extend_from_slice(bytes);
    }

    /// Seven bits a byte, lowest first; the highest bit says that more follow.
    pub(in crate::kernel) fn varint(&mut self, number: u64) {
        if self.piece.len() >= CHUNK_BYTES {
            self.flush();
        }
        let mut rest = number;
        while rest >= 0x80 {
            self.piece.push(low_bits(rest) | 0x80);
            rest >>= 7;
        }
        self.piece.push(low_bits(rest));
    }

    pub(in crate::kernel) fn count(&mut self, count: usize) {
        self.varint(count as u64);
    }

    pub(in crate::kernel) fn text(&mut self, text: &str) {
        self.count(text.len());
        self.bytes(text.as_bytes());
    }

    pub(in crate::kernel) fn finish(mut self) {
        self.flush();
    }

    fn flush(&mut self) {
        (self.write)(&self.piece);
        self.piece.clear();
    }
}

fn low_bits(number: u64) -> u8 {
    number.to_le_bytes()[0] & 0x7f
}

/// Reads what [`CheckpointWriter`] wrote. Nothing that it is told makes it panic or allocate.
pub(in crate::kernel) struct CheckpointReader<'a> {
    rest: &'a [u8],
    length: usize,
    /// From which ticks that have passed are counted back; 0 until the head was read.
    pub(in crate::kernel) now: Tick,
}

impl<'a> CheckpointReader<'a> {
    pub(in crate::kernel) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, length: bytes.len(), now: Tick(0) }
    }

    pub(in crate::kernel) fn byte(&mut self) -> Result<u8, RestoreError> {
        let (first, rest) = self.rest.split_first().ok_or_else(|| self.too_short())?;
        self.rest = rest;
        Ok(*first)
    }

    pub(in crate::kernel) fn array<const LENGTH: usize>(&mut self) -> Result<[u8; LENGTH], RestoreError> {
        let (first, rest) = self.rest.split_first_chunk().ok_or_else(|| self.too_short())?;
        self.rest = rest;
        Ok(*first)
    }

    pub(in crate::kernel) fn varint(&mut self) -> Result<u64, RestoreError> {
        let mut number = 0_u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            let fits = shift + 7 <= u64::BITS || bits >> (u64::BITS - shift) == 0;
            self.ensure(fits, "a number has over 64 bits")?;
            number |= bits << shift;
            if byte < 0x80 {
                self.ensure(byte != 0 || shift == 0, "a number is longer than it need be")?;
                return Ok(number);
            }
        }
        Err(self.damaged("a number has over 64 bits"))
    }

    /// A number that grows: `before` and a distance.
    pub(in crate::kernel) fn delta(&mut self, before: u64) -> Result<u64, RestoreError> {
        let distance = self.varint()?;
        self.ensure(distance > 0, "two numbers are the same")?;
        before.checked_add(distance).ok_or_else(|| self.damaged("a number has over 64 bits"))
    }

    /// How many follow, each of at least `least` bytes: as many as could be there at all.
    pub(in crate::kernel) fn count(&mut self, least: usize) -> Result<usize, RestoreError> {
        let count = usize::try_from(self.varint()?).ok();
        let possible = count.filter(|count| *count <= self.rest.len() / least);
        possible.ok_or_else(|| self.too_short())
    }

    pub(in crate::kernel) fn text(&mut self) -> Result<&'a str, RestoreError> {
        let length = self.count(1)?;
        let (text, rest) = self.rest.split_at_checked(length).ok_or_else(|| self.too_short())?;
        let text = std::str::from_utf8(text).map_err(|_| self.damaged("a text is not UTF-8"))?;
        self.rest = rest;
        Ok(text)
    }

    pub(in crate::kernel) fn slice(&mut self, length: usize) -> Result<&'a [u8], RestoreError> {
        let (slice, rest) = self.rest.split_at_checked(length).ok_or_else(|| self.too_short())?;
        self.rest = rest;
        Ok(slice)
    }

    pub(in crate::kernel) fn finish(self) -> Result<(), RestoreError> {
        self.ensure(self.rest.is_empty(), "something follows its end")
    }

    pub(in crate::kernel) fn ensure(&self, holds: bool, otherwise: &'static str) -> Result<(), RestoreError> {
        if holds { Ok(()) } else { Err(self.damaged(otherwise)) }
    }

    pub(in crate::kernel) fn damaged(&self, reason: &'static str) -> RestoreError {
        RestoreError::Damaged { at: self.length - self.rest.len(), reason }
    }

    fn too_short(&self) -> RestoreError {
        self.damaged("it ends too soon")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(what: impl FnOnce(&mut CheckpointWriter<'_>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut write = |piece: &[u8]| bytes.extend_from_slice(piece);
        let mut put = CheckpointWriter::new(&mut write, Tick(0));
        what(&mut put);
        put.finish();
        bytes
    }

    #[test]
    fn varints_round_trip_in_minimal_length() {
        let around = |shift: u32| (1_u64 << shift).saturating_sub(1)..=(1_u64 << shift) + 1;
        for number in (0..u64::BITS).flat_map(around).chain([u64::MAX - 1, u64::MAX]) {
            let bytes = put(|put| put.varint(number));
            let bits = u64::BITS - number.leading_zeros();
            assert_eq!(bytes.len(), bits.div_ceil(7).max(1) as usize, "{number}");
            let mut take = CheckpointReader::new(&bytes);
            assert_eq!(take.varint(), Ok(number));
            assert_eq!(take.finish(), Ok(()));
        }
    }

    #[test]
    fn overlong_and_oversized_varints_are_rejected() {
        let refused = |bytes: &[u8]| CheckpointReader::new(bytes).varint().expect_err("no number");
        let damaged = |at, reason| RestoreError::Damaged { at, reason };
        assert_eq!(refused(&[0x80, 0x00]), damaged(2, "a number is longer than it need be"));
        assert_eq!(refused(&[0x80]), damaged(1, "it ends too soon"));
        let mut large = [0xff; 10];
        large[9] = 0x02;
        assert_eq!(refused(&large), damaged(10, "a number has over 64 bits"));
        assert_eq!(refused(&[0xff; 11]), damaged(10, "a number has over 64 bits"));
    }

    #[test]
    fn length_beyond_the_input_is_rejected_before_allocation() {
        let bytes = put(|put| put.varint(u64::MAX));
        assert!(
            CheckpointReader::new(&bytes).text().is_err() && CheckpointReader::new(&bytes).count(1).is_err()
        );
        let bytes = put(|put| put.text("abcdef"));
        assert_eq!(CheckpointReader::new(&bytes).text(), Ok("abcdef"));
        assert!(CheckpointReader::new(&bytes[..6]).text().is_err());
        assert_eq!(CheckpointReader::new(&bytes).count(1), Ok(6));
        assert!(CheckpointReader::new(&bytes).count(2).is_err());
    }

    #[test]
    fn writer_flushes_in_chunks() {
        let (mut pieces, mut total) = (0, 0);
        let mut write = |piece: &[u8]| {
            pieces += 1;
            total += piece.len();
        };
        let mut put = CheckpointWriter::new(&mut write, Tick(0));
        (0..CHUNK_BYTES as u64).for_each(|_| put.varint(300));
        put.finish();
        assert_eq!((pieces, total), (2, 2 * CHUNK_BYTES));
    }
}
