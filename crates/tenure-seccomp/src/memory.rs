//! What a process that waits has in its memory.

use std::ffi::OsString;
use std::io::{self, IoSliceMut};
use std::os::unix::ffi::OsStringExt as _;

use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

/// The longest text that the system takes as a path, and more than enough for one argument that matters.
const MOST_BYTES: usize = 16 * 1024;
/// How much is read at once. Most paths are shorter.
const STEP: usize = 256;
/// Beyond the end of a page there may be nothing.
const PAGE: usize = 4096;

/// The memory of a thread that waits. It is that thread's only as long as its call still waits: ask the listener afterwards.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    thread: u32,
}

impl Memory {
    /// Of this thread.
    pub fn of(thread: u32) -> Self {
        Self { thread }
    }

    /// The text at this place, up to its zero byte.
    pub fn text(&self, place: u64) -> io::Result<OsString> {
        let (text, is_whole) = self.beginning(place)?;
        if is_whole {
            return Ok(text);
        }
        Err(io::Error::new(io::ErrorKind::InvalidInput, "a text in its memory has no end"))
    }

    /// The text at this place, or the beginning of one that is too long; and whether it is whole.
    fn beginning(&self, place: u64) -> io::Result<(OsString, bool)> {
        let mut bytes = Vec::new();
        let mut at = usize::try_from(place).map_err(io::Error::other)?;
        while bytes.len() < MOST_BYTES {
            let mut part = [0; STEP];
            let length = STEP.min(PAGE - at % PAGE);
            let part = &mut part[..length];
            self.read(at, part)?;
            if let Some(end) = part.iter().position(|byte| *byte == 0) {
                bytes.extend_from_slice(&part[..end]);
                return Ok((OsString::from_vec(bytes), true));
            }
            bytes.extend_from_slice(part);
            at += length;
        }
        Ok((OsString::from_vec(bytes), false))
    }

    /// The texts that a list of places at this place points to, as those of `execve`: at most so many, and of a very long one
    /// the beginning.
    pub fn texts(&self, place: u64, most: usize) -> io::Result<Vec<OsString>> {
        let mut texts = Vec::new();
        let mut at = place;
        while place != 0 && texts.len() < most {
            let one = self.number(at)?;
            if one == 0 {
                break;
            }
            texts.push(self.beginning(one)?.0);
            at += 8;
        }
        Ok(texts)
    }

    /// The number of eight bytes at this place.
    pub fn number(&self, place: u64) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.read(usize::try_from(place).map_err(io::Error::other)?, &mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    fn read(&self, place: usize, into: &mut [u8]) -> io::Result<()> {
        let remote = [RemoteIoVec { base: place, len: into.len() }];
        let wanted = into.len();
        let thread = Pid::from_raw(i32::try_from(self.thread).map_err(io::Error::other)?);
        let read = process_vm_readv(thread, &mut [IoSliceMut::new(into)], &remote)?;
        if read == wanted { Ok(()) } else { Err(io::Error::from(io::ErrorKind::UnexpectedEof)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_numbers_and_lists_are_read_where_they_are() {
        let memory = Memory::of(std::process::id());
        let text = std::ffi::CString::new("x".repeat(5_000)).unwrap();
        let place = |bytes: &[u8]| bytes.as_ptr().addr() as u64;
        assert_eq!(memory.text(place(text.as_bytes())).unwrap().len(), 5_000);
        let list = [place(text.as_bytes()), place(b"two\0"), 0];
        assert_eq!(memory.number(list.as_ptr().addr() as u64).unwrap(), list[0]);
        let texts = memory.texts(list.as_ptr().addr() as u64, 9).unwrap();
        assert_eq!(texts[1], "two");
        assert_eq!(texts.len(), 2);
        assert!(memory.text(8).is_err());
        assert!(memory.texts(0, 9).unwrap().is_empty());
    }
}
