//! A device's file, read and written without ever waiting for it.

use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::fs::{FileType, Mode, OFlags, fstat, open, stat};
use rustix::termios::{ControlModes, OptionalActions, QueueSelector, isatty, tcflush, tcgetattr, tcsetattr};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;

/// How often it is looked whether the path still leads to the device that is open.
const REPLACED_CHECK_INTERVAL: Duration = Duration::from_secs(1);

pub(super) struct DeviceFile {
    file: AsyncFd<OwnedFd>,
    path: PathBuf,
}

impl DeviceFile {
    /// Opens a serial port: raw, eight bits, no parity, nothing that could hold back what is written.
    pub(super) fn serial(path: &Path, baud: u32) -> io::Result<Self> {
        // Not our controlling terminal, and no waiting for a carrier.
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = open(path, flags, Mode::empty())?;
        if !isatty(&file) {
            return Err(io::Error::other("it is no serial port"));
        }
        let mut modes = tcgetattr(&file)?;
        modes.make_raw();
        modes.control_modes.insert(ControlModes::CLOCAL | ControlModes::CREAD);
        modes.control_modes.remove(ControlModes::CRTSCTS | ControlModes::CSTOPB | ControlModes::HUPCL);
        modes.set_speed(baud)?;
        // What was sent while nobody listened was meant for somebody else.
        tcflush(&file, QueueSelector::IFlush)?;
        // At once: to wait until everything is written could be to wait for ever.
        tcsetattr(&file, OptionalActions::Now, &modes)?;
        Self::new(file, path, Interest::READABLE | Interest::WRITABLE)
    }

    /// Opens an input device, or a pipe that stands for one.
    pub(super) fn input(path: &Path) -> io::Result<Self> {
        let found = FileType::from_raw_mode(stat(path)?.st_mode);
        let access = match found {
            // With us as a writer it has no end while nobody else writes.
            FileType::Fifo => OFlags::RDWR,
            FileType::CharacterDevice => OFlags::RDONLY,
            _ => return Err(io::Error::other("it is neither an input device nor a pipe")),
        };
        let flags = access | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Self::new(open(path, flags, Mode::empty())?, path, Interest::READABLE)
    }

    #[expect(
        deprecated,
        reason = "what could go wrong is a descriptor that is closed or becomes another; one that we own is neither"
    )]
    fn new(file: OwnedFd, path: &Path, interest: Interest) -> io::Result<Self> {
        Ok(Self { file: AsyncFd::with_interest(file, interest)?, path: path.to_owned() })
    }

    /// Reads what there is, or waits for it. An end is an error: a device has none while it is there.
    pub(super) async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut ready = self.file.readable().await?;
            let read = ready.try_io(|file| Ok(rustix::io::read(file.get_ref(), &mut *buffer)?));
            match read {
                Ok(Ok(0)) => return Err(gone()),
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(read) => return read,
                // Somebody else was faster, or it was a false alarm.
                Err(_) => {}
            }
        }
    }

    /// Writes as much as the port takes, or waits until it takes something.
    pub(super) async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            let mut ready = self.file.writable().await?;
            let written = ready.try_io(|file| Ok(rustix::io::write(file.get_ref(), bytes)?));
            match written {
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(written) => return written,
                Err(_) => {}
            }
        }
    }

    /// Waits until the path leads elsewhere. Not every device says by itself that it is gone.
    pub(super) async fn wait_until_replaced(&self) -> io::Error {
        loop {
            tokio::time::sleep(REPLACED_CHECK_INTERVAL).await;
            let same = match (stat(&self.path), fstat(self.file.get_ref())) {
                (Ok(there), Ok(open)) => (there.st_dev, there.st_ino) == (open.st_dev, open.st_ino),
                _ => false,
            };
            if !same {
                return gone();
            }
        }
    }
}

impl Drop for DeviceFile {
    fn drop(&mut self) {
        // Closing would wait until the other side has read everything. What is no terminal has nothing to flush.
        let _ = tcflush(self.file.get_ref(), QueueSelector::OFlush);
    }
}

fn gone() -> io::Error {
    io::Error::other("it was unplugged")
}

/// How long until the first try to open it again.
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(100);
/// And at most, if it stays away.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(2);
/// Who has been there so long is back.
const STABLE_AFTER: Duration = Duration::from_millis(500);

/// What keeps an input from being heard. It is said for as long as it lasts, and so people are told once.
#[derive(Clone, Default)]
pub(super) struct InputHealth(Arc<Mutex<Option<String>>>);

impl InputHealth {
    pub(super) fn message(&self) -> Option<String> {
        self.0.lock().clone()
    }

    pub(super) fn report(&self, what: String) {
        *self.0.lock() = Some(what);
    }

    pub(super) fn clear(&self) {
        *self.0.lock() = None;
    }
}

/// Waits until nobody is to listen any more.
pub(super) async fn wait_for_stop(stop: &mut watch::Receiver<bool>) {
    // An error means that whoever could say so is gone: the same.
    let _ = stop.wait_for(|is_stopped| *is_stopped).await;
}

/// Keeps a device open and listens to it with `listen`, which ends with the reason why it cannot go on.
pub(super) async fn run_with_reconnect<L: Future<Output = io::Error>>(
    name: &str,
    path: &Path,
    health: &InputHealth,
    mut stop: watch::Receiver<bool>,
    open: impl Fn(&Path) -> io::Result<DeviceFile>,
    mut listen: impl FnMut(DeviceFile) -> L,
) {
    let mut wait = FIRST_RETRY_DELAY;
    while !*stop.borrow() {
        let reason = match open(path) {
            Err(reason) => reason,
            Ok(port) => {
                let mut listening = std::pin::pin!(listen(port));
                // One that is gone as soon as it is there has not come back.
                let soon = tokio::select! {
                    reason = &mut listening => Some(reason),
                    () = tokio::time::sleep(STABLE_AFTER) => None,
                };
                match soon {
                    Some(reason) => reason,
                    None => {
                        health.clear();
                        wait = FIRST_RETRY_DELAY;
                        listening.await
                    }
                }
            }
        };
        if *stop.borrow() {
            return;
        }
        health.report(format!(
            "the {name} {} cannot be used: {reason}; what comes from it does nothing until it is there again, and that \
             is tried over and over",
            path.display()
        ));
        tokio::select! {
            () = wait_for_stop(&mut stop) => return,
            () = tokio::time::sleep(wait) => wait = MAX_RETRY_DELAY.min(wait * 2),
        }
    }
}
