//! How the controller learns of the lease: event by event, when the ledger has it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tenure_control::ControlLease;
use tenure_control::device::StopReason;
use tenure_core::kernel::{
    Event, Fence, IssuedLease, KernelState, LeaseTerms, LedgerTag, RevocationCause, Tick,
};
use tenure_ledger::Seq;
use tenure_registrar::runtime::Observer;

use super::{Controller, RESOURCE};
use crate::control::lease_change::{LeaseChange, LeaseEventKind};

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
    fn before_event(&self, _: Seq, event: &Event, before: &KernelState) {
        let is_ours = |lease: &Fence| lease.0 == self.fence.load(Ordering::Relaxed);
        match event {
            Event::Issued(issued) if issued.resource.as_str() == RESOURCE => {
                self.taken(issued, before.ledger_tag())
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
