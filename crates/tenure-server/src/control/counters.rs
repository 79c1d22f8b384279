//! How often the lease kept something out, and when it last changed.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use tenure_control::{Source, Uptime};
use tenure_core::kernel::Tick;

use super::change::LeaseEvent;
use crate::metrics::{head, line};

#[derive(Default)]
pub(crate) struct Counters {
    websocket: AtomicU64,
    rest: AtomicU64,
    encoder: AtomicU64,
    serial: AtomicU64,
    frames: AtomicU64,
    /// Of each kind of event, in the order of [`LeaseEvent::ALL`].
    lease_events: [AtomicU64; LeaseEvent::ALL.len()],
    /// The tick of the last event of the lease; 0 before the first.
    last_event: AtomicU64,
}

/// What clients are told of it.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Counts {
    pub(crate) blocked_ws_commands: u64,
    pub(crate) blocked_rest_requests: u64,
    pub(crate) blocked_local_encoder_inputs: u64,
    pub(crate) blocked_local_serial_inputs: u64,
    pub(crate) last_lease_event_ms: u32,
}

impl Counters {
    pub(super) fn blocked(&self, source: Source) {
        self.of(source).fetch_add(1, Ordering::Relaxed);
    }

    /// A frame was kept out. It is no command: 240 of them a second would drown what people sent.
    pub(super) fn blocked_frame(&self) {
        self.frames.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn lease_changed(&self, event: LeaseEvent, at: Tick) {
        self.last_event.store(at.0, Ordering::Relaxed);
        self.lease_events[event as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Writes all of it for Prometheus. The events have the names that the device's own telemetry gives them.
    pub(crate) fn put(&self, text: &mut String) {
        let name = "tenure_control_events_total";
        head(text, name, "counter", "Changes of the control lease, and what it kept out.");
        let mut put = |event: &str, counter: &AtomicU64| {
            line(text, name, &format!("event=\"{event}\""), &counter.load(Ordering::Relaxed));
        };
        for (event, counter) in LeaseEvent::ALL.iter().zip(&self.lease_events) {
            put(&format!("control.lease.{}", event.as_str()), counter);
        }
        for source in Source::ALL {
            put(&format!("control.command.blocked.{}", source.as_str()), self.of(source));
        }
        put("control.frame.blocked", &self.frames);
    }

    fn of(&self, source: Source) -> &AtomicU64 {
        match source {
            Source::WebSocket => &self.websocket,
            Source::Rest => &self.rest,
            Source::Encoder => &self.encoder,
            Source::Serial => &self.serial,
        }
    }

    pub(crate) fn read(&self, uptime: Uptime) -> Counts {
        let last = self.last_event.load(Ordering::Relaxed);
        Counts {
            blocked_ws_commands: self.websocket.load(Ordering::Relaxed),
            blocked_rest_requests: self.rest.load(Ordering::Relaxed),
            blocked_local_encoder_inputs: self.encoder.load(Ordering::Relaxed),
            blocked_local_serial_inputs: self.serial.load(Ordering::Relaxed),
            last_lease_event_ms: if last == 0 { 0 } else { uptime.at(Tick(last)).0 },
        }
    }
}
