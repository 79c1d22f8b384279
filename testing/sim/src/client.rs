//! A client process: it wants a lease, works under it, writes with its fence, and gives it back.

use tenure_client::{Effect, Input, KeepAlive, KeepAliveRequest};
use tenure_core::kernel::{
    Acquire, Command, ContentionPolicy, Fence, Holder, IdempotencyKey, LeaseCredential, LeaseMode,
    LeaseRequest, Nonce, Principal, RequestDigest, Resource, TickDuration, Ticket, WaitEnd,
};
use tenure_core::lease::ReleaseReason;

use crate::clock::SimulatedClock;
use crate::rng::Rng;

/// One client's machine and what runs on it.
#[derive(Debug)]
pub struct SimulatedClient {
    pub number: usize,
    pub clock: SimulatedClock,
    /// Counts processes, so that a message to an earlier one finds nobody.
    pub process: u64,
    /// Nothing reaches it, and it reaches nobody, until then.
    pub cut_off_until: u64,
    /// It does not run until then.
    pub paused_until: u64,
    /// What it is after; nothing while it rests.
    pub task: Option<LeaseTask>,
    /// The true time for which its timer is set.
    pub planned_wake: Option<u64>,
    /// Counts errands, so that a reply to an earlier one is not taken for one to this.
    pub tasks_started: u64,
}

/// One lease that a client is after.
#[derive(Debug)]
pub struct LeaseTask {
    pub keepalive: KeepAlive,
    /// What it is for: any one of these.
    pub resources: Vec<Resource>,
    pub mode: LeaseMode,
    ttl: TickDuration,
    contention: ContentionPolicy,
    key: IdempotencyKey,
    nonce: Nonce,
    /// When it will be done, in true time.
    pub done_at: u64,
}

impl SimulatedClient {
    pub fn new(number: usize, clock: SimulatedClock) -> Self {
        Self {
            number,
            clock,
            process: 0,
            cut_off_until: 0,
            paused_until: 0,
            task: None,
            planned_wake: None,
            tasks_started: 0,
        }
    }

    /// Who it is to the registrar. Each process is another holder: it knows nothing of the one before.
    pub fn holder(&self) -> Holder {
        Holder::parse(&format!("client-{}.{}", self.number, self.process)).expect("a plain name")
    }

    pub fn principal(&self) -> Principal {
        Principal::parse(&format!("owner-{}", self.number)).expect("a plain name")
    }

    pub fn start_task(&mut self, now: u64, resources: u64, rng: &mut Rng) -> Vec<Effect> {
        self.tasks_started += 1;
        let ttl = TickDuration::from_millis(rng.between(1_000, 8_000));
        let first = rng.below(resources);
        // Some do not care which one they get.
        let count = if rng.percent(30) { resources } else { 1 };
        let thing = |distance: u64| format!("thing:{}", (first + distance) % resources);
        let things = (0..count).map(|distance| Resource::parse(&thing(distance)).expect("a plain name"));
        let mode =
            *rng.pick(&[LeaseMode::Exclusive, LeaseMode::Exclusive, LeaseMode::Exclusive, LeaseMode::Shared]);
        let patience = TickDuration::from_millis(rng.between(500, 20_000));
        let contention =
            *rng.pick(&[ContentionPolicy::Deny, ContentionPolicy::Queue { wait_timeout: patience }]);
        let key =
            RequestDigest::of(format!("{}.{}.{}", self.number, self.process, self.tasks_started).as_bytes());
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&rng.next().to_le_bytes());
        let mut errand = LeaseTask {
            keepalive: KeepAlive::new(ttl),
            resources: things.collect(),
            mode,
            ttl,
            contention,
            key: IdempotencyKey { key, body: key },
            nonce: Nonce(nonce),
            done_at: now + rng.delay(50_000, 2 * ttl.0 + 4_000_000),
        };
        let effects = errand.keepalive.step(Input::Start, self.clock.microseconds(now), rng.next());
        self.task = Some(errand);
        effects
    }

    /// Lets the keeper take a step.
    pub fn step(&mut self, input: Input, now: u64, rng: &mut Rng) -> Vec<Effect> {
        let microseconds = self.clock.microseconds(now);
        let Some(errand) = &mut self.task else { return Vec::new() };
        errand.keepalive.step(input, microseconds, rng.next())
    }

    /// What its guard says when asked at true time `now`.
    pub fn locally_valid_lease(&self, now: u64) -> Option<(Fence, &LeaseTask)> {
        let errand = self.task.as_ref()?;
        let fence = errand.keepalive.held_fence(self.clock.microseconds(now))?;
        Some((fence, errand))
    }

    /// The true time at which its keeper wants to be woken.
    pub fn next_wake_time(&self) -> Option<u64> {
        let at = self.task.as_ref()?.keepalive.wake_at()?;
        Some(self.clock.true_time_of(at))
    }

    /// The process ends without a word, and another one begins.
    pub fn crash(&mut self) {
        self.process += 1;
        self.task = None;
    }

    /// What a call of the keeper's asks of the registrar. `ticket` is where in the queue it is, if it waits.
    pub fn command(&self, call: KeepAliveRequest, ticket: Option<Ticket>) -> Option<Command> {
        let errand = self.task.as_ref()?;
        let claim = || LeaseCredential::Holder { holder: self.holder(), principal: self.principal() };
        Some(match call {
            KeepAliveRequest::Acquire => Command::Acquire(Acquire {
                principal: self.principal(),
                holder: self.holder(),
                requests: {
                    let (first, alternatives) = errand.resources.split_first()?;
                    let request = LeaseRequest::new(first.clone(), errand.mode, errand.ttl, errand.nonce);
                    vec![request.with_alternatives(alternatives.iter().cloned())]
                },
                contention_policy: errand.contention,
                key: Some(errand.key),
            }),
            KeepAliveRequest::Renew(lease) => Command::Renew { lease, credential: claim(), ttl: None },
            KeepAliveRequest::Release(lease) => {
                Command::Release { lease, claim: claim(), reason: ReleaseReason::Completed }
            }
            KeepAliveRequest::Withdraw => {
                Command::Withdraw { ticket: ticket?, principal: self.principal(), end: WaitEnd::Withdrawn }
            }
        })
    }
}
