//! How often the lease kept something out, and when it last changed.

use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use serde::Serialize;
use tenure_control::{CommandSource, DeviceClock};
use tenure_core::kernel::Tick;

use super::message::LeaseEventKind;
use crate::metrics::Label;

pub(crate) struct ControlCounters {
    /// All counters below, by the names that the device's own telemetry gives them.
    pub(crate) events: Family<Label<String>, Counter>,
    /// Blocked commands, by [`Source`].
    blocked: [Counter; CommandSource::ALL.len()],
    blocked_frames: Counter,
    /// By [`LeaseEventKind`].
    lease_events: [Counter; LeaseEventKind::ALL.len()],
    /// The tick of the last event of the lease; 0 before the first.
    last_event: AtomicU64,
}

/// What clients are told of it.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CounterSnapshot {
    pub(crate) blocked_ws_commands: u64,
    pub(crate) blocked_rest_requests: u64,
    pub(crate) blocked_local_encoder_inputs: u64,
    pub(crate) blocked_local_serial_inputs: u64,
    pub(crate) last_lease_event_ms: u32,
}

impl ControlCounters {
    pub(super) fn new() -> Self {
        let events = Family::default();
        let counter = |event: String| events.get_or_create_owned(&[("event", event)]);
        Self {
            blocked: CommandSource::ALL
                .map(|source| counter(format!("control.command.blocked.{}", source.as_str()))),
            blocked_frames: counter("control.frame.blocked".to_owned()),
            lease_events: LeaseEventKind::ALL
                .map(|event| counter(format!("control.lease.{}", event.as_str()))),
            last_event: AtomicU64::default(),
            events,
        }
    }

    pub(super) fn record_blocked_command(&self, source: CommandSource) {
        self.blocked[source as usize].inc();
    }

    /// A frame was kept out. It is no command: 240 of them a second would drown what people sent.
    pub(super) fn record_blocked_frame(&self) {
        self.blocked_frames.inc();
    }

    pub(super) fn record_lease_event(&self, event: LeaseEventKind, at: Tick) {
        self.last_event.store(at.0, Ordering::Relaxed);
        self.lease_events[event as usize].inc();
    }

    pub(crate) fn snapshot(&self, uptime: DeviceClock) -> CounterSnapshot {
        let last = self.last_event.load(Ordering::Relaxed);
        let blocked = |source: CommandSource| self.blocked[source as usize].get();
        CounterSnapshot {
            blocked_ws_commands: blocked(CommandSource::WebSocket),
            blocked_rest_requests: blocked(CommandSource::Rest),
            blocked_local_encoder_inputs: blocked(CommandSource::Encoder),
            blocked_local_serial_inputs: blocked(CommandSource::Serial),
            last_lease_event_ms: if last == 0 { 0 } else { uptime.at(Tick(last)).0 },
        }
    }
}
