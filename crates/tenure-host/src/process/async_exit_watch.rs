//! The end of a process, as a future.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use tenure_core::kernel::ProcessId;
use tokio::io::unix::AsyncFd;

use super::ProcessExitWatch;

#[derive(Debug)]
pub struct AsyncExitWatch(Option<AsyncFd<OwnedFd>>);

impl AsyncExitWatch {
    /// Watches this process, if there is one and it can be watched.
    pub fn new(process: Option<&ProcessId>) -> Self {
        Self(process.and_then(|process| watch(process).ok().flatten()))
    }

    /// Returns when it has ended; never, if it cannot be watched.
    pub async fn wait(&self) {
        match &self.0 {
            Some(process) if process.readable().await.is_ok() => {}
            _ => std::future::pending().await,
        }
    }
}

#[expect(
    deprecated,
    reason = "what could go wrong is a descriptor that is closed or becomes another; one that we own is neither"
)]
fn watch(process: &ProcessId) -> io::Result<Option<AsyncFd<OwnedFd>>> {
    let watch = ProcessExitWatch::of(process).map(|watch| watch.as_fd().try_clone_to_owned());
    watch.transpose()?.map(AsyncFd::new).transpose()
}
