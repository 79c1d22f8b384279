//! A client process: it wants a lease, works under it, writes with its fence, and gives it back.

use tenure_client::{Call, Effect, Input, Keeper};
use tenure_core::kernel::{
    Acquire, Claim, Command, Contention, Digest, Fence, Holder, Mode, Nonce, Principal, RequestKey, Resource,
    Span, Ticket, WaitEnd, Want,
};
use tenure_core::lease::ReleaseReason;

use crate::clock::Clock;
use crate::rng::Rng;

/// One client's machine and what runs on it.
#[derive(Debug)]
pub struct Client {
    pub number: usize,
    pub clock: Clock,
    /// Counts processes, so that a message to an earlier one finds nobody.
    pub process: u64,
    /// Nothing reaches it, and it reaches nobody, until then.
    pub cut_off_until: u64,
    /// It does not run until then.
    pub paused_until: u64,
    /// What it is after; nothing while it rests.
    pub errand: Option<Errand>,
    /// The true time for which its timer is set.
    pub planned_wake: Option<u64>,
    /// Counts errands, so that a reply to an earlier one is not taken for one to this.
    pub errands: u64,
}

/// One lease that a client is after.
#[derive(Debug)]
pub struct Errand {
    pub keeper: Keeper,
    /// What it is for: any one of these.
    pub resources: Vec<Resource>,
    pub mode: Mode,
    ttl: Span,
    contention: Contention,
    key: RequestKey,
    nonce: Nonce,
    /// When it will be done, in true time.
    pub done_at: u64,
}

impl Client {
    pub fn new(number: usize, clock: Clock) -> Self {
        Self {
            number,
            clock,
            process: 0,
            cut_off_until: 0,
            paused_until: 0,
            errand: None,
            planned_wake: None,
            errands: 0,
        }
    }

    /// Who it is to the registrar. Each process is another holder: it knows nothing of the one before.
    pub fn holder(&self) -> Holder {
        Holder::parse(&format!("client-{}.{}", self.number, self.process)).expect("a plain name")
    }

    pub fn principal(&self) -> Principal {
        Principal::parse(&format!("owner-{}", self.number)).expect("a plain name")
    }

    pub fn set_out(&mut self, now: u64, resources: u64, rng: &mut Rng) -> Vec<Effect> {
        self.errands += 1;
        let ttl = Span::from_millis(rng.between(1_000, 8_000));
        let first = rng.below(resources);
        // Some do not care which one they get.
        let count = if rng.percent(30) { resources } else { 1 };
        let thing = |distance: u64| format!("thing:{}", (first + distance) % resources);
        let things = (0..count).map(|distance| Resource::parse(&thing(distance)).expect("a plain name"));
        let mode = *rng.pick(&[Mode::Exclusive, Mode::Exclusive, Mode::Exclusive, Mode::Shared]);
        let patience = Span::from_millis(rng.between(500, 20_000));
        let contention = *rng.pick(&[Contention::Refuse, Contention::Queue { patience }]);
        let key = Digest::of(format!("{}.{}.{}", self.number, self.process, self.errands).as_bytes());
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&rng.next().to_le_bytes());
        let mut errand = Errand {
            keeper: Keeper::new(ttl),
            resources: things.collect(),
            mode,
            ttl,
            contention,
            key: RequestKey { key, body: key },
            nonce: Nonce(nonce),
            done_at: now + rng.delay(50_000, 2 * ttl.0 + 4_000_000),
        };
        let effects = errand.keeper.step(Input::Start, self.clock.microseconds(now), rng.next());
        self.errand = Some(errand);
        effects
    }

    /// Lets the keeper take a step.
    pub fn step(&mut self, input: Input, now: u64, rng: &mut Rng) -> Vec<Effect> {
        let microseconds = self.clock.microseconds(now);
        let Some(errand) = &mut self.errand else { return Vec::new() };
        errand.keeper.step(input, microseconds, rng.next())
    }

    /// What its guard says when asked at true time `now`.
    pub fn believes(&self, now: u64) -> Option<(Fence, &Errand)> {
        let errand = self.errand.as_ref()?;
        let fence = errand.keeper.believes(self.clock.microseconds(now))?;
        Some((fence, errand))
    }

    /// The true time at which its keeper wants to be woken.
    pub fn wake_time(&self) -> Option<u64> {
        let at = self.errand.as_ref()?.keeper.wake_at()?;
        Some(self.clock.true_time_of(at))
    }

    /// The process ends without a word, and another one begins.
    pub fn crash(&mut self) {
        self.process += 1;
        self.errand = None;
    }

    /// What a call of the keeper's asks of the registrar. `ticket` is where in the queue it is, if it waits.
    pub fn command(&self, call: Call, ticket: Option<Ticket>) -> Option<Command> {
        let errand = self.errand.as_ref()?;
        let claim = || Claim::Holder { holder: self.holder(), principal: self.principal() };
        Some(match call {
            Call::Acquire => Command::Acquire(Acquire {
                principal: self.principal(),
                holder: self.holder(),
                wants: {
                    let (first, others) = errand.resources.split_first()?;
                    let want = Want::new(first.clone(), errand.mode, errand.ttl, errand.nonce);
                    vec![want.or(others.iter().cloned())]
                },
                contention: errand.contention,
                key: Some(errand.key),
            }),
            Call::Renew(lease) => Command::Renew { lease, claim: claim(), ttl: None },
            Call::Release(lease) => {
                Command::Release { lease, claim: claim(), reason: ReleaseReason::Completed }
            }
            Call::Withdraw => {
                Command::Withdraw { ticket: ticket?, principal: self.principal(), end: WaitEnd::Withdrawn }
            }
        })
    }
}
