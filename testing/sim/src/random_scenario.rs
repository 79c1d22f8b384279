//! The second scenario: every command there is, at random, on a server that crashes at every point.
//!
//! No client behaves like this. That is the point: unlikely requests must not break anything either.

use std::collections::BTreeMap;

use tenure_core::kernel::{
    Acquire, ChangeMode, Command, CommandOutcome, ContentionPolicy, Fence, Holder, IdempotencyKey,
    KEY_RETENTION, LeaseCredential, LeaseMode, LeaseRequest, Limits, Nonce, Principal, RequestDigest,
    Resource, RevocationCause, Tick, TickDuration, Ticket, WaitEnd,
};
use tenure_core::lease::ReleaseReason;
use tenure_registrar::{AppendFailure, BatchSettings, Effect, Input, Reply, RequestId};

use crate::coverage::record_server_effect;
use crate::host::{ServerMachine, WriteResult};
use crate::invariants::{InvariantResult, ensure};
use crate::rng::Rng;
use crate::run::Scenario;
use crate::simulation_log::SimulationLog;
use crate::storage::Storage;

#[derive(Debug)]
pub struct RandomScenario {
    rng: Rng,
    host: ServerMachine,
    now: u64,
    last_request_id: u64,
    in_flight: BTreeMap<RequestId, Command>,
    /// What was granted under each principal's key.
    granted: BTreeMap<(Principal, RequestDigest), Vec<Fence>>,
    has_pending_write: bool,
}

const SECOND: u64 = 1_000_000;
const TTLS: [u64; 6] = [1_000, 1_001, 2_000, 5_000, 30_000, 600_000];
const RESOURCES: u64 = 5;

impl Scenario for RandomScenario {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let settings = BatchSettings {
            max_waiting: 4 + usize::try_from(rng.below(12)).unwrap_or(0),
            max_batch: 1 + usize::try_from(rng.below(6)).unwrap_or(0),
            max_sweep: 1 + usize::try_from(rng.below(4)).unwrap_or(0),
            stride: 1 + usize::try_from(rng.below(3)).unwrap_or(0),
            write_threshold: 1 + usize::try_from(rng.below(4)).unwrap_or(0),
            ..BatchSettings::default()
        };
        let limits = Limits {
            max_waiters_per_resource: 2,
            max_waiters_per_principal: 4,
            max_leases_per_principal: rng.percent(30).then_some(6),
            ..Limits::default()
        };
        let drift = i64::try_from(rng.below(4_801)).unwrap_or(0) - 2_400;
        Self {
            host: ServerMachine::new(0, drift, settings, limits, Storage::for_seed(seed)),
            now: 0,
            last_request_id: 0,
            in_flight: BTreeMap::new(),
            granted: BTreeMap::new(),
            has_pending_write: false,
            rng,
        }
    }

    fn step(&mut self, log: &mut SimulationLog) -> InvariantResult {
        let pause = if self.rng.percent(80) { 20_000 } else { 4 * SECOND };
        self.now += self.rng.delay(1, pause);
        if self.host.registrar().is_none() {
            let effects = self.host.start(self.now, log)?;
            if self.host.registrar().is_none() && self.rng.percent(30) {
                self.host.free_disk();
            }
            return self.apply_effects(effects, log);
        }
        match self.rng.below(100) {
            0..60 => {
                let command = self.any_command();
                self.last_request_id += 1;
                let caller = RequestId(self.last_request_id);
                log.line(format_args!("{} {caller:?} {command:?}", self.now));
                self.in_flight.insert(caller, command.clone());
                let effects = self.host.step(Input::Request { caller, command }, self.now)?;
                self.apply_effects(effects, log)
            }
            60..90 if self.has_pending_write => self.complete_write(WriteResult::Written, log),
            60..90 => self.advance_to_next_deadline(log),
            90..96 => {
                let effects = self.host.step(Input::Woken, self.now)?;
                self.apply_effects(effects, log)
            }
            96 if self.has_pending_write => {
                let unknown = AppendFailure::OutcomeUnknown;
                let failure = *self.rng.pick(&[AppendFailure::NotWritten, AppendFailure::Overtaken, unknown]);
                let kept = failure == unknown && self.rng.percent(50);
                self.complete_write(WriteResult::Failed { failure, kept }, log)
            }
            97 => self.crash(log),
            98 => {
                let fills = self.rng.percent(30);
                log.record_coverage(if fills { "disk filled up" } else { "disk has room" });
                if fills {
                    self.host.fill_disk()
                } else {
                    self.host.free_disk()
                }
                Ok(())
            }
            _ => {
                self.host.set_wall_clock(&mut self.rng);
                Ok(())
            }
        }
    }

    fn wind_down(&mut self, log: &mut SimulationLog) -> InvariantResult {
        self.host.free_disk();
        for _ in 0..10_000 {
            self.now += SECOND;
            if self.host.registrar().is_none() {
                let effects = self.host.start(self.now, log)?;
                self.apply_effects(effects, log)?;
            }
            if self.has_pending_write {
                self.complete_write(WriteResult::Written, log)?;
            }
            if self.host.ledger_model().is_idle() && !self.has_pending_write {
                break;
            }
            self.advance_to_next_deadline(log)?;
        }
        ensure(self.host.ledger_model().is_idle(), || "something is held or waited for, for ever".into())?;
        self.host.check_state_against_reducer()
    }
}

impl RandomScenario {
    fn apply_effects(&mut self, effects: Vec<Effect>, log: &mut SimulationLog) -> InvariantResult {
        for effect in effects {
            record_server_effect(&effect, log);
            match effect {
                Effect::Append(_) => self.has_pending_write = true,
                Effect::Publish(events) => log.line(format_args!("{} durable {events:?}", self.now)),
                Effect::Answer { request: caller, reply } => {
                    log.line(format_args!("{} {caller:?} is told {reply:?}", self.now));
                    self.check_answer(caller, reply, log)?;
                }
                Effect::Served { leases, .. } => {
                    leases
                        .iter()
                        .try_for_each(|lease| self.host.ledger_model().check_acknowledged(*lease))?;
                }
                Effect::Unserved { .. } | Effect::ServedTooLate { .. } => {}
                Effect::StepDown(_) => self.has_pending_write = false,
            }
        }
        Ok(())
    }

    fn check_answer(&mut self, caller: RequestId, reply: Reply, log: &mut SimulationLog) -> InvariantResult {
        let Some(command) = self.in_flight.remove(&caller) else {
            return ensure(false, || format!("{caller:?} is answered twice, or was never there"));
        };
        let Reply::Answered { answer: CommandOutcome::Granted { leases }, .. } = reply else { return Ok(()) };
        leases.iter().try_for_each(|lease| self.host.ledger_model().check_acknowledged(*lease))?;
        let Command::Acquire(acquire) = command else { return Ok(()) };
        ensure(acquire.requests.len() == leases.len(), || {
            format!("{caller:?}: a part of what was asked for")
        })?;
        for (request, lease) in acquire.requests.iter().zip(&leases) {
            if !request.alternatives.is_empty() {
                log.record_coverage("any one of several granted");
            }
            let live = self.host.ledger_model().active_leases().find(|(fence, ..)| fence == lease);
            let is_requested =
                live.is_none_or(|(_, found, _)| request.resources().any(|resource| resource == found));
            ensure(is_requested, || format!("{caller:?}: {lease:?} is not on what was asked for"))?;
        }
        let Some(key) = acquire.key else { return Ok(()) };
        let place = (acquire.principal, key.key);
        let now = self.host.registrar().map_or(Tick(0), |registrar| registrar.state().now());
        let before = self.granted.insert(place, leases.clone()).filter(|before| *before != leases);
        for lease in before.into_iter().flatten() {
            let kept_until =
                self.host.ledger_model().ended_at(lease).map(|ended| ended.saturating_add(KEY_RETENTION));
            let forgotten = kept_until.is_some_and(|until| until <= now);
            ensure(forgotten, || format!("{lease:?} was granted under a key that now gives {leases:?}"))?;
        }
        Ok(())
    }

    fn complete_write(&mut self, write: WriteResult, log: &mut SimulationLog) -> InvariantResult {
        log.line(format_args!("{} write: {write:?}", self.now));
        self.has_pending_write = false;
        let effects = self.host.complete_write(write, self.now)?;
        self.apply_effects(effects, log)
    }

    /// Exactly to it, or just before or after: where off by one shows.
    fn advance_to_next_deadline(&mut self, log: &mut SimulationLog) -> InvariantResult {
        if let Some(at) = self.host.next_wake_time() {
            self.now = self.now.max((at + self.rng.below(3)).saturating_sub(1));
        }
        log.line(format_args!("{} woken", self.now));
        let effects = self.host.step(Input::Woken, self.now)?;
        self.apply_effects(effects, log)
    }

    fn crash(&mut self, log: &mut SimulationLog) -> InvariantResult {
        let kept = self.rng.percent(50);
        log.line(format_args!("{} crash, write kept {kept}", self.now));
        log.record_coverage("server crashed");
        self.host.crash(kept)?;
        self.has_pending_write = false;
        self.in_flight.clear();
        self.now += self.rng.delay(1_000, 20 * SECOND);
        if self.rng.percent(40) {
            log.record_coverage("server rebooted");
            self.host.reboot(self.now, &mut self.rng);
        }
        Ok(())
    }

    fn any_command(&mut self) -> Command {
        let lease = self.any_lease();
        let claim = self.any_claim(lease);
        let nonce = Nonce(self.rng.next().to_le_bytes().repeat(2).try_into().unwrap_or_default());
        match self.rng.below(20) {
            0..9 => Command::Acquire(self.any_acquire(nonce)),
            9..12 => {
                let ttl = self.rng.percent(30).then(|| TickDuration::from_millis(*self.rng.pick(&TTLS)));
                Command::Renew { lease, credential: claim, ttl }
            }
            12..14 => {
                let reasons = [ReleaseReason::Completed, ReleaseReason::Aborted, ReleaseReason::Voluntary];
                Command::Release { lease, claim, reason: *self.rng.pick(&reasons) }
            }
            14 => {
                let (to, principal) = self.any_party();
                Command::Transfer { lease, claim, to, principal, nonce }
            }
            15 => Command::Upgrade(ChangeMode { lease, credential: claim, mode: self.any_mode(), nonce }),
            16 => Command::Downgrade(ChangeMode { lease, credential: claim, mode: self.any_mode(), nonce }),
            17 => {
                let cause = *self.rng.pick(&[
                    RevocationCause::Revoked,
                    RevocationCause::Wiped,
                    RevocationCause::Disconnected,
                    RevocationCause::Died,
                ]);
                Command::Revoke { lease, cause, by: self.any_party().1, detail: "storm".into() }
            }
            18 => {
                Command::Reclaim { holder: self.any_party().0, by: self.any_party().1, detail: "dead".into() }
            }
            _ => {
                let ticket = Ticket(self.rng.below(self.last_request_id + 2));
                let end = *self.rng.pick(&[WaitEnd::Withdrawn, WaitEnd::Gone]);
                Command::Withdraw { ticket, principal: self.any_party().1, end }
            }
        }
    }

    /// With a key, mostly the request that always goes with it; sometimes another one, which is a mistake.
    fn any_acquire(&mut self, nonce: Nonce) -> Acquire {
        let key = self.rng.percent(40).then(|| self.rng.below(8));
        let Some(number) = key else { return self.any_acquire_without_key(nonce) };
        let usual = std::mem::replace(&mut self.rng, Rng::new(number));
        let mut acquire = self.any_acquire_without_key(nonce);
        self.rng = usual;
        let is_mistaken = self.rng.percent(5);
        let body = RequestDigest::of(&[u8::from(is_mistaken)]);
        acquire.key = Some(IdempotencyKey { key: RequestDigest::of(&number.to_le_bytes()), body });
        acquire
    }

    fn any_acquire_without_key(&mut self, nonce: Nonce) -> Acquire {
        let (holder, principal) = self.any_party();
        let count = *self.rng.pick(&[1, 1, 1, 2, 3]);
        let requests = (0..count).map(|_| {
            let ttl = TickDuration::from_millis(*self.rng.pick(&TTLS));
            let (resource, alternatives) = self.any_resources();
            LeaseRequest::new(resource, self.any_mode(), ttl, nonce).with_alternatives(alternatives)
        });
        let wants: Vec<LeaseRequest> = requests.collect();
        let patience = TickDuration::from_millis(*self.rng.pick(&[0, 1, 500, 5_000, 60_000]));
        let queue = ContentionPolicy::Queue { wait_timeout: patience };
        let contention =
            *self.rng.pick(&[ContentionPolicy::Deny, ContentionPolicy::RefreshOwn, queue, queue]);
        Acquire { principal, holder, requests: wants, contention_policy: contention, key: None }
    }

    /// Mostly one that lives; sometimes one that is over, or never was.
    fn any_lease(&mut self) -> Fence {
        let live: Vec<Fence> = self.host.ledger_model().active_leases().map(|(fence, ..)| fence).collect();
        if !live.is_empty() && self.rng.percent(85) {
            return *self.rng.pick(&live);
        }
        let last = self.host.registrar().map_or(0, |registrar| registrar.state().last_fence().0);
        Fence(self.rng.below(last + 2))
    }

    fn any_claim(&mut self, lease: Fence) -> LeaseCredential {
        let (holder, principal) = self.any_party();
        let view = self.host.registrar().and_then(|registrar| registrar.state().lease(lease));
        match view.map(|view| (view.holder.clone(), view.principal.clone())) {
            Some((holder, principal)) if self.rng.percent(80) => {
                LeaseCredential::Holder { holder, principal }
            }
            _ if self.rng.percent(50) => LeaseCredential::Token,
            _ => LeaseCredential::Holder { holder, principal },
        }
    }

    fn any_party(&mut self) -> (Holder, Principal) {
        let number = self.rng.below(6);
        // One name that two principals want.
        let owner = if number == 0 { self.rng.below(2) } else { number / 2 };
        let holder = Holder::parse(&format!("holder-{number}")).expect("a plain name");
        (holder, Principal::parse(&format!("owner-{owner}")).expect("a plain name"))
    }

    /// Mostly one; sometimes others that would do as well.
    fn any_resources(&mut self) -> (Resource, Vec<Resource>) {
        let first = self.rng.below(RESOURCES);
        let alternative_count = if self.rng.percent(35) { 1 + self.rng.below(RESOURCES - 1) } else { 0 };
        (resource(first), (1..=alternative_count).map(|distance| resource(first + distance)).collect())
    }

    fn any_mode(&mut self) -> LeaseMode {
        if self.rng.percent(70) {
            return *self.rng.pick(&[LeaseMode::Exclusive, LeaseMode::Shared]);
        }
        *self.rng.pick(&LeaseMode::ALL)
    }
}

fn resource(number: u64) -> Resource {
    let number = number % RESOURCES;
    // A name that is too long for an id.
    let name = if number == 4 { format!("long:{}", "x".repeat(200)) } else { format!("thing:{number}") };
    Resource::parse(&name).expect("a plain name")
}
