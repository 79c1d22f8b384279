//! One thread that is told by the system when a process ends, for however many are watched.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::{Errno, read, write};
use tenure_gate::process::ProcessExitWatch;
use tokio::sync::oneshot;

/// Tells when processes end. The thread ends with this.
#[derive(Default)]
pub(super) struct ProcessExitWatcher(Mutex<Option<Arc<ExitWatcherShared>>>);

struct ExitWatcherShared {
    wake_fd: OwnedFd,
    state: Mutex<ExitWatcherState>,
}

#[derive(Default)]
struct ExitWatcherState {
    new: Vec<WatchEntry>,
    is_closed: bool,
}

struct WatchEntry {
    watch: ProcessExitWatch,
    sender: oneshot::Sender<()>,
}

impl ProcessExitWatcher {
    /// Is told something when the process ends; nothing, if there is no thread for it.
    pub(super) fn watch(&self, watch: ProcessExitWatch) -> Option<oneshot::Receiver<()>> {
        let shared = self.shared()?;
        let (sender, receiver) = oneshot::channel();
        {
            let mut state = shared.state.lock();
            // Nobody would be told by a thread that has ended.
            if state.is_closed {
                return None;
            }
            state.new.push(WatchEntry { watch, sender });
        }
        shared.wake();
        Some(receiver)
    }

    fn shared(&self) -> Option<Arc<ExitWatcherShared>> {
        let mut shared = self.0.lock();
        if shared.is_none() {
            let wake_fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok()?;
            let created = Arc::new(ExitWatcherShared { wake_fd, state: Mutex::default() });
            let own = created.clone();
            thread::Builder::new().name("deaths".into()).spawn(move || own.listen()).ok()?;
            *shared = Some(created);
        }
        shared.clone()
    }
}

impl Drop for ProcessExitWatcher {
    fn drop(&mut self) {
        if let Some(shared) = self.0.lock().take() {
            shared.state.lock().is_closed = true;
            shared.wake();
        }
    }
}

impl ExitWatcherShared {
    fn wake(&self) {
        // A bell that has been rung so often that it takes no more rings all the same.
        let _ = write(&self.wake_fd, &1u64.to_ne_bytes());
    }

    fn listen(&self) {
        self.watch_all();
        let mut state = self.state.lock();
        state.is_closed = true;
        // Whoever waits is told, and looks for itself.
        state.new.clear();
    }

    fn watch_all(&self) {
        let mut watched: Vec<WatchEntry> = Vec::new();
        loop {
            {
                let mut state = self.state.lock();
                if state.is_closed {
                    return;
                }
                watched.append(&mut state.new);
            }
            let mut descriptors = vec![PollFd::new(&self.wake_fd, PollFlags::IN)];
            let own: Vec<_> = watched.iter().map(|watched| watched.watch.as_fd()).collect();
            descriptors.extend(own.iter().map(|descriptor| PollFd::new(descriptor, PollFlags::IN)));
            match poll(&mut descriptors, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
            let ended: Vec<bool> = descriptors[1..].iter().map(|found| !found.revents().is_empty()).collect();
            let _ = read(&self.wake_fd, &mut [0u8; 8]);
            let mut ended = ended.into_iter();
            let (exited, rest) = watched.into_iter().partition(|_| ended.next().unwrap_or(false));
            watched = rest;
            let finished: Vec<WatchEntry> = exited;
            for watched in finished {
                let _ = watched.sender.send(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tenure_gate::process;

    use super::*;

    #[tokio::test]
    async fn watch_returns_nothing_after_the_thread_has_ended() {
        let watcher = ProcessExitWatcher::default();
        let own = || ProcessExitWatch::of(&process::own().unwrap()).unwrap();
        let receiver = watcher.watch(own()).unwrap();
        let shared = watcher.shared().unwrap();
        shared.state.lock().is_closed = true;
        shared.wake();
        assert!(receiver.await.is_err(), "it ends without a word, and whoever waits looks for itself");
        assert!(watcher.watch(own()).is_none());
    }
}
