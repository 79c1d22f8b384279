//! A machine with a registrar on a disk: it crashes, reboots, stalls and fails, and starts again.

mod durable_state;

use std::sync::Arc;

use tenure_core::kernel::{AdmissionLevel, Event, HashSeed, KernelState, LedgerTag, Limits, Tick, decode};
use tenure_core::lease::LeaseReducer;
use tenure_core::ledger::EventRecord;
use tenure_core::reducer::Reducer;
use tenure_ledger::LedgerId;
use tenure_registrar::{AppendFailure, BatchSettings, Effect, Input, Registrar};

use crate::clock::SimulatedClock;
use crate::invariants::{InvariantResult, LedgerModel, Violation, ensure};
use crate::rng::Rng;
use crate::simulation_log::SimulationLog;
use crate::storage::Storage;

#[derive(Debug)]
pub struct ServerMachine {
    /// What is durable, and must be there for ever.
    disk: Vec<EventRecord>,
    /// What is being written, and may or may not be there after a crash.
    pending_write: Option<Vec<EventRecord>>,
    /// The real ledger, for some seeds. For the others, `disk` is all that there is.
    storage: Option<Storage>,
    /// What that was writing when it failed, with the true time of each event. The next start knows more.
    in_doubt: Option<Vec<(EventRecord, u64)>>,
    registrar: Option<Registrar>,
    clock: SimulatedClock,
    boots: u32,
    /// Counts starts, so that what belongs to an earlier one is recognised.
    pub incarnation: u64,
    /// What the machine's wall clock is off by, in nanoseconds.
    wall_offset: i64,
    /// A state that follows the disk record by record, as a replay would.
    follower: KernelState,
    reducer: LeaseReducer,
    model: LedgerModel,
    /// The tick at which the current clock's time is known, and its true time.
    origin: (Tick, u64),
    durable_checks: u64,
    batches: u64,
    settings: BatchSettings,
    limits: Limits,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteResult {
    Written,
    /// It failed; `kept` says whether the disk has it all the same.
    Failed {
        failure: AppendFailure,
        kept: bool,
    },
}

impl WriteResult {
    /// Mostly a success; always one while a scenario winds down.
    pub fn any(winding_down: bool, rng: &mut Rng) -> Self {
        if winding_down || rng.below(400) > 0 {
            return Self::Written;
        }
        let failure = *rng.pick(&[AppendFailure::NotWritten, AppendFailure::OutcomeUnknown]);
        Self::Failed { failure, kept: failure == AppendFailure::OutcomeUnknown && rng.percent(50) }
    }
}

pub const TAG: LedgerTag = LedgerTag(0x5eed);
const LEDGER: LedgerId = LedgerId([0, 0, 0x5e, 0xed, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
const WALL: u64 = 1_790_000_000_000_000_000;

impl ServerMachine {
    /// A machine whose clock drifts by `drift` microseconds a second; not started yet.
    pub fn new(
        now: u64,
        drift: i64,
        settings: BatchSettings,
        limits: Limits,
        storage: Option<Storage>,
    ) -> Self {
        Self {
            disk: Vec::new(),
            pending_write: None,
            storage,
            in_doubt: None,
            registrar: None,
            clock: SimulatedClock::new("boot-0", now, 1_000_000, drift),
            boots: 0,
            incarnation: 0,
            wall_offset: 0,
            follower: empty_state(&limits, HashSeed(1, 2)),
            reducer: LeaseReducer::new(),
            model: LedgerModel::default(),
            origin: (Tick(0), now),
            durable_checks: 0,
            batches: 0,
            settings,
            limits,
        }
    }

    /// Starts the registrar on what the disk holds. It may not start: a disk may be that full.
    pub fn start(&mut self, now: u64, log: &mut SimulationLog) -> Result<Vec<Effect>, Violation> {
        self.incarnation += 1;
        let Some(state) = self.replay_disk(log)? else { return Ok(Vec::new()) };
        self.model.work().check_sums(&state)?;
        ensure(state.to_comparable() == self.follower.to_comparable(), || {
            "a replay differs from what was followed".into()
        })?;
        let wall = WALL.wrapping_add(now * 1_000).wrapping_add_signed(self.wall_offset);
        let reading = self.clock.reading(now);
        let started = Registrar::start(LEDGER, state, reading, wall, self.settings);
        let (registrar, effects) = started.map_err(|failure| Violation(failure.to_string()))?;
        self.origin = (registrar.state().now(), now);
        log.line(format_args!("{now} server starts, tick {}", registrar.state().now().0));
        self.registrar = Some(registrar);
        self.track_write(&effects);
        Ok(effects)
    }

    /// Lets the registrar take a step, if it runs.
    pub fn step(&mut self, input: Input, now: u64) -> Result<Vec<Effect>, Violation> {
        let microseconds = self.clock.microseconds(now);
        let Some(registrar) = &mut self.registrar else { return Ok(Vec::new()) };
        if let Some(storage) = &self.storage {
            registrar.set_space_level(storage.space_level(registrar.state().live_count()));
        }
        let effects = registrar.step(input, microseconds);
        self.track_write(&effects);
        if effects.iter().any(|effect| matches!(effect, Effect::StepDown(_))) {
            self.registrar = None;
        }
        Ok(effects)
    }

    /// The write that is under way comes back.
    pub fn complete_write(&mut self, write: WriteResult, now: u64) -> Result<Vec<Effect>, Violation> {
        let outcome = self.execute_write(write)?;
        let input = Input::Appended(outcome);
        let effects = self.step(input, now)?;
        self.check_when_durable(now)?;
        Ok(effects)
    }

    pub fn fill_disk(&mut self) {
        self.storage.iter_mut().for_each(Storage::fill_disk);
    }

    /// There is room on the disk again.
    pub fn free_disk(&mut self) {
        self.storage.iter_mut().for_each(Storage::free_disk);
    }

    /// The machine starts anew, with another clock.
    pub fn reboot(&mut self, now: u64, rng: &mut Rng) {
        self.boots += 1;
        self.storage.iter_mut().for_each(Storage::schedule_power_cut);
        let id: Arc<str> = format!("boot-{}", self.boots).into();
        let drift = i64::try_from(rng.below(4_801)).unwrap_or(0) - 2_400;
        self.clock = SimulatedClock::new(id, now, rng.below(5_000_000), drift);
    }

    /// When the machine last started, or will: it may still be on its way up.
    pub fn boot_time(&self) -> u64 {
        self.clock.boot_time()
    }

    /// The clock goes back while the registrar runs: time must stand still for it, not repeat itself.
    pub fn set_clock_back(&mut self, rng: &mut Rng) {
        let back = i64::try_from(rng.delay(1_000, 3_000_000)).unwrap_or(0);
        self.clock.shift(-back);
    }

    /// Somebody sets the wall clock, by years.
    pub fn set_wall_clock(&mut self, rng: &mut Rng) {
        let nine_years = 9 * 365 * 86_400 * 1_000_000_000_i64;
        self.wall_offset = i64::try_from(rng.below(nine_years.unsigned_abs())).unwrap_or(0) - nine_years / 2;
    }

    /// The true time at which the registrar wants to be woken.
    pub fn next_wake_time(&self) -> Option<u64> {
        let at = self.registrar.as_ref()?.wake_at()?;
        Some(self.clock.true_time_of(at))
    }

    pub fn registrar(&self) -> Option<&Registrar> {
        self.registrar.as_ref()
    }

    /// The model of what is durable.
    pub fn ledger_model(&self) -> &LedgerModel {
        &self.model
    }

    /// The same, to be told what only the world knows.
    pub fn ledger_model_mut(&mut self) -> &mut LedgerModel {
        &mut self.model
    }

    fn track_write(&mut self, effects: &[Effect]) {
        for effect in effects {
            if let Effect::Append(write) = effect {
                self.pending_write = Some(write.records.decode());
            }
        }
    }

    /// The kernel and the work face's reducer read the same disk, and must say the same.
    pub fn check_state_against_reducer(&self) -> InvariantResult {
        self.follower.check_against_reducer(self.reducer.state()).map_err(Violation)
    }

    /// When a tick was reached in true time, by the clock that is running.
    fn true_time_of(&self, tick: Tick) -> u64 {
        let (origin, true_time) = self.origin;
        let first = self.clock.microseconds(true_time);
        self.clock.true_time_of(first + tick.since(origin).0)
    }

    fn check_when_durable(&mut self, now: u64) -> InvariantResult {
        let Some(registrar) = self.registrar.as_ref() else { return Ok(()) };
        registrar.state().check_invariants().map_err(Violation)?;
        if !registrar.is_fully_durable() {
            return Ok(());
        }
        let due = registrar.wake_at().is_some_and(|at| at <= self.clock.microseconds(now));
        if !due && registrar.state().admission_level() == AdmissionLevel::Everything {
            self.model.check_no_stuck_waiter()?;
        }
        self.durable_checks += 1;
        if self.durable_checks.is_multiple_of(32) {
            let same = registrar.state().to_comparable() == self.follower.to_comparable();
            ensure(same, || "the live state differs from what the disk says".into())?;
        }
        Ok(())
    }
}

fn empty_state(limits: &Limits, hash_seed: HashSeed) -> KernelState {
    KernelState::new(TAG, limits.clone(), hash_seed)
}

fn decode_event(record: &EventRecord) -> Result<Event, Violation> {
    let decoded = decode(record, TAG).map_err(|error| Violation(error.to_string()))?;
    decoded.ok_or_else(|| Violation(format!("{} is not read back", record.event_type)))
}
