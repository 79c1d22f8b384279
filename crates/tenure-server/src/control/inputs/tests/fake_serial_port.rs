//! The other end of a serial port: a terminal that the system makes.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};
use serde_json::Value;
use tokio::io::unix::AsyncFd;

use super::wait_until;

/// Somebody at a terminal. When this is dropped, the port is unplugged.
pub(super) struct FakeSerialPort {
    file: AsyncFd<OwnedFd>,
    partial_line: Vec<u8>,
    lines: VecDeque<String>,
}

impl FakeSerialPort {
    /// Plugs a port in: `path` leads to it.
    #[expect(deprecated, reason = "the descriptor is ours, and stays open as long as this")]
    pub(super) fn plug_in(path: &Path) -> Self {
        let file = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&file).unwrap();
        unlockpt(&file).unwrap();
        let name = ptsname(&file, Vec::new()).unwrap().into_string().unwrap();
        let _ = std::fs::remove_file(path);
        symlink(PathBuf::from(name), path).unwrap();
        rustix::io::ioctl_fionbio(&file, true).unwrap();
        Self { file: AsyncFd::new(file).unwrap(), partial_line: Vec::new(), lines: VecDeque::new() }
    }

    /// Waits until somebody has opened the other end and made it raw.
    pub(super) async fn wait_until_opened(&self) {
        let is_raw = || !tcgetattr(self.file.get_ref()).unwrap().local_modes.contains(LocalModes::ECHO);
        wait_until("the port is opened", is_raw).await;
    }

    /// The speed that the other end chose.
    pub(super) fn speed(&self) -> u32 {
        tcgetattr(self.file.get_ref()).unwrap().output_speed()
    }

    /// Sends bytes as the port takes them.
    pub(super) async fn send(&self, bytes: impl AsRef<[u8]>) {
        let mut rest = bytes.as_ref();
        while !rest.is_empty() {
            let mut ready = self.file.writable().await.unwrap();
            if let Ok(written) = ready.try_io(|file| Ok(rustix::io::write(file.get_ref(), rest)?)) {
                rest = &rest[written.unwrap()..];
            }
        }
    }

    pub(super) async fn answer(&mut self) -> Value {
        let reading = async {
            loop {
                if let Some(line) = self.lines.pop_front() {
                    return serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
                }
                self.read().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), reading).await.expect("an answer")
    }

    /// Sends a line and reads its answer.
    pub(super) async fn send_and_receive(&mut self, line: &str) -> Value {
        self.send(format!("{line}\r\n")).await;
        self.answer().await
    }

    async fn read(&mut self) {
        let mut buffer = [0; 4096];
        let mut ready = self.file.readable().await.unwrap();
        let Ok(read) = ready.try_io(|file| Ok(rustix::io::read(file.get_ref(), &mut buffer)?)) else {
            return;
        };
        self.partial_line.extend_from_slice(&buffer[..read.unwrap()]);
        while let Some(end) = self.partial_line.windows(2).position(|two| two == b"\r\n") {
            let line = self.partial_line.drain(..end + 2).take(end).collect();
            self.lines.push_back(String::from_utf8(line).unwrap());
        }
    }
}
