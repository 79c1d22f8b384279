//! Reads the memory of a process whose call is pending.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::FileExt as _;

use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

/// The longest path that the system takes, with the zero byte at its end.
const MAX_PATH_BYTES: usize = 4096;
/// More than enough for one argument that matters.
const MAX_ARGUMENT_BYTES: usize = 16 * 1024;
/// How much is read at once. Most paths are shorter.
const STEP: usize = 256;
/// Beyond the end of a page there may be nothing.
const PAGE: usize = 4096;

/// The memory of a thread that waits. It is that thread's only as long as its call still waits: ask the listener afterwards.
#[derive(Debug, Clone, Copy)]
pub struct ProcessMemory {
    thread: u32,
}

impl ProcessMemory {
    pub fn of_thread(thread: u32) -> Self {
        Self { thread }
    }

    /// The path at this place, up to its zero byte. `ENAMETOOLONG` if it is longer than the system takes.
    pub fn read_path(&self, place: u64) -> io::Result<OsString> {
        let (text, is_whole) = self.read_prefix(place, MAX_PATH_BYTES)?;
        if is_whole && text.len() < MAX_PATH_BYTES {
            return Ok(text);
        }
        Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG))
    }

    /// The text at this place, or the beginning of one that is too long; and whether it is whole.
    fn read_prefix(&self, place: u64, max: usize) -> io::Result<(OsString, bool)> {
        let mut bytes = Vec::new();
        let mut at = usize::try_from(place).map_err(io::Error::other)?;
        while bytes.len() < max {
            let mut part = [0; STEP];
            let length = STEP.min(PAGE - at % PAGE);
            let part = &mut part[..length];
            self.read_bytes(at, part)?;
            if let Some(end) = part.iter().position(|byte| *byte == 0) {
                bytes.extend_from_slice(&part[..end]);
                return Ok((OsString::from_vec(bytes), true));
            }
            bytes.extend_from_slice(part);
            at += length;
        }
        Ok((OsString::from_vec(bytes), false))
    }

    /// The strings that a null-terminated array of pointers refers to, such as the arguments of `execve`: at most `max`.
    /// A very long string is truncated.
    pub fn read_string_array(&self, place: u64, max: usize) -> io::Result<Vec<OsString>> {
        let mut texts = Vec::new();
        let mut at = place;
        while place != 0 && texts.len() < max {
            let one = self.read_u64(at)?;
            if one == 0 {
                break;
            }
            texts.push(self.read_prefix(one, MAX_ARGUMENT_BYTES)?.0);
            at += 8;
        }
        Ok(texts)
    }

    /// The number of eight bytes at this place.
    pub fn read_u64(&self, place: u64) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.read_bytes(usize::try_from(place).map_err(io::Error::other)?, &mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    fn read_bytes(&self, place: usize, into: &mut [u8]) -> io::Result<()> {
        let remote = [RemoteIoVec { base: place, len: into.len() }];
        let expected = into.len();
        let thread = Pid::from_raw(i32::try_from(self.thread).map_err(io::Error::other)?);
        match process_vm_readv(thread, &mut [IoSliceMut::new(into)], &remote) {
            Ok(read) if read == expected => Ok(()),
            Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
            // The call itself may be refused, by the filter of a container. If the process may not be looked into, the other way
            // says so as well.
            Err(refused @ (Errno::EPERM | Errno::ENOSYS)) => {
                self.read_through_proc(place, into).map_err(|error| match error.kind() {
                    io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => refused.into(),
                    _ => error,
                })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The same through `/proc`.
    fn read_through_proc(&self, place: usize, into: &mut [u8]) -> io::Result<()> {
        let memory = File::open(format!("/proc/{}/mem", self.thread))?;
        let place = u64::try_from(place).map_err(io::Error::other)?;
        // A place where nothing is has another name there.
        let is_nowhere = |error: &io::Error| error.raw_os_error() == Some(libc::EIO);
        memory.read_exact_at(into, place).map_err(|error| {
            if is_nowhere(&error) { io::Error::from_raw_os_error(libc::EFAULT) } else { error }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_integers_and_string_arrays_are_read_from_process_memory() {
        let memory = ProcessMemory::of_thread(std::process::id());
        let text = std::ffi::CString::new("x".repeat(4_000)).unwrap();
        let place = |bytes: &[u8]| bytes.as_ptr().addr() as u64;
        assert_eq!(memory.read_path(place(text.as_bytes())).unwrap().len(), 4_000);
        let list = [place(text.as_bytes()), place(b"two\0"), 0];
        assert_eq!(memory.read_u64(list.as_ptr().addr() as u64).unwrap(), list[0]);
        let texts = memory.read_string_array(list.as_ptr().addr() as u64, 9).unwrap();
        assert_eq!(texts[1], "two");
        assert_eq!(texts.len(), 2);
        assert!(memory.read_path(8).is_err());
        assert!(memory.read_string_array(0, 9).unwrap().is_empty());
    }
    #[test]
    fn paths_longer_than_path_max_fail_with_enametoolong() {
        let memory = ProcessMemory::of_thread(std::process::id());
        for (length, is_taken) in [(4_095, true), (4_096, false), (20_000, false)] {
            let text = std::ffi::CString::new("x".repeat(length)).unwrap();
            let read = memory.read_path(text.as_ptr().addr() as u64);
            assert_eq!(read.as_ref().is_ok_and(|text| text.len() == length), is_taken, "{length}");
            assert!(is_taken || read.unwrap_err().raw_os_error() == Some(libc::ENAMETOOLONG), "{length}");
        }
    }

    #[test]
    fn proc_mem_fallback_reads_the_same_bytes() {
        let memory = ProcessMemory::of_thread(std::process::id());
        let text = *b"where it is";
        let (mut one, mut other) = ([0; 11], [0; 11]);
        memory.read_bytes(text.as_ptr().addr(), &mut one).unwrap();
        memory.read_through_proc(text.as_ptr().addr(), &mut other).unwrap();
        assert_eq!((one, other), (text, text));
        let nowhere = memory.read_through_proc(8, &mut other).unwrap_err();
        assert_eq!(nowhere.raw_os_error(), Some(libc::EFAULT));
        assert!(ProcessMemory::of_thread(u32::MAX).read_through_proc(8, &mut other).is_err());
    }
}
