//! One thread that is told by the system when a process ends, for however many are watched.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::{Errno, read, write};
use tenure_gate::process::Watch;
use tokio::sync::oneshot;

/// Tells when processes end. The thread ends with this.
#[derive(Default)]
pub(super) struct Deaths(Mutex<Option<Arc<Shared>>>);

struct Shared {
    bell: OwnedFd,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    new: Vec<Watched>,
    is_over: bool,
}

struct Watched {
    watch: Watch,
    tell: oneshot::Sender<()>,
}

impl Deaths {
    /// Is told something when the process ends; nothing, if there is no thread for it.
    pub(super) fn watch(&self, watch: Watch) -> Option<oneshot::Receiver<()>> {
        let shared = self.shared()?;
        let (tell, told) = oneshot::channel();
        {
            let mut state = shared.state.lock();
            // Nobody would be told by a thread that has ended.
            if state.is_over {
                return None;
            }
            state.new.push(Watched { watch, tell });
        }
        shared.ring();
        Some(told)
    }

    fn shared(&self) -> Option<Arc<Shared>> {
        let mut shared = self.0.lock();
        if shared.is_none() {
            let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok()?;
            let fresh = Arc::new(Shared { bell, state: Mutex::default() });
            let own = fresh.clone();
            thread::Builder::new().name("deaths".into()).spawn(move || own.listen()).ok()?;
            *shared = Some(fresh);
        }
        shared.clone()
    }
}

impl Drop for Deaths {
    fn drop(&mut self) {
        if let Some(shared) = self.0.lock().take() {
            shared.state.lock().is_over = true;
            shared.ring();
        }
    }
}

impl Shared {
    fn ring(&self) {
        // A bell that has been rung so often that it takes no more rings all the same.
        let _ = write(&self.bell, &1u64.to_ne_bytes());
    }

    fn listen(&self) {
        self.watch_all();
        let mut state = self.state.lock();
        state.is_over = true;
        // Whoever waits is told, and looks for itself.
        state.new.clear();
    }

    fn watch_all(&self) {
        let mut watched: Vec<Watched> = Vec::new();
        loop {
            {
                let mut state = self.state.lock();
                if state.is_over {
                    return;
                }
                watched.append(&mut state.new);
            }
            let mut descriptors = vec![PollFd::new(&self.bell, PollFlags::IN)];
            let own: Vec<_> = watched.iter().map(|watched| watched.watch.as_fd()).collect();
            descriptors.extend(own.iter().map(|descriptor| PollFd::new(descriptor, PollFlags::IN)));
            match poll(&mut descriptors, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
            let ended: Vec<bool> = descriptors[1..].iter().map(|found| !found.revents().is_empty()).collect();
            let _ = read(&self.bell, &mut [0u8; 8]);
            let mut ended = ended.into_iter();
            let (over, rest) = watched.into_iter().partition(|_| ended.next().unwrap_or(false));
            watched = rest;
            let over: Vec<Watched> = over;
            for watched in over {
                let _ = watched.tell.send(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tenure_gate::process::Process;

    use super::*;

    #[tokio::test]
    async fn watch_returns_nothing_after_the_thread_has_ended() {
        let deaths = Deaths::default();
        let own = || Watch::of(&Process::own().unwrap()).unwrap();
        let told = deaths.watch(own()).unwrap();
        let shared = deaths.shared().unwrap();
        shared.state.lock().is_over = true;
        shared.ring();
        assert!(told.await.is_err(), "it ends without a word, and whoever waits looks for itself");
        assert!(deaths.watch(own()).is_none());
    }
}
