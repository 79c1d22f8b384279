//! How the desk learns of the lease: event by event, when the ledger has it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tenure_control::Held;
use tenure_control::device::StopReason;
use tenure_core::kernel::{Cause, Event, Fence, Issued, LedgerTag, State, Tick};
use tenure_ledger::Seq;
use tenure_registrar::shell::Observer;

use super::{Desk, RESOURCE};
use crate::control::change::{Change, LeaseEvent};

impl Desk {
    fn tell(&self, at: Tick, change: Change) {
        self.counters.lease_changed(change.event, at);
        // Nobody may be connected.
        let _ = self.changes.send(Arc::new(change));
    }

    fn taken(&self, issued: &Issued, tag: LedgerTag) {
        let inner = &mut *self.inner.lock();
        let Some(claim) = inner.claims.get(issued.holder.as_str()) else { return };
        let held = Held {
            fence: issued.fence,
            lease_id: shown_id(tag, issued.fence),
            owner: claim.owner.clone(),
            acquired_at: issued.at,
            expires_at: issued.expires_at,
            ttl: issued.ttl,
        };
        inner.hand.take(held.clone());
        self.fence.store(held.fence.0, Ordering::Relaxed);
        self.hands.send_replace(inner.hand.generation());
        self.tell(issued.at, Change { event: LeaseEvent::Acquired, held, reason: None });
    }

    fn extended(&self, fence: Fence, at: Tick, expires_at: Tick) {
        let inner = &mut *self.inner.lock();
        if !inner.hand.extend(fence, expires_at) {
            return;
        }
        let Some(held) = inner.hand.held().cloned() else { return };
        let is_acquiring = inner.claims.get(&held.owner.identity).is_some_and(|claim| claim.is_acquiring);
        let event = if is_acquiring { LeaseEvent::Acquired } else { LeaseEvent::Heartbeat };
        self.tell(at, Change { event, held, reason: None });
    }

    fn ended(&self, fence: Fence, at: Tick, event: LeaseEvent, cause: Option<Cause>) {
        let inner = &mut *self.inner.lock();
        let Some(held) = inner.hand.let_go(fence) else { return };
        self.fence.store(0, Ordering::Relaxed);
        let is_gone = cause == Some(Cause::Disconnected);
        let stop = if is_gone { StopReason::OwnerDisconnected } else { StopReason::LeaseLost };
        inner.device.stop_stream(stop, at);
        self.hands.send_replace(inner.hand.generation());
        let said = inner.claims.get_mut(&held.owner.identity).and_then(|claim| claim.reason.take());
        let reason = match (event, cause) {
            (LeaseEvent::Expired, _) => "expired".into(),
            (_, Some(Cause::Disconnected)) => "ws_disconnect".into(),
            (_, Some(_)) => "revoked".into(),
            (_, None) => said.unwrap_or_else(|| "user_release".into()),
        };
        self.tell(at, Change { event, held, reason: Some(reason) });
    }
}

impl Observer for Desk {
    fn happens(&self, _: Seq, event: &Event, before: &State) {
        let is_ours = |lease: &Fence| lease.0 == self.fence.load(Ordering::Relaxed);
        match event {
            Event::Issued(issued) if issued.resource.as_str() == RESOURCE => self.taken(issued, before.tag()),
            Event::Renewed { lease, at, expires_at, .. } if is_ours(lease) => {
                self.extended(*lease, *at, *expires_at);
            }
            Event::Released { lease, at, .. } if is_ours(lease) => {
                self.ended(*lease, *at, LeaseEvent::Released, None);
            }
            Event::Expired { lease, at } if is_ours(lease) => {
                self.ended(*lease, *at, LeaseEvent::Expired, None);
            }
            Event::Revoked { lease, at, cause, .. } if is_ours(lease) => {
                self.ended(*lease, *at, LeaseEvent::Released, Some(*cause));
            }
            _ => {}
        }
    }

    fn told(&self, _: Duration) {}
}

/// How clients call a lease: `cl_`, the ledger, the fence. Never the same for two.
fn shown_id(tag: LedgerTag, fence: Fence) -> Arc<str> {
    format!("cl_{:08x}{:04x}", tag.0, fence.0).into()
}
