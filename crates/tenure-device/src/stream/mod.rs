//! An external render stream: frames from the owner of the lease are shown instead of the effect.
//!
//! It ends when its owner stops it, when the lease is lost or its connection closed, and when no frame arrives for too long.
//! Permission is decided elsewhere; here frames are counted and shown.

use serde_json::{Map, Value, json};
use tenure_control::device_clock::{DeviceClock, DeviceInstant};
use tenure_control::problem::{Problem, ProblemCode};
use tenure_core::kernel::{Tick, TickDuration};
use tenure_core::rules::is_expired;

use crate::device_command_fields::DeviceCommandFields;
use crate::light;
use crate::light::{LEDS, Pixels};
use crate::rate_meter::RateMeter;
use crate::render_frame::{FORMAT, FRAME_BYTES, HEADER_BYTES, RenderFrame, VERSION};

/// Whether there is a stream, and what came of it.
#[derive(Debug, Clone, Default)]
pub struct RenderStream {
    session: Option<RenderSession>,
    started: u64,
    frames_without_stream: u64,
    /// It ran out, and [`RenderStream::poll_expiry`] has not said so yet.
    has_unreported_expiry: bool,
}

impl RenderStream {
    pub fn is_active(&self) -> bool {
        self.active().is_some()
    }

    fn active(&self) -> Option<&RenderSession> {
        self.session.as_ref().filter(|session| session.ended.is_none())
    }

    fn active_mut(&mut self) -> Option<&mut RenderSession> {
        self.session.as_mut().filter(|session| session.ended.is_none())
    }

    /// Begins one. One that is there ends.
    pub fn start(&mut self, terms: StreamParameters, now: Tick) {
        // Whether the one before ran out is of no interest any more.
        self.has_unreported_expiry = false;
        self.started += 1;
        self.session = Some(RenderSession::new(terms, now));
    }

    pub fn accept_frame(&mut self, bytes: &[u8], now: Tick) -> Result<(), Problem> {
        self.expire_if_stale(now);
        let Some(session) = self.active_mut() else {
            self.frames_without_stream += 1;
            return Err(self.not_active_problem());
        };
        match RenderFrame::parse(bytes) {
            Ok(frame) => session.accept(&frame, now),
            Err(problem) => {
                // It does not keep the stream alive: whoever sends nothing else shows nothing.
                session.invalid += 1;
                return Err(problem);
            }
        }
        Ok(())
    }

    /// Ends it. Whether there was one.
    pub fn stop(&mut self, reason: StopReason, now: Tick) -> bool {
        self.expire_if_stale(now);
        match self.active_mut() {
            Some(session) => session.ended = Some((now, reason)),
            None => return false,
        }
        true
    }

    /// Why there is nothing to show or to stop.
    pub fn not_active_problem(&self) -> Problem {
        let ended = self.session.as_ref().and_then(|session| session.ended);
        let before = match ended {
            Some((_, reason)) => format!(" (the last one ended: {})", reason.as_str()),
            None => String::new(),
        };
        let message = format!("No render stream is active{before}; start one with render.stream.start");
        Problem::new(ProblemCode::StreamNotActive, message)
    }

    /// When to call [`RenderStream::poll_expiry`].
    pub fn next_deadline(&self) -> Option<Tick> {
        let session =
            self.session.as_ref().filter(|session| session.ended.is_none() || self.has_unreported_expiry)?;
        Some(session.deadline())
    }

    /// Ends it if no frame came for too long. Told once.
    pub fn poll_expiry(&mut self, now: Tick) -> Option<StopReason> {
        self.expire_if_stale(now);
        std::mem::take(&mut self.has_unreported_expiry).then_some(StopReason::StaleTimeout)
    }

    /// A stream past its time is over, whoever notices.
    pub fn expire_if_stale(&mut self, now: Tick) {
        let Some(session) = self.active_mut() else { return };
        let deadline = session.deadline();
        if is_expired(now.0, deadline.0) {
            session.ended = Some((deadline, StopReason::StaleTimeout));
            self.has_unreported_expiry = true;
        }
    }

    /// What it shows at `now`: its number and its colours. Before the first frame it is dark; past its time it shows nothing,
    /// whether or not anybody has noticed.
    pub fn current_frame(&self, now: Tick) -> Option<(Option<u32>, &Pixels)> {
        self.active()
            .filter(|session| !is_expired(now.0, session.deadline().0))
            .map(|session| (session.last_sequence, &session.pixels))
    }

    /// How many frames a second its owner means to send.
    pub fn target_fps(&self) -> Option<u8> {
        self.active().map(|session| session.parameters.target_fps)
    }

    /// How many came in the last second.
    pub fn measured_fps(&self, now: Tick) -> u32 {
        self.active().map_or(0, |session| session.rate.per_second(now))
    }

    /// As programs see it. After its end, the numbers are those of the stream that was last.
    pub fn status(&self, uptime: DeviceClock, now: Tick) -> Value {
        let mut status = json!({
            "active": self.is_active(),
            "ledCount": LEDS,
            "format": FORMAT,
            "version": VERSION,
            "headerBytes": HEADER_BYTES,
            "frameBytes": FRAME_BYTES,
            "streamsStarted": self.started,
            "framesWithoutStream": self.frames_without_stream,
        });
        let fields = status.as_object_mut().expect("it was made as one");
        fields.extend(session_status(self.session.as_ref(), uptime, now));
        status
    }
}

/// The stream that is, or the one that was last.
#[derive(Debug, Clone)]
struct RenderSession {
    parameters: StreamParameters,
    started_at: Tick,
    ended: Option<(Tick, StopReason)>,
    last_frame_at: Option<Tick>,
    last_sequence: Option<u32>,
    pixels: Pixels,
    received: u64,
    invalid: u64,
    gaps: u64,
    missing: u64,
    out_of_order: u64,
    rate: RateMeter,
}

impl RenderSession {
    fn new(parameters: StreamParameters, now: Tick) -> Self {
        Self {
            parameters,
            started_at: now,
            ended: None,
            last_frame_at: None,
            last_sequence: None,
            pixels: light::DARK,
            received: 0,
            invalid: 0,
            gaps: 0,
            missing: 0,
            out_of_order: 0,
            rate: RateMeter::default(),
        }
    }

    fn deadline(&self) -> Tick {
        self.last_frame_at.unwrap_or(self.started_at).saturating_add(self.parameters.stale_timeout)
    }

    fn accept(&mut self, frame: &RenderFrame<'_>, now: Tick) {
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
fn session_status(session: Option<&RenderSession>, uptime: DeviceClock, now: Tick) -> Map<String, Value> {
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

/// What a stream is started with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamParameters {
    /// How many frames a second its owner means to send.
    pub target_fps: u8,
    /// How long it lasts without a frame.
    pub stale_timeout: TickDuration,
}

const FIELDS: &[&str] = &["targetFps", "staleTimeoutMs", "ledCount", "format", "version"];

impl StreamParameters {
    /// What the fields of `render.stream.start` say. They may also say what the sender takes the device for.
    pub fn parse(mut fields: DeviceCommandFields) -> Result<Self, Problem> {
        let target_fps = fields.byte("targetFps", 1..=240)?.unwrap_or(120);
        let timeout = fields.number("staleTimeoutMs", 250..=5_000)?.unwrap_or(750);
        for (name, ours) in [("ledCount", LEDS), ("format", FORMAT.into()), ("version", VERSION.into())] {
            let theirs = fields.number_u32(name, 0..=u32::MAX)?;
            if theirs.is_some_and(|theirs| theirs != ours) {
                let message = format!("does not fit this device, for which it is {ours}");
                return Err(Problem::of_field(ProblemCode::StreamContractMismatch, name, message));
            }
        }
        fields.finish(FIELDS)?;
        Ok(Self { target_fps, stale_timeout: TickDuration::from_millis(timeout) })
    }
}

tenure_core::text_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum StopReason {
        /// The lease is another's, or nobody's.
        LeaseLost = "lease_lost",
        OwnerDisconnected = "owner_disconnected",
        /// No frame came for too long.
        StaleTimeout = "stale_timeout",
        /// The owner stopped it, or started another one, or the device was started again.
        ClientStop = "client_stop",
    }
}
