//! The second scenario: every command there is, at random, on a server that crashes at every point.
//!
//! No client behaves like this. That is the point: what nobody would ask must not break anything either.

use std::collections::BTreeMap;

use tenure_core::kernel::{
    Acquire, Answer, Cause, ChangeMode, Claim, Command, Contention, Digest, Fence, Holder, KEY_KEPT, Limits,
    Mode, Nonce, Principal, RequestKey, Resource, Span, Tick, Ticket, WaitEnd, Want,
};
use tenure_core::lease::ReleaseReason;
use tenure_registrar::{AppendFailure, Caller, Effect, Input, Reply, Settings};

use crate::census::note_server;
use crate::host::{Host, Write};
use crate::laws::{Lawful, law};
use crate::log::Log;
use crate::rng::Rng;
use crate::run::Scenario;
use crate::storage::Storage;

#[derive(Debug)]
pub struct Storm {
    rng: Rng,
    host: Host,
    now: u64,
    last_caller: u64,
    asked: BTreeMap<Caller, Command>,
    /// What was granted under each principal's key.
    granted: BTreeMap<(Principal, Digest), Vec<Fence>>,
    writing: bool,
}

const SECOND: u64 = 1_000_000;
const TTLS: [u64; 6] = [1_000, 1_001, 2_000, 5_000, 30_000, 600_000];
const RESOURCES: u64 = 5;

impl Scenario for Storm {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let settings = Settings {
            inbox: 4 + usize::try_from(rng.below(12)).unwrap_or(0),
            batch: 1 + usize::try_from(rng.below(6)).unwrap_or(0),
            sweep: 1 + usize::try_from(rng.below(4)).unwrap_or(0),
            stride: 1 + usize::try_from(rng.below(3)).unwrap_or(0),
            enough: 1 + usize::try_from(rng.below(4)).unwrap_or(0),
            ..Settings::default()
        };
        let limits = Limits {
            waiters_per_resource: 2,
            waits_per_principal: 4,
            leases_per_principal: rng.percent(30).then_some(6),
            ..Limits::default()
        };
        let drift = i64::try_from(rng.below(4_801)).unwrap_or(0) - 2_400;
        Self {
            host: Host::new(0, drift, settings, limits, Storage::of_seed(seed)),
            now: 0,
            last_caller: 0,
            asked: BTreeMap::new(),
            granted: BTreeMap::new(),
            writing: false,
            rng,
        }
    }

    fn step(&mut self, log: &mut Log) -> Lawful {
        let pause = if self.rng.percent(80) { 20_000 } else { 4 * SECOND };
        self.now += self.rng.delay(1, pause);
        if self.host.registrar().is_none() {
            let effects = self.host.start(self.now, log)?;
            if self.host.registrar().is_none() && self.rng.percent(30) {
                self.host.free_disk();
            }
            return self.does(effects, log);
        }
        match self.rng.below(100) {
            0..60 => {
                let command = self.any_command();
                self.last_caller += 1;
                let caller = Caller(self.last_caller);
                log.line(format_args!("{} {caller:?} {command:?}", self.now));
                self.asked.insert(caller, command.clone());
                let effects = self.host.step(Input::Asked { caller, command }, self.now)?;
                self.does(effects, log)
            }
            60..90 if self.writing => self.write_ends(Write::Done, log),
            60..90 => self.jump_to_the_next_deadline(log),
            90..96 => {
                let effects = self.host.step(Input::Woken, self.now)?;
                self.does(effects, log)
            }
            96 if self.writing => {
                let unknown = AppendFailure::Unknown;
                let failure = *self.rng.pick(&[AppendFailure::NotWritten, AppendFailure::Overtaken, unknown]);
                let kept = failure == unknown && self.rng.percent(50);
                self.write_ends(Write::Failed { failure, kept }, log)
            }
            97 => self.crash(log),
            98 => {
                let fills = self.rng.percent(30);
                log.count(if fills { "disk filled up" } else { "disk has room" });
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

    fn wind_down(&mut self, log: &mut Log) -> Lawful {
        self.host.free_disk();
        for _ in 0..10_000 {
            self.now += SECOND;
            if self.host.registrar().is_none() {
                let effects = self.host.start(self.now, log)?;
                self.does(effects, log)?;
            }
            if self.writing {
                self.write_ends(Write::Done, log)?;
            }
            if self.host.laws().is_quiet() && !self.writing {
                break;
            }
            self.jump_to_the_next_deadline(log)?;
        }
        law(self.host.laws().is_quiet(), || "something is held or waited for, for ever".into())?;
        self.host.check_agreement()
    }
}

impl Storm {
    fn does(&mut self, effects: Vec<Effect>, log: &mut Log) -> Lawful {
        for effect in effects {
            note_server(&effect, log);
            match effect {
                Effect::Append(_) => self.writing = true,
                Effect::Publish(events) => log.line(format_args!("{} durable {events:?}", self.now)),
                Effect::Answer { caller, reply } => {
                    log.line(format_args!("{} {caller:?} is told {reply:?}", self.now));
                    self.check_answer(caller, reply, log)?;
                }
                Effect::Served { leases, .. } => {
                    leases.iter().try_for_each(|lease| self.host.laws().acknowledged(*lease))?;
                }
                Effect::Unserved { .. } => {}
                Effect::StepDown(_) => self.writing = false,
            }
        }
        Ok(())
    }

    fn check_answer(&mut self, caller: Caller, reply: Reply, log: &mut Log) -> Lawful {
        let Some(command) = self.asked.remove(&caller) else {
            return law(false, || format!("{caller:?} is answered twice, or was never there"));
        };
        let Reply::Answered { answer: Answer::Granted { leases }, .. } = reply else { return Ok(()) };
        leases.iter().try_for_each(|lease| self.host.laws().acknowledged(*lease))?;
        let Command::Acquire(acquire) = command else { return Ok(()) };
        law(acquire.wants.len() == leases.len(), || format!("{caller:?}: a part of what was asked for"))?;
        for (want, lease) in acquire.wants.iter().zip(&leases) {
            if !want.others.is_empty() {
                log.count("any one of several granted");
            }
            let live = self.host.laws().live().find(|(fence, ..)| fence == lease);
            let wanted = live.is_none_or(|(_, found, _)| want.resources().any(|resource| resource == found));
            law(wanted, || format!("{caller:?}: {lease:?} is not on what was asked for"))?;
        }
        let Some(key) = acquire.key else { return Ok(()) };
        let place = (acquire.principal, key.key);
        let now = self.host.registrar().map_or(Tick(0), |registrar| registrar.state().now());
        let before = self.granted.insert(place, leases.clone()).filter(|before| *before != leases);
        for lease in before.into_iter().flatten() {
            let kept_until = self.host.laws().ended(lease).map(|ended| ended.saturating_add(KEY_KEPT));
            let forgotten = kept_until.is_some_and(|until| until <= now);
            law(forgotten, || format!("{lease:?} was granted under a key that now gives {leases:?}"))?;
        }
        Ok(())
    }

    fn write_ends(&mut self, write: Write, log: &mut Log) -> Lawful {
        log.line(format_args!("{} write: {write:?}", self.now));
        self.writing = false;
        let effects = self.host.written(write, self.now)?;
        self.does(effects, log)
    }

    /// Exactly to it, or just before or after: where off by one shows.
    fn jump_to_the_next_deadline(&mut self, log: &mut Log) -> Lawful {
        if let Some(at) = self.host.wake_time() {
            self.now = self.now.max((at + self.rng.below(3)).saturating_sub(1));
        }
        log.line(format_args!("{} woken", self.now));
        let effects = self.host.step(Input::Woken, self.now)?;
        self.does(effects, log)
    }

    fn crash(&mut self, log: &mut Log) -> Lawful {
        let kept = self.rng.percent(50);
        log.line(format_args!("{} crash, write kept {kept}", self.now));
        log.count("server crashed");
        self.host.crash(kept)?;
        self.writing = false;
        self.asked.clear();
        self.now += self.rng.delay(1_000, 20 * SECOND);
        if self.rng.percent(40) {
            log.count("server rebooted");
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
                let ttl = self.rng.percent(30).then(|| Span::from_millis(*self.rng.pick(&TTLS)));
                Command::Renew { lease, claim, ttl }
            }
            12..14 => {
                let reasons = [ReleaseReason::Completed, ReleaseReason::Aborted, ReleaseReason::Voluntary];
                Command::Release { lease, claim, reason: *self.rng.pick(&reasons) }
            }
            14 => {
                let (to, principal) = self.any_party();
                Command::Transfer { lease, claim, to, principal, nonce }
            }
            15 => Command::Upgrade(ChangeMode { lease, claim, mode: self.any_mode(), nonce }),
            16 => Command::Downgrade(ChangeMode { lease, claim, mode: self.any_mode(), nonce }),
            17 => {
                let cause = *self.rng.pick(&[Cause::Revoked, Cause::Wiped, Cause::Disconnected, Cause::Died]);
                Command::Revoke { lease, cause, by: self.any_party().1, detail: "storm".into() }
            }
            18 => {
                Command::Reclaim { holder: self.any_party().0, by: self.any_party().1, detail: "dead".into() }
            }
            _ => {
                let ticket = Ticket(self.rng.below(self.last_caller + 2));
                let end = *self.rng.pick(&[WaitEnd::Withdrawn, WaitEnd::Gone]);
                Command::Withdraw { ticket, principal: self.any_party().1, end }
            }
        }
    }

    /// With a key, mostly the request that always goes with it; sometimes another one, which is a mistake.
    fn any_acquire(&mut self, nonce: Nonce) -> Acquire {
        let key = self.rng.percent(40).then(|| self.rng.below(8));
        let Some(number) = key else { return self.any_keyless_acquire(nonce) };
        let usual = std::mem::replace(&mut self.rng, Rng::new(number));
        let mut acquire = self.any_keyless_acquire(nonce);
        self.rng = usual;
        let is_mistaken = self.rng.percent(5);
        let body = Digest::of(&[u8::from(is_mistaken)]);
        acquire.key = Some(RequestKey { key: Digest::of(&number.to_le_bytes()), body });
        acquire
    }

    fn any_keyless_acquire(&mut self, nonce: Nonce) -> Acquire {
        let (holder, principal) = self.any_party();
        let count = *self.rng.pick(&[1, 1, 1, 2, 3]);
        let wants = (0..count).map(|_| {
            let ttl = Span::from_millis(*self.rng.pick(&TTLS));
            let (resource, others) = self.any_resources();
            Want::new(resource, self.any_mode(), ttl, nonce).or(others)
        });
        let wants: Vec<Want> = wants.collect();
        let patience = Span::from_millis(*self.rng.pick(&[0, 1, 500, 5_000, 60_000]));
        let queue = Contention::Queue { patience };
        let contention = *self.rng.pick(&[Contention::Refuse, Contention::RefreshOwn, queue, queue]);
        Acquire { principal, holder, wants, contention, key: None }
    }

    /// Mostly one that lives; sometimes one that is over, or never was.
    fn any_lease(&mut self) -> Fence {
        let live: Vec<Fence> = self.host.laws().live().map(|(fence, ..)| fence).collect();
        if !live.is_empty() && self.rng.percent(85) {
            return *self.rng.pick(&live);
        }
        let last = self.host.registrar().map_or(0, |registrar| registrar.state().last_fence().0);
        Fence(self.rng.below(last + 2))
    }

    fn any_claim(&mut self, lease: Fence) -> Claim {
        let (holder, principal) = self.any_party();
        let view = self.host.registrar().and_then(|registrar| registrar.state().lease(lease));
        match view.map(|view| (view.holder.clone(), view.principal.clone())) {
            Some((holder, principal)) if self.rng.percent(80) => Claim::Holder { holder, principal },
            _ if self.rng.percent(50) => Claim::Token,
            _ => Claim::Holder { holder, principal },
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
        let others = if self.rng.percent(35) { 1 + self.rng.below(RESOURCES - 1) } else { 0 };
        (resource(first), (1..=others).map(|distance| resource(first + distance)).collect())
    }

    fn any_mode(&mut self) -> Mode {
        if self.rng.percent(70) {
            return *self.rng.pick(&[Mode::Exclusive, Mode::Shared]);
        }
        *self.rng.pick(&Mode::ALL)
    }
}

fn resource(number: u64) -> Resource {
    let number = number % RESOURCES;
    // A name that is too long for an id.
    let name = if number == 4 { format!("long:{}", "x".repeat(200)) } else { format!("thing:{number}") };
    Resource::parse(&name).expect("a plain name")
}
