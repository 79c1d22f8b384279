//! The device and its owner, behind one lock: the device's serialization point.
//!
//! Ownership changes when the ledger has it, on the publishing thread, before the caller gets its response. Permits are
//! checked again here, so a command that was permitted before an ownership change has no effect after it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Map, Value};
use tenure_control::{
    CommandClass, CommandError, CommandSource, ControlLease, ControlOwner, ControlRejection, DeviceClock,
    OwnershipState, Permit, Problem,
};
use tenure_core::kernel::{
    Event, Fence, IssuedLease, LeaseTerms, LedgerTag, RevocationCause, Tick, TickDuration,
};
use tenure_device::CommandReply;
use tenure_device::device::{StopReason, VirtualDevice};
use tenure_gateway::OwnershipSource;
use tenure_registrar::runtime::{AppliedEvent, Observer, StateView};
use tokio::sync::{Notify, broadcast, watch};

use super::counters::{ControlCounters, CounterSnapshot};
use super::device_store::{DeviceStore, DeviceStoreWriter, storage_failed};
use super::message;
use super::message::LeaseChange;
use crate::control::message::LeaseEventKind;

/// The resource of the one lease.
pub(crate) const RESOURCE: &str = "control:global";
/// Of resources that only a face of its own may lease.
pub(crate) const DOMAIN: &str = "control:";

/// So many changes may wait for a connection that does not take them. One that is further behind is let go.
const MAX_PENDING_CHANGES: usize = 256;

/// What is configured of the lease.
#[derive(Debug, Clone, Copy)]
pub(super) struct ControlLeaseTerms {
    pub(super) ttl: TickDuration,
    pub(super) heartbeat_interval_ms: u32,
}

/// The device and whose hand is on it.
pub(crate) struct Controller {
    state: Mutex<ControllerState>,
    view: Arc<StateView>,
    pub(super) uptime: DeviceClock,
    pub(super) terms: ControlLeaseTerms,
    pub(crate) counters: ControlCounters,
    changes: broadcast::Sender<Arc<LeaseChange>>,
    ownership_epochs: watch::Sender<u64>,
    /// The stream's next deadline may have moved.
    deadline_moved: Notify,
    writer: DeviceStoreWriter,
    next_client_id: AtomicU32,
    /// The fence of the lease, 0 while there is none. Every event of every lease is compared with it, and few are this
    /// one's.
    fence: AtomicU64,
}

struct ControllerState {
    ownership: OwnershipState,
    device: VirtualDevice,
    /// Connections that asked for the lease, by the name that the ledger knows.
    connections: HashMap<Arc<str>, RegisteredConnection>,
}

/// A connection that asked for the lease.
pub(super) struct RegisteredConnection {
    pub(super) owner: ControlOwner,
    /// Why it gives the lease back, in its own words.
    pub(super) reason: Option<Arc<str>>,
    /// Whether what it asks for is the lease, and not only more time.
    pub(super) is_acquiring: bool,
}

impl Controller {
    pub(super) fn new(
        view: Arc<StateView>,
        uptime: DeviceClock,
        terms: ControlLeaseTerms,
        device: VirtualDevice,
        store: DeviceStore,
    ) -> Self {
        let stored = device.persistent_state();
        let state =
            ControllerState { ownership: OwnershipState::default(), device, connections: HashMap::new() };
        Self {
            state: Mutex::new(state),
            view,
            uptime,
            terms,
            counters: ControlCounters::new(),
            changes: broadcast::Sender::new(MAX_PENDING_CHANGES),
            ownership_epochs: watch::Sender::new(0),
            deadline_moved: Notify::new(),
            writer: DeviceStoreWriter::new(store, stored),
            next_client_id: AtomicU32::new(1),
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
        self.next_client_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Tells of every change of the lease from now on.
    pub(super) fn subscribe_lease_changes(&self) -> broadcast::Receiver<Arc<LeaseChange>> {
        self.changes.subscribe()
    }

    /// Tells of every change of hands: how many there were.
    pub(crate) fn subscribe_ownership(&self) -> watch::Receiver<u64> {
        self.ownership_epochs.subscribe()
    }

    pub(crate) fn counts(&self) -> CounterSnapshot {
        self.counters.snapshot(self.uptime)
    }

    pub(super) fn read<T>(&self, look: impl FnOnce(Option<&ControlLease>, Tick) -> T) -> T {
        let now = self.now();
        look(self.state.lock().ownership.lease(), now)
    }

    /// Whether a WebSocket may send a command of this class.
    pub(crate) fn permit_websocket(
        &self,
        identity: &str,
        class: CommandClass,
    ) -> Result<Permit, ControlRejection> {
        self.permit(CommandSource::WebSocket, |ownership, now| {
            ownership.permit_websocket(identity, class, now)
        })
    }

    /// The same for a frame, of which many may be kept out in a second.
    pub(super) fn permit_frame(&self, identity: &str) -> Result<Permit, ControlRejection> {
        let now = self.now();
        let passed = self.state.lock().ownership.permit_websocket(identity, CommandClass::Streams, now);
        passed.inspect_err(|_| self.counters.record_blocked_frame())
    }

    /// Whether a request that shows this may do what is of this class.
    pub(crate) fn permit_rest(
        &self,
        token: Option<&str>,
        lease_id: Option<&str>,
        class: CommandClass,
    ) -> Result<Permit, ControlRejection> {
        self.permit(CommandSource::Rest, |ownership, now| ownership.permit_rest(token, lease_id, class, now))
    }

    /// Whether the knob or the serial port may do what is of this class.
    pub(crate) fn permit_local(
        &self,
        source: CommandSource,
        class: CommandClass,
    ) -> Result<Permit, ControlRejection> {
        self.permit(source, |ownership, now| ownership.permit_local(source, class, now))
    }

    fn permit(
        &self,
        source: CommandSource,
        ask: impl FnOnce(&OwnershipState, Tick) -> Result<Permit, ControlRejection>,
    ) -> Result<Permit, ControlRejection> {
        let now = self.now();
        let passed = ask(&self.state.lock().ownership, now);
        passed.inspect_err(|_| self.counters.record_blocked_command(source))
    }

    pub(crate) fn check_permit(&self, pass: Permit) -> Result<(), ControlRejection> {
        let now = self.now();
        self.state.lock().ownership.check_permit(pass, now)
    }

    /// Does what a command says, if its pass still counts. What must outlive a restart is on the disk when this returns.
    pub(crate) async fn execute(
        &self,
        pass: Permit,
        command: &str,
        fields: Map<String, Value>,
    ) -> Result<Value, CommandError> {
        self.run_on_device(pass, |device, now| device.execute(command, fields, now)).await
    }

    /// Lets the device do something, if the pass still counts.
    pub(super) async fn run_on_device(
        &self,
        pass: Permit,
        act: impl FnOnce(&mut VirtualDevice, Tick) -> Result<CommandReply, Problem>,
    ) -> Result<Value, CommandError> {
        let now = self.now();
        let (done, stored) = {
            let state = &mut *self.state.lock();
            state.ownership.check_permit(pass, now)?;
            let done = act(&mut state.device, now)?;
            // In the order in which it happened: the last one written is the last one that was done.
            let stored = done.must_store.then(|| self.writer.next_state(state.device.persistent_state()));
            (done, stored)
        };
        self.deadline_moved.notify_one();
        if let Some(turn) = stored
            && let Err(unwritten) = self.writer.write(turn).await
        {
            if let Some(stored) = unwritten.on_disk {
                self.state.lock().device.revert_persistent_state(stored);
            }
            return Err(storage_failed().into());
        }
        Ok(done.data)
    }

    /// Shows a frame, if its pass still counts.
    pub(super) fn accept_frame(&self, pass: Permit, bytes: &[u8]) -> Result<(), CommandError> {
        let now = self.now();
        let state = &mut *self.state.lock();
        state.ownership.check_permit(pass, now)?;
        Ok(state.device.accept_frame(bytes, now)?)
    }

    /// This connection is about to ask for the lease.
    pub(super) fn register_connection(&self, claim: RegisteredConnection) {
        self.state.lock().connections.insert(claim.owner.identity.clone(), claim);
    }

    /// It is about to give it back, for this reason; or to ask for more time.
    pub(super) fn update_lease_request(&self, identity: &str, reason: Option<Arc<str>>, is_acquiring: bool) {
        if let Some(claim) = self.state.lock().connections.get_mut(identity) {
            claim.reason = reason;
            claim.is_acquiring = is_acquiring;
        }
    }

    /// This connection is gone. The answer is the lease that it leaves behind.
    pub(super) fn remove_connection(&self, identity: &str) -> Option<Fence> {
        let state = &mut *self.state.lock();
        state.connections.remove(identity);
        state.ownership.lease().filter(|held| &*held.owner.identity == identity).map(|held| held.fence)
    }

    /// Ends the render stream when no frame came for too long. It runs as long as the server.
    pub(super) async fn enforce_stream_timeout(self: Arc<Self>) {
        loop {
            let now = self.now();
            let deadline = {
                let state = &mut *self.state.lock();
                if state.device.next_deadline().is_some_and(|deadline| deadline <= now) {
                    state.device.poll_stream_expiry(now);
                }
                state.device.next_deadline()
            };
            let moved = self.deadline_moved.notified();
            match deadline {
                None => moved.await,
                // A frame moves it without a word: then this comes too early, and looks again.
                Some(deadline) => {
                    let remaining = Duration::from_micros(deadline.since(now).0 + 1);
                    let _ = tokio::time::timeout(remaining, moved).await;
                }
            }
        }
    }
}

impl OwnershipSource for Controller {
    fn check_permit(&self, pass: Permit) -> Result<(), ControlRejection> {
        Controller::check_permit(self, pass)
    }

    fn subscribe(&self) -> watch::Receiver<u64> {
        self.subscribe_ownership()
    }

    fn is_owner(&self, identity: &str) -> bool {
        self.read(|held, now| {
            held.is_some_and(|held| &*held.owner.identity == identity && !held.is_expired(now))
        })
    }

    fn websocket_error(&self, request_id: Option<&str>, blocked: &CommandError) -> String {
        message::error(request_id, blocked)
    }
}

impl Controller {
    fn broadcast(&self, at: Tick, change: LeaseChange) {
        self.counters.record_lease_event(change.event, at);
        // Nobody may be connected.
        let _ = self.changes.send(Arc::new(change));
    }

    fn taken(&self, issued: &IssuedLease, tag: LedgerTag) {
        let LeaseTerms { issued_at: at, expires_at, ttl, .. } = issued.terms;
        let state = &mut *self.state.lock();
        let Some(connection) = state.connections.get(issued.holder.as_str()) else { return };
        let held = ControlLease {
            fence: issued.fence,
            lease_id: shown_id(tag, issued.fence),
            owner: connection.owner.clone(),
            acquired_at: at,
            expires_at,
            ttl,
        };
        state.ownership.begin_lease(held.clone());
        self.fence.store(held.fence.0, Ordering::Relaxed);
        self.ownership_epochs.send_replace(state.ownership.epoch());
        self.broadcast(at, LeaseChange { event: LeaseEventKind::Acquired, lease: held, reason: None });
    }

    fn extended(&self, fence: Fence, at: Tick, expires_at: Tick) {
        let state = &mut *self.state.lock();
        if !state.ownership.extend_lease(fence, expires_at) {
            return;
        }
        let Some(held) = state.ownership.lease().cloned() else { return };
        let is_acquiring =
            state.connections.get(&held.owner.identity).is_some_and(|claim| claim.is_acquiring);
        let event = if is_acquiring { LeaseEventKind::Acquired } else { LeaseEventKind::Heartbeat };
        self.broadcast(at, LeaseChange { event, lease: held, reason: None });
    }

    fn ended(&self, fence: Fence, at: Tick, event: LeaseEventKind, cause: Option<RevocationCause>) {
        let state = &mut *self.state.lock();
        let Some(held) = state.ownership.end_lease(fence) else { return };
        self.fence.store(0, Ordering::Relaxed);
        let is_gone = cause == Some(RevocationCause::Disconnected);
        let stop = if is_gone { StopReason::OwnerDisconnected } else { StopReason::LeaseLost };
        state.device.stop_stream(stop, at);
        self.ownership_epochs.send_replace(state.ownership.epoch());
        let reason_of_client =
            state.connections.get_mut(&held.owner.identity).and_then(|claim| claim.reason.take());
        let reason = match (event, cause) {
            (LeaseEventKind::Expired, _) => "expired".into(),
            (_, Some(RevocationCause::Disconnected)) => "ws_disconnect".into(),
            (_, Some(_)) => "revoked".into(),
            (_, None) => reason_of_client.unwrap_or_else(|| "user_release".into()),
        };
        self.broadcast(at, LeaseChange { event, lease: held, reason: Some(reason) });
    }
}

impl Observer for Controller {
    fn event_applied(&self, applied: AppliedEvent<'_>) {
        let is_ours = |lease: &Fence| lease.0 == self.fence.load(Ordering::Relaxed);
        match applied.event {
            Event::Issued(issued) if issued.resource.as_str() == RESOURCE => {
                self.taken(issued, applied.state.ledger_tag())
            }
            Event::Renewed { lease, at, expires_at, .. } if is_ours(lease) => {
                self.extended(*lease, *at, *expires_at);
            }
            Event::Released { lease, at, .. } if is_ours(lease) => {
                self.ended(*lease, *at, LeaseEventKind::Released, None);
            }
            Event::Expired { lease, at } if is_ours(lease) => {
                self.ended(*lease, *at, LeaseEventKind::Expired, None);
            }
            Event::Revoked { lease, at, cause, .. } if is_ours(lease) => {
                self.ended(*lease, *at, LeaseEventKind::Released, Some(*cause));
            }
            _ => {}
        }
    }
}

/// How clients call a lease: `cl_`, the ledger, the fence. Never the same for two.
fn shown_id(tag: LedgerTag, fence: Fence) -> Arc<str> {
    format!("cl_{:08x}{:04x}", tag.0, fence.0).into()
}
