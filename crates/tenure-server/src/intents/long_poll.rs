//! Wakes whoever waits for sessions: when the ledger has a change of one, and when the worker's guard is gone.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tenure_core::kernel::{Event, Fence, KernelState, LEADER_LOCK, leader_lock_resource};
use tenure_ledger::Seq;
use tenure_registrar::runtime::{Observer, StateView};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::app::App;
use crate::http::response::HttpError;

/// Observes the feed for the API of intents.
pub(super) struct IntentSessionWaker {
    signal: watch::Sender<u64>,
    /// Whether what is being told will change something for who waits.
    is_due: AtomicBool,
    /// The guard's fence; 0 where nobody has had it.
    leader_fence: AtomicU64,
}

pub(super) struct PollResult<T> {
    pub(super) found: T,
    /// Whether that is what was waited for.
    pub(super) is_enough: bool,
    /// When to look again though nothing was told.
    pub(super) again_in: Option<Duration>,
}

impl IntentSessionWaker {
    pub(super) fn new(view: &StateView) -> Self {
        let held = view.read(|state| {
            state.leases_on_resource(&leader_lock_resource()).next().map(|lease| lease.fence.0)
        });
        Self {
            signal: watch::Sender::new(0),
            is_due: AtomicBool::new(false),
            leader_fence: AtomicU64::new(held.unwrap_or(0)),
        }
    }

    fn is_leader_fence(&self, lease: Fence) -> bool {
        self.leader_fence.load(Ordering::Relaxed) == lease.0
    }
}

impl Observer for IntentSessionWaker {
    fn before_event(&self, _: Seq, event: &Event, _: &KernelState) {
        match event {
            Event::Intent(_) => self.is_due.store(true, Ordering::Relaxed),
            Event::Issued(issued) if issued.resource.as_str() == LEADER_LOCK => {
                self.leader_fence.store(issued.fence.0, Ordering::Relaxed);
            }
            Event::Released { lease, .. } | Event::Expired { lease, .. } | Event::Revoked { lease, .. }
                if self.is_leader_fence(*lease) =>
            {
                self.is_due.store(true, Ordering::Relaxed);
            }
            _ => {}
        }
    }

    fn batch_published(&self, _: Duration) {
        // By now the view has it: whoever looks sees it.
        if self.is_due.swap(false, Ordering::Relaxed) {
            self.signal.send_modify(|times| *times += 1);
        }
    }
}

/// Looks until it is enough, the time is up, or the server stops; each time something was told that may matter.
pub(super) async fn long_poll<T>(
    app: &App,
    wait_ms: u64,
    mut look: impl FnMut() -> Result<PollResult<T>, HttpError>,
) -> Result<T, HttpError> {
    let deadline = Instant::now() + Duration::from_millis(wait_ms);
    let mut signal = app.intents.session_waker.signal.subscribe();
    let mut is_last = wait_ms == 0;
    loop {
        // Marked as seen before looking: what comes in between wakes it again.
        signal.borrow_and_update();
        let PollResult { found, is_enough, again_in } = look()?;
        if is_enough || is_last {
            return Ok(found);
        }
        let again = again_in.map(|time| Instant::now() + time);
        tokio::select! {
            changed = signal.changed() => is_last = changed.is_err(),
            () = sleep_until(again.map_or(deadline, |again| again.min(deadline))) => {}
            () = app.wait_for_stop() => is_last = true,
            () = app.registrar.wait_until_ended() => is_last = true,
        }
        is_last |= Instant::now() >= deadline;
    }
}
