//! An external render stream: whoever has the lease sends frames, and they are shown instead of the effect.
//!
//! It ends when its owner says so, when the lease is lost or its connection closed, and when no frame comes for too
//! long. Who may stream is decided elsewhere; here it is only counted and shown.

mod session;
mod terms;

use serde_json::{Value, json};
use tenure_core::kernel::Tick;
use tenure_core::rules::time::is_over;

use crate::frame::{FORMAT, FRAME_BYTES, Frame, HEADER_BYTES, VERSION};
use crate::light::{LEDS, Pixels};
use crate::millis::Uptime;
use crate::problem::{Problem, ProblemCode};
use session::Session;

pub use terms::{StopReason, Terms};

/// Whether there is a stream, and what came of it.
#[derive(Debug, Clone, Default)]
pub struct Stream {
    session: Option<Session>,
    started: u64,
    refused: u64,
    /// It ran out, and [`Stream::pass_time`] has not said so yet.
    is_untold: bool,
}

impl Stream {
    pub fn is_active(&self) -> bool {
        self.active().is_some()
    }

    fn active(&self) -> Option<&Session> {
        self.session.as_ref().filter(|session| session.ended.is_none())
    }

    fn active_mut(&mut self) -> Option<&mut Session> {
        self.session.as_mut().filter(|session| session.ended.is_none())
    }

    /// Begins one. One that is there ends.
    pub fn start(&mut self, terms: Terms, now: Tick) {
        // Whether the one before ran out is of no interest any more.
        self.is_untold = false;
        self.started += 1;
        self.session = Some(Session::new(terms, now));
    }

    pub fn frame(&mut self, bytes: &[u8], now: Tick) -> Result<(), Problem> {
        self.settle(now);
        let Some(session) = self.active_mut() else {
            self.refused += 1;
            return Err(self.not_active());
        };
        match Frame::parse(bytes) {
            Ok(frame) => session.take(&frame, now),
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
        self.settle(now);
        match self.active_mut() {
            Some(session) => session.ended = Some((now, reason)),
            None => return false,
        }
        true
    }

    /// Why there is nothing to show or to stop.
    pub fn not_active(&self) -> Problem {
        let ended = self.session.as_ref().and_then(|session| session.ended);
        let before = match ended {
            Some((_, reason)) => format!(" (the last one ended: {})", reason.as_str()),
            None => String::new(),
        };
        let message = format!("No render stream is active{before}; start one with render.stream.start");
        Problem::new(ProblemCode::StreamNotActive, message)
    }

    /// When to call [`Stream::pass_time`].
    pub fn next_deadline(&self) -> Option<Tick> {
        let session = self.session.as_ref().filter(|session| session.ended.is_none() || self.is_untold)?;
        Some(session.deadline())
    }

    /// Ends it if no frame came for too long. Told once.
    pub fn pass_time(&mut self, now: Tick) -> Option<StopReason> {
        self.settle(now);
        std::mem::take(&mut self.is_untold).then_some(StopReason::StaleTimeout)
    }

    /// A stream past its time is over, whoever notices.
    pub fn settle(&mut self, now: Tick) {
        let Some(session) = self.active_mut() else { return };
        let deadline = session.deadline();
        if is_over(now.0, deadline.0) {
            session.ended = Some((deadline, StopReason::StaleTimeout));
            self.is_untold = true;
        }
    }

    /// What it shows at `now`: its number and its colours. Before the first frame it is dark; past its time it shows nothing,
    /// whether or not anybody has noticed.
    pub fn shown(&self, now: Tick) -> Option<(Option<u32>, &Pixels)> {
        self.active()
            .filter(|session| !is_over(now.0, session.deadline().0))
            .map(|session| (session.last_sequence, &session.shown))
    }

    /// How many frames a second its owner means to send.
    pub fn target_fps(&self) -> Option<u8> {
        self.active().map(|session| session.terms.target_fps)
    }

    /// How many came in the last second.
    pub fn measured_fps(&self, now: Tick) -> u32 {
        self.active().map_or(0, |session| session.rate.per_second(now))
    }

    /// As programs see it. After its end, the numbers are those of the stream that was last.
    pub fn status(&self, uptime: Uptime, now: Tick) -> Value {
        let mut status = json!({
            "active": self.is_active(),
            "ledCount": LEDS,
            "format": FORMAT,
            "version": VERSION,
            "headerBytes": HEADER_BYTES,
            "frameBytes": FRAME_BYTES,
            "streamsStarted": self.started,
            "framesWithoutStream": self.refused,
        });
        let fields = status.as_object_mut().expect("it was made as one");
        fields.extend(session::status(self.session.as_ref(), uptime, now));
        status
    }
}
