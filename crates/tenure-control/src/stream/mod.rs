//! An external render stream: whoever has the lease sends frames, and they are shown instead of the effect.
//!
//! It ends when its owner says so, when the lease is lost or its connection closed, and when no frame comes for too
//! long. Who may stream is decided elsewhere; here it is only counted and shown.

mod render_session;
mod stream_parameters;

use serde_json::{Value, json};
use tenure_core::kernel::Tick;
use tenure_core::rules::time::is_expired;

use crate::device_clock::DeviceClock;
use crate::light::{LEDS, Pixels};
use crate::problem::{Problem, ProblemCode};
use crate::render_frame::{FORMAT, FRAME_BYTES, HEADER_BYTES, RenderFrame, VERSION};
use render_session::RenderSession;

pub use stream_parameters::{StopReason, StreamParameters};

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
        fields.extend(render_session::status(self.session.as_ref(), uptime, now));
        status
    }
}
