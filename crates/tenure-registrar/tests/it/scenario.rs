//! Plays a story to a registrar, with a list in memory as its ledger.
//!
//! ```text
//! seconds  what happens                    -> what it does about it
//! 0        start                           -> append resumed at 0
//! 0        wrote                           -> publish resumed at 0
//! 1        ann: acquire db ann 10          -> append issued 1 until 11
//! 1.5      bob: acquire db bob 10          -> nothing
//! 2        wrote                           -> publish issued 1 until 11; ann: granted 1; bob: held by ann
//! 2        wake                            -> at 3
//! ```
//!
//! The seconds are what the clock says. Between two lines, and whatever a story is about, the harness checks
//! what must hold after every step.

use tenure_core::kernel::{ClockReading, Event, HashSeed, KernelState, LedgerTag, Limits, decode};
use tenure_core::ledger::EventRecord;
use tenure_ledger::{LedgerId, SpaceLevel};
use tenure_registrar::{AppendFailure, BatchSettings, Effect, Input, Registrar, RequestId};

use crate::scenario_syntax;

pub const TAG: LedgerTag = LedgerTag(0xabcd);
/// The ledger whose leases have that tag.
pub const LEDGER: LedgerId = LedgerId([0, 0, 0xab, 0xcd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
pub const WALL: u64 = 1_700_000_000_000_000_000;

/// A registrar, and the ledger that outlives it.
pub struct ScenarioRunner {
    registrar: Option<Registrar>,
    settings: BatchSettings,
    ledger: Vec<EventRecord>,
    writing: Option<Vec<EventRecord>>,
    clock: String,
    wall: u64,
    callers: Vec<String>,
    open: Vec<RequestId>,
}

/// Plays a story from its beginning, with bounds that nothing reaches.
pub fn run_scenario(story: &str) {
    ScenarioRunner::new(BatchSettings::default()).run(story);
}

impl ScenarioRunner {
    pub fn new(settings: BatchSettings) -> Self {
        Self {
            registrar: None,
            settings,
            ledger: Vec::new(),
            writing: None,
            clock: "boot-a".into(),
            wall: WALL,
            callers: Vec::new(),
            open: Vec::new(),
        }
    }

    /// Plays a story; panics at the first line that comes out differently, and shows it as it should read.
    pub fn run(&mut self, story: &str) {
        for line in story.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (happens, expected) = line.split_once("->").unwrap_or_else(|| panic!("no arrow: {line}"));
            let (seconds, happens) = happens.trim().split_once(' ').expect("a time and what happens");
            let does = self.perform(happens.trim(), scenario_syntax::parse_seconds(seconds).0);
            assert_eq!(does, expected.trim(), "\n  in the line: {line}");
        }
    }

    pub fn registrar(&self) -> &Registrar {
        self.registrar.as_ref().expect("a registrar that was started")
    }

    /// The registrar, to be driven without the words.
    pub fn into_registrar(self) -> Registrar {
        self.registrar.expect("a registrar that was started")
    }

    /// The state that somebody would have who read the ledger.
    pub fn replayed_state(&self) -> KernelState {
        replay_records(&self.ledger)
    }

    fn perform(&mut self, what: &str, microseconds: u64) -> String {
        let words: Vec<&str> = what.split_whitespace().collect();
        let effects = match words.as_slice() {
            ["start"] => self.start(microseconds),
            ["start", "on", clock] => {
                self.clock = (*clock).into();
                self.start(microseconds)
            }
            // Seconds against the wall time at which stories begin; `-3` is before it.
            ["start", "at", "wall", offset] => {
                let offset: i64 = offset.parse().expect("seconds of wall time");
                self.wall = WALL.saturating_add_signed(offset * 1_000_000_000);
                self.start(microseconds)
            }
            ["wake"] => {
                return self
                    .registrar()
                    .wake_at()
                    .map_or("never".into(), |at| format!("at {}", scenario_syntax::format_seconds(at)));
            }
            ["woken"] => self.step(Input::Woken, microseconds),
            ["space", level] => {
                let level = match *level {
                    "plenty" => SpaceLevel::Plenty,
                    "ends-and-renewals" => SpaceLevel::EndsAndRenewals,
                    "ends-only" => SpaceLevel::EndsOnly,
                    _ => panic!("no such space level: {level}"),
                };
                self.registrar.as_mut().expect("a registrar that was started").set_space_level(level);
                Vec::new()
            }
            ["wrote"] => {
                self.ledger.extend(self.writing.take().expect("a write under way"));
                self.step(Input::Appended(Ok(())), microseconds)
            }
            ["failed", how] => {
                let failure = match *how {
                    "overtaken" => AppendFailure::Overtaken,
                    "not-written" => AppendFailure::NotWritten,
                    "unknown" => AppendFailure::OutcomeUnknown,
                    _ => panic!("no such failure: {how}"),
                };
                self.writing = None;
                self.step(Input::Appended(Err(failure)), microseconds)
            }
            [name, command @ ..] if name.ends_with(':') => {
                let caller = RequestId(self.callers.len() as u64);
                self.callers.push(name.trim_end_matches(':').into());
                self.open.push(caller);
                self.step(
                    Input::Request { caller, command: scenario_syntax::parse_command(command) },
                    microseconds,
                )
            }
            _ => panic!("nothing like this happens: {what}"),
        };
        self.render(&effects)
    }

    /// Whatever ran before is gone, with what it was writing.
    fn start(&mut self, microseconds: u64) -> Vec<Effect> {
        self.writing = None;
        self.open.clear();
        let reading = ClockReading { clock: self.clock.as_str().into(), microseconds };
        let started = Registrar::start(LEDGER, self.replayed_state(), reading, self.wall, self.settings);
        let (registrar, effects) = started.expect("a ledger that can be gone on with");
        self.registrar = Some(registrar);
        self.check_effects(&effects, microseconds);
        effects
    }

    fn step(&mut self, input: Input, microseconds: u64) -> Vec<Effect> {
        let registrar = self.registrar.as_mut().expect("a registrar that was started");
        let effects = registrar.step(input, microseconds);
        self.check_effects(&effects, microseconds);
        effects
    }

    /// What must hold after every step.
    fn check_effects(&mut self, effects: &[Effect], microseconds: u64) {
        for effect in effects {
            match effect {
                Effect::Append(write) => {
                    assert!(self.writing.is_none(), "a second write before the first came back");
                    self.writing = Some(write.records.decode());
                }
                Effect::Answer { request: caller, .. } => {
                    let place = self.open.iter().position(|other| other == caller);
                    self.open.remove(place.unwrap_or_else(|| panic!("{caller:?} is answered twice")));
                }
                _ => {}
            }
        }
        let registrar = self.registrar();
        registrar.state().check_invariants().unwrap_or_else(|wrong| panic!("{wrong}"));
        if let Some(at) = registrar.wake_at() {
            assert!(at > microseconds, "it would be woken at {at} again and again, at {microseconds}");
        }
        if registrar.is_fully_durable() {
            assert!(self.open.is_empty(), "nothing is being written, and {:?} are not answered", self.open);
            assert_eq!(
                self.replayed_state().to_comparable(),
                registrar.state().to_comparable(),
                "a replay differs"
            );
        }
    }

    fn render(&self, effects: &[Effect]) -> String {
        let name =
            |caller: &RequestId| self.callers[usize::try_from(caller.0).expect("few callers")].as_str();
        let parts: Vec<String> =
            effects.iter().map(|effect| scenario_syntax::format_effect(effect, name)).collect();
        if parts.is_empty() { "nothing".into() } else { parts.join("; ") }
    }
}

/// The event that a record holds.
pub fn decode_event(record: &EventRecord) -> Event {
    decode(record, TAG).expect("what was encoded is decoded").expect("an event of the kernel's")
}

/// The state that these records add up to.
pub fn replay_records(records: &[EventRecord]) -> KernelState {
    let mut state = KernelState::new(TAG, Limits::default(), HashSeed(3, 4));
    for record in records {
        state.apply(&decode_event(record)).expect("a replay accepts what was acknowledged");
    }
    state
}
