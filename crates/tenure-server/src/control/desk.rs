//! The device and whose hand is on it, behind one lock: the device's serial point.
//!
//! The hand changes when the ledger has it, on the thread that tells everybody, before the one who asked is answered. What
//! was let in before is looked at again here, so nothing takes effect after a change of hands that was sent before it.

mod listening;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Map, Value};
use tenure_control::device::VirtualDevice;
use tenure_control::{Class, Done, Hand, Held, Owner, Pass, Problem, Refusal, Source, Uptime};
use tenure_core::kernel::{Fence, Span, Tick};
use tenure_registrar::shell::View;
use tokio::sync::{Notify, broadcast, watch};

use super::change::Change;
use super::counters::{Counters, Counts};
use super::message::Blocked;
use super::store::Store;
use super::writer::{Writer, not_stored};

/// The resource of the one lease.
pub(crate) const RESOURCE: &str = "control:global";
/// Of resources that only a face of its own may lease.
pub(crate) const DOMAIN: &str = "control:";

/// So many changes may wait for a connection that does not take them. One that is further behind is let go.
const MOST_CHANGES: usize = 256;

/// What is configured of the lease.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    pub(super) ttl: Span,
    pub(super) heartbeat_interval_ms: u32,
}

/// The device and whose hand is on it.
pub(crate) struct Desk {
    inner: Mutex<Inner>,
    view: Arc<View>,
    pub(super) uptime: Uptime,
    pub(super) terms: Terms,
    pub(crate) counters: Counters,
    changes: broadcast::Sender<Arc<Change>>,
    hands: watch::Sender<u64>,
    /// The stream's next deadline may have moved.
    deadline_moved: Notify,
    writer: Writer,
    next_client: AtomicU32,
    /// The fence of the lease, 0 while there is none. Every event of every lease is compared with it, and few are this
    /// one's.
    fence: AtomicU64,
}

struct Inner {
    hand: Hand,
    device: VirtualDevice,
    /// Connections that asked for the lease, by the name that the ledger knows.
    claims: HashMap<Arc<str>, Claim>,
}

/// A connection that asked for the lease.
pub(super) struct Claim {
    pub(super) owner: Owner,
    /// Why it gives the lease back, in its own words.
    pub(super) reason: Option<Arc<str>>,
    /// Whether what it asks for is the lease, and not only more time.
    pub(super) is_acquiring: bool,
}

impl Desk {
    pub(super) fn new(
        view: Arc<View>,
        uptime: Uptime,
        terms: Terms,
        device: VirtualDevice,
        store: Store,
    ) -> Self {
        let stored = device.stored();
        let inner = Inner { hand: Hand::default(), device, claims: HashMap::new() };
        Self {
            inner: Mutex::new(inner),
            view,
            uptime,
            terms,
            counters: Counters::new(),
            changes: broadcast::Sender::new(MOST_CHANGES),
            hands: watch::Sender::new(0),
            deadline_moved: Notify::new(),
            writer: Writer::new(store, stored),
            next_client: AtomicU32::new(1),
            fence: AtomicU64::new(0),
        }
    }

    /// The time by which the lease lives. Not while the lock is held: the thread that tells everybody holds what this
    /// needs while it waits for the lock.
    pub(super) fn now(&self) -> Tick {
        self.view.now()
    }

    /// A number to show for a connection.
    pub(super) fn next_client_id(&self) -> u32 {
        self.next_client.fetch_add(1, Ordering::Relaxed)
    }

    /// Tells of every change of the lease from now on.
    pub(super) fn changes(&self) -> broadcast::Receiver<Arc<Change>> {
        self.changes.subscribe()
    }

    /// Tells of every change of hands: how many there were.
    pub(crate) fn hands(&self) -> watch::Receiver<u64> {
        self.hands.subscribe()
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counters.read(self.uptime)
    }

    pub(super) fn look<T>(&self, look: impl FnOnce(Option<&Held>, Tick) -> T) -> T {
        let now = self.now();
        look(self.inner.lock().hand.held(), now)
    }

    /// Whether a WebSocket may send a command of this class.
    pub(crate) fn pass_websocket(&self, identity: &str, class: Class) -> Result<Pass, Refusal> {
        self.pass(Source::WebSocket, |hand, now| hand.pass_websocket(identity, class, now))
    }

    /// The same for a frame, of which many may be kept out in a second.
    pub(super) fn pass_frame(&self, identity: &str) -> Result<Pass, Refusal> {
        let now = self.now();
        let passed = self.inner.lock().hand.pass_websocket(identity, Class::Streams, now);
        passed.inspect_err(|_| self.counters.blocked_frame())
    }

    /// Whether a request that shows this may do what is of this class.
    pub(crate) fn pass_rest(
        &self,
        token: Option<&str>,
        lease_id: Option<&str>,
        class: Class,
    ) -> Result<Pass, Refusal> {
        self.pass(Source::Rest, |hand, now| hand.pass_rest(token, lease_id, class, now))
    }

    /// Whether the knob or the serial port may do what is of this class.
    pub(crate) fn pass_local(&self, source: Source, class: Class) -> Result<Pass, Refusal> {
        self.pass(source, |hand, now| hand.pass_local(source, class, now))
    }

    fn pass(
        &self,
        source: Source,
        ask: impl FnOnce(&Hand, Tick) -> Result<Pass, Refusal>,
    ) -> Result<Pass, Refusal> {
        let now = self.now();
        let passed = ask(&self.inner.lock().hand, now);
        passed.inspect_err(|_| self.counters.blocked(source))
    }

    pub(crate) fn still_counts(&self, pass: Pass) -> Result<(), Refusal> {
        let now = self.now();
        self.inner.lock().hand.still_counts(pass, now)
    }

    /// Does what a command says, if its pass still counts. What must outlive a restart is on the disk when this returns.
    pub(crate) async fn carry_out(
        &self,
        pass: Pass,
        command: &str,
        fields: Map<String, Value>,
    ) -> Result<Value, Blocked> {
        self.obey(pass, |device, now| device.carry_out(command, fields, now)).await
    }

    /// Lets the device do something, if the pass still counts.
    pub(super) async fn obey(
        &self,
        pass: Pass,
        act: impl FnOnce(&mut VirtualDevice, Tick) -> Result<Done, Problem>,
    ) -> Result<Value, Blocked> {
        let now = self.now();
        let (done, stored) = {
            let inner = &mut *self.inner.lock();
            inner.hand.still_counts(pass, now)?;
            let done = act(&mut inner.device, now)?;
            // In the order in which it happened: the last one written is the last one that was done.
            let stored = done.must_store.then(|| self.writer.turn(inner.device.stored()));
            (done, stored)
        };
        self.deadline_moved.notify_one();
        if let Some(turn) = stored
            && let Err(unwritten) = self.writer.write(turn).await
        {
            if let Some(stored) = unwritten.instead {
                self.inner.lock().device.take_back(stored);
            }
            return Err(not_stored().into());
        }
        Ok(done.data)
    }

    /// Shows a frame, if its pass still counts.
    pub(super) fn frame(&self, pass: Pass, bytes: &[u8]) -> Result<(), Blocked> {
        let now = self.now();
        let inner = &mut *self.inner.lock();
        inner.hand.still_counts(pass, now)?;
        Ok(inner.device.frame(bytes, now)?)
    }

    /// This connection is about to ask for the lease.
    pub(super) fn claim(&self, claim: Claim) {
        self.inner.lock().claims.insert(claim.owner.identity.clone(), claim);
    }

    /// It is about to give it back, for this reason; or to ask for more time.
    pub(super) fn intends(&self, identity: &str, reason: Option<Arc<str>>, is_acquiring: bool) {
        if let Some(claim) = self.inner.lock().claims.get_mut(identity) {
            claim.reason = reason;
            claim.is_acquiring = is_acquiring;
        }
    }

    /// This connection is gone. The answer is the lease that it leaves behind.
    pub(super) fn leave(&self, identity: &str) -> Option<Fence> {
        let inner = &mut *self.inner.lock();
        inner.claims.remove(identity);
        inner.hand.held().filter(|held| &*held.owner.identity == identity).map(|held| held.fence)
    }

    /// Ends the render stream when no frame came for too long. It runs as long as the server.
    pub(super) async fn watch_the_stream(self: Arc<Self>) {
        loop {
            let now = self.now();
            let deadline = {
                let inner = &mut *self.inner.lock();
                if inner.device.next_deadline().is_some_and(|deadline| deadline <= now) {
                    inner.device.pass_time(now);
                }
                inner.device.next_deadline()
            };
            let moved = self.deadline_moved.notified();
            match deadline {
                None => moved.await,
                // A frame moves it without a word: then this comes too early, and looks again.
                Some(deadline) => {
                    let left = Duration::from_micros(deadline.since(now).0 + 1);
                    let _ = tokio::time::timeout(left, moved).await;
                }
            }
        }
    }
}
