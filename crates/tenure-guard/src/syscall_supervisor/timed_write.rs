//! Writes with a timeout, to a reader that may not read.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use tenure_client::boot_microseconds as now;

/// So much goes into a pipe that has room, without waiting.
const MAX_WRITE_BYTES: usize = 4096;
/// Before it is tried again where there seemed to be room.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// Writes all of it. `TimedOut` if somebody has to read before there is room, and does not in this time.
pub fn write_with_timeout(file: &File, bytes: &[u8], patience: Duration) -> io::Result<()> {
    let until = now().saturating_add(u64::try_from(patience.as_micros()).unwrap_or(u64::MAX));
    match FileType::from_raw_mode(fstat(file)?.st_mode) {
        FileType::Socket => {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            in_parts(file, bytes, until, |part| send(file, part, flags))
        }
        FileType::Fifo | FileType::CharacterDevice => match opened_again(file) {
            Ok(own) => in_parts(&own, bytes, until, |part| rustix::io::write(&own, part)),
            Err(_) => in_parts(file, bytes, until, |part| rustix::io::write(file, part)),
        },
        _ => (&mut &*file).write_all(bytes),
    }
}

/// The same pipe or terminal, without waiting. That others wait, who have it from whoever gave it to us, must stay so: what we have
/// of it is the same to the system as what they have.
fn opened_again(file: &File) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    open(format!("/proc/self/fd/{}", file.as_raw_fd()), flags, Mode::empty())
}

fn in_parts(
    place: impl AsFd,
    mut bytes: &[u8],
    until: u64,
    write: impl Fn(&[u8]) -> rustix::io::Result<usize>,
) -> io::Result<()> {
    while !bytes.is_empty() {
        let remaining = until.saturating_sub(now());
        let is_writable = wait(&place, remaining)?;
        let written =
            if is_writable { write(&bytes[..bytes.len().min(MAX_WRITE_BYTES)]) } else { Err(Errno::AGAIN) };
        match written {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::AGAIN | Errno::INTR) if remaining == 0 => return Err(io::ErrorKind::TimedOut.into()),
            Err(Errno::AGAIN | Errno::INTR) => drop(poll(&mut [], Some(&PAUSE))),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Waits for room, at most so many microseconds. Says whether there is any.
fn wait(place: &impl AsFd, remaining: u64) -> io::Result<bool> {
    let seconds = i64::try_from(remaining / 1_000_000).unwrap_or(i64::MAX);
    let rest = i64::try_from(remaining % 1_000_000).unwrap_or_default();
    let timeout = Timespec { tv_sec: seconds, tv_nsec: rest * 1_000 };
    match poll(&mut [PollFd::new(place, PollFlags::OUT)], Some(&timeout)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::net::UnixStream;

    use rustix::fs::fcntl_getfl;

    use super::*;

    const SHORT: Duration = Duration::from_millis(50);

    #[test]
    fn write_to_a_full_pipe_times_out() {
        let (mut reader, writer) = io::pipe().unwrap();
        let pipe = File::from(OwnedFd::from(writer));
        let text = vec![b'x'; 1_000];
        let failed = loop {
            if let Err(error) = write_with_timeout(&pipe, &text, SHORT) {
                break error;
            }
        };
        assert_eq!(failed.kind(), io::ErrorKind::TimedOut);
        assert!(!fcntl_getfl(&pipe).unwrap().contains(OFlags::NONBLOCK), "others who have it still wait");
        reader.read_exact(&mut vec![0; 32 * 1024]).unwrap();
        write_with_timeout(&pipe, &text, SHORT).unwrap();
        drop(reader);
        assert_eq!(write_with_timeout(&pipe, &text, SHORT).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn write_to_a_full_socket_times_out() {
        let (mut reader, writer) = UnixStream::pair().unwrap();
        let socket = File::from(OwnedFd::from(writer));
        let text = vec![b'x'; 10_000];
        let failed = loop {
            if let Err(error) = write_with_timeout(&socket, &text, SHORT) {
                break error;
            }
        };
        assert_eq!(failed.kind(), io::ErrorKind::TimedOut);
        reader.set_nonblocking(true).unwrap();
        while reader.read(&mut vec![0; 100_000]).is_ok() {}
        write_with_timeout(&socket, b"more", SHORT).unwrap();
    }
}
