//! Whether the light plays, and where it is.

use serde_json::{Value, json};
use tenure_core::kernel::{TICK_RATE_HZ, Tick};

use super::parameters::NORMAL_SPEED;

tenure_core::text_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum PlaybackState {
        Playing = "playing",
        Paused = "paused",
        /// It is dark, and at the beginning.
        Stopped = "stopped",
    }
}

/// Where the light is. Two times run side by side: the position, which people see, and the motion, which goes faster or
/// slower with the speed. So a change of speed changes how it goes on, and nothing jumps.
#[derive(Debug, Clone)]
pub struct Playback {
    state: PlaybackState,
    since: Tick,
    position: u64,
    motion: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameTime {
    /// Which frame it is, counted from the beginning.
    pub frame: u64,
    /// When it begins, in microseconds from the beginning.
    pub position: u64,
    /// The same in the effect's time.
    pub motion: u64,
}

impl Playback {
    pub const fn new(is_playing: bool, now: Tick) -> Self {
        let state = if is_playing { PlaybackState::Playing } else { PlaybackState::Stopped };
        Self { state, since: now, position: 0, motion: 0 }
    }

    pub const fn state(&self) -> PlaybackState {
        self.state
    }

    /// Puts what has passed behind it. To be called before the speed changes.
    pub fn advance(&mut self, now: Tick, speed: u8) {
        (self.position, self.motion) = self.progress_at(now, speed);
        self.since = self.since.max(now);
    }

    /// Goes on, or starts, or goes to a position first.
    pub fn play(&mut self, position: Option<u64>, now: Tick, speed: u8) {
        self.advance(now, speed);
        if let Some(position) = position {
            (self.position, self.motion) = (position, at_speed(position, speed));
        }
        self.state = PlaybackState::Playing;
    }

    pub fn pause(&mut self, now: Tick, speed: u8) {
        self.advance(now, speed);
        self.state = PlaybackState::Paused;
    }

    /// Goes dark, and back to the beginning.
    pub fn stop(&mut self, now: Tick) {
        *self = Self::new(false, now);
    }

    /// Where it is, in milliseconds.
    pub fn position_ms(&self, now: Tick) -> u64 {
        self.progress_at(now, NORMAL_SPEED).0 / 1_000
    }

    /// Which frame is shown at `now`, of so many a second.
    pub fn frame_time(&self, now: Tick, speed: u8, fps: u8) -> FrameTime {
        let (position, motion) = self.progress_at(now, speed);
        let (rate, fps) = (u128::from(TICK_RATE_HZ), u128::from(fps));
        let frame = u128::from(position) * fps / rate;
        let begins = u64::try_from((frame * rate).div_ceil(fps)).unwrap_or(position).min(position);
        FrameTime {
            frame: u64::try_from(frame).unwrap_or(u64::MAX),
            position: begins,
            motion: motion.saturating_sub(at_speed(position - begins, speed)),
        }
    }

    pub fn to_json(&self, now: Tick) -> Value {
        json!({ "state": self.state.as_str(), "positionMs": self.position_ms(now) })
    }

    fn progress_at(&self, now: Tick, speed: u8) -> (u64, u64) {
        let passed = match self.state {
            PlaybackState::Playing => now.since(self.since).0,
            PlaybackState::Paused | PlaybackState::Stopped => 0,
        };
        (self.position.saturating_add(passed), self.motion.saturating_add(at_speed(passed, speed)))
    }
}

/// How far an effect gets in this time.
fn at_speed(passed: u64, speed: u8) -> u64 {
    let faster = u128::from(passed) * u128::from(speed) / u128::from(NORMAL_SPEED);
    u64::try_from(faster).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn second(seconds: u64) -> Tick {
        Tick(seconds * TICK_RATE_HZ)
    }

    #[test]
    fn playback_resumes_from_the_paused_position() {
        let mut transport = Playback::new(true, second(10));
        assert_eq!(transport.position_ms(second(12)), 2_000);
        transport.pause(second(12), 50);
        assert_eq!(transport.position_ms(second(500)), 2_000);
        assert_eq!(transport.frame_time(second(13), 50, 240), transport.frame_time(second(500), 50, 240));
        transport.play(None, second(600), 50);
        assert_eq!(transport.position_ms(second(601)), 3_000);
        transport.stop(second(602));
        assert_eq!((transport.state(), transport.position_ms(second(700))), (PlaybackState::Stopped, 0));
        transport.play(Some(7_000_000), second(700), 100);
        assert_eq!(transport.frame_time(second(701), 100, 1).motion, 16_000_000);
    }

    #[test]
    fn changing_speed_does_not_jump() {
        let mut transport = Playback::new(true, second(0));
        let before = transport.frame_time(second(10), 100, 240).motion;
        transport.advance(second(10), 100);
        assert_eq!(transport.frame_time(second(10), 1, 240).motion, before);
        assert_eq!(transport.frame_time(second(60), 1, 240).motion, before + TICK_RATE_HZ);
        assert_eq!(transport.position_ms(second(60)), 60_000);
    }

    #[test]
    fn a_frame_is_shown_until_the_next_one_begins() {
        let transport = Playback::new(true, Tick(0));
        let at = |tick| transport.frame_time(Tick(tick), 50, 10);
        assert_eq!(at(0), at(99_999));
        assert_eq!(at(100_000), FrameTime { frame: 1, position: 100_000, motion: 100_000 });
        for tick in 0..3_000 {
            let moment = transport.frame_time(Tick(tick * 777), 37, 240);
            assert_eq!(transport.frame_time(Tick(moment.position), 37, 240).frame, moment.frame);
        }
    }

    #[test]
    fn extreme_ticks_do_not_panic() {
        let transport = Playback::new(true, Tick(0));
        let _ = transport.frame_time(Tick(u64::MAX), 100, 240);
        let mut transport = Playback::new(true, second(9));
        transport.advance(second(3), 50);
        assert_eq!(transport.position_ms(second(9)), 0, "a tick that goes back adds nothing");
    }
}
