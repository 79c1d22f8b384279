//! One stream: what came of it.

use serde_json::{Map, Value, json};
use tenure_core::kernel::Tick;

use super::stream_parameters::{StopReason, StreamParameters};
use crate::device_clock::{DeviceClock, DeviceInstant};
use crate::light::{Pixels, render};
use crate::rate_meter::RateMeter;
use crate::render_frame::RenderFrame;

/// The stream that is, or the one that was last.
#[derive(Debug, Clone)]
pub(super) struct RenderSession {
    pub(super) parameters: StreamParameters,
    started_at: Tick,
    pub(super) ended: Option<(Tick, StopReason)>,
    last_frame_at: Option<Tick>,
    pub(super) last_sequence: Option<u32>,
    pub(super) pixels: Pixels,
    received: u64,
    pub(super) invalid: u64,
    gaps: u64,
    missing: u64,
    out_of_order: u64,
    pub(super) rate: RateMeter,
}

impl RenderSession {
    pub(super) fn new(parameters: StreamParameters, now: Tick) -> Self {
        Self {
            parameters,
            started_at: now,
            ended: None,
            last_frame_at: None,
            last_sequence: None,
            pixels: render::DARK,
            received: 0,
            invalid: 0,
            gaps: 0,
            missing: 0,
            out_of_order: 0,
            rate: RateMeter::default(),
        }
    }

    pub(super) fn deadline(&self) -> Tick {
        self.last_frame_at.unwrap_or(self.started_at).saturating_add(self.parameters.stale_timeout)
    }

    pub(super) fn accept(&mut self, frame: &RenderFrame<'_>, now: Tick) {
        if let Some(last) = self.last_sequence {
            // Half of all numbers lie ahead, the other half behind: the numbers are a circle.
            match frame.sequence.wrapping_sub(last.wrapping_add(1)) {
                0 => {}
                ahead if ahead < 1 << 31 => {
                    self.gaps += 1;
                    self.missing += u64::from(ahead);
                }
                _ => self.out_of_order += 1,
            }
        }
        self.last_sequence = Some(frame.sequence);
        // Ticks are read before the device's lock is had, so they may come a little out of order.
        self.last_frame_at = self.last_frame_at.max(Some(now));
        self.received += 1;
        self.rate.count(now);
        self.pixels = *frame.colours;
    }
}

/// As programs see it, or that there was none yet.
pub(super) fn status(session: Option<&RenderSession>, uptime: DeviceClock, now: Tick) -> Map<String, Value> {
    let clock = |tick: Option<Tick>| tick.map(|tick| uptime.at(tick)).map(|DeviceInstant(millis)| millis);
    let count = |number: fn(&RenderSession) -> u64| session.map_or(0, number);
    let ended = session.and_then(|session| session.ended);
    let status = json!({
        "targetFps": session.map(|session| session.parameters.target_fps),
        "staleTimeoutMs": session.map(|session| session.parameters.stale_timeout.as_millis()),
        "startedAtMs": clock(session.map(|session| session.started_at)),
        "stoppedAtMs": clock(ended.map(|(at, _)| at)),
        "stopReason": ended.map(|(_, reason)| reason.as_str()),
        "framesReceived": count(|session| session.received),
        "framesInvalid": count(|session| session.invalid),
        "framesMissing": count(|session| session.missing),
        "framesOutOfOrder": count(|session| session.out_of_order),
        "sequenceGaps": count(|session| session.gaps),
        "lastSequence": session.and_then(|session| session.last_sequence),
        "lastFrameMs": clock(session.and_then(|session| session.last_frame_at)),
        "fps": session.filter(|session| session.ended.is_none()).map_or(0, |session| session.rate.per_second(now)),
    });
    status.as_object().cloned().unwrap_or_default()
}
