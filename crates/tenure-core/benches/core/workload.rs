//! A state in steady traffic: as many live leases as asked for, and as much memory of ended ones as it keeps.

use tenure_core::kernel::{
    Acquire, Command, ContentionPolicy, Decision, Event, Fence, HashSeed, Holder, KernelState, Labels,
    LeaseCredential, LeaseMode, LeaseRequest, LedgerTag, Limits, Nonce, Principal, Resource, Tick,
    TickDuration, decide,
};
use tenure_core::lease::ReleaseReason;

/// How many operations are timed at once, as a busy server takes them at once.
pub const BATCH: usize = 16;

const HOLDERS: u64 = 1_000;
const PRINCIPALS: u64 = 20;
const SECONDS: [u64; 5] = [5, 30, 60, 600, 24 * 3600];

/// The leases of a ledger, and who asks for them.
pub struct Workload {
    pub state: KernelState,
    pub live: Vec<ActiveLease>,
    now: Tick,
    next_number: u64,
    random: Rng,
    callers: Vec<(Holder, Principal)>,
    /// How many seconds the next leases last: one of these.
    ttl_seconds: &'static [u64],
}

/// A live lease, and the number in its resource's name.
#[derive(Clone, Copy)]
pub struct ActiveLease {
    pub fence: Fence,
    pub number: u64,
}

/// A request and the tick that it is stamped with.
pub struct TimedCommand {
    pub command: Command,
    pub at: Tick,
}

impl Workload {
    /// A world without leases. Room for `leases` is made and touched, so that it counts for nobody later.
    pub fn empty(leases: usize) -> Self {
        let speakers = (0..HOLDERS).map(|number| {
            let holder = Holder::parse(&format!("agent-{:03}@host-{:02}", number, number % 50));
            let principal = Principal::parse(&format!("token-{:02}", number % PRINCIPALS));
            (holder.expect("a good name"), principal.expect("a good name"))
        });
        let mut live = vec![ActiveLease { fence: Fence(u64::MAX), number: u64::MAX }; leases];
        live.clear();
        Self {
            state: KernelState::new(LedgerTag(0xbe9c), Limits::default(), HashSeed(7, 11)),
            live,
            now: Tick(1_000_000),
            next_number: 0,
            random: Rng(leases as u64 + 1),
            callers: speakers.collect(),
            ttl_seconds: &SECONDS,
        }
    }

    /// Acquires until there are `leases`.
    pub fn fill(&mut self, leases: usize) {
        while self.live.len() < leases {
            let requests = self.acquires((leases - self.live.len()).min(BATCH));
            requests.iter().for_each(|request| drop(decide_and_apply(&mut self.state, request)));
            self.record_grants(requests.len());
        }
    }

    /// Requests for resources that nobody holds. The caller must [note](Self::note_granted) them.
    pub fn acquires(&mut self, count: usize) -> Vec<TimedCommand> {
        let first = self.next_number;
        self.next_number += count as u64;
        (first..self.next_number).map(|number| self.acquire(number)).collect()
    }

    /// Takes the newest grants into the list of what lives.
    pub fn record_grants(&mut self, count: usize) {
        let (fence, number) = (self.state.last_fence().0 + 1, self.next_number);
        let grants = (1..=count as u64).rev();
        self.live
            .extend(grants.map(|back| ActiveLease { fence: Fence(fence - back), number: number - back }));
    }

    /// Requests for resources that somebody holds.
    pub fn contended_acquires(&mut self) -> Vec<TimedCommand> {
        let numbers: Vec<u64> = (0..BATCH).map(|_| self.random_lease().number).collect();
        numbers.into_iter().map(|number| self.acquire(number)).collect()
    }

    /// Renewals of any leases.
    pub fn renewals(&mut self) -> Vec<TimedCommand> {
        let renewal = |fence| Command::Renew { lease: fence, credential: LeaseCredential::Token, ttl: None };
        (0..BATCH).map(|_| (renewal(self.random_lease().fence), self.tick())).map(TimedCommand::new).collect()
    }

    /// Releases of any leases, which count as gone from now on.
    pub fn releases(&mut self) -> Vec<TimedCommand> {
        let release = |world: &mut Self| {
            let index = world.random.below(world.live.len());
            let lease = world.live.swap_remove(index).fence;
            Command::Release { lease, claim: LeaseCredential::Token, reason: ReleaseReason::Completed }
        };
        (0..BATCH).map(|_| (release(self), self.tick())).map(TimedCommand::new).collect()
    }

    /// Time passes until the shortest leases are over. From now on there are only such to come, or else
    /// there would be fewer of them each time.
    pub fn expire_shortest(&mut self) {
        self.now = self.now.saturating_add(TickDuration::from_secs(SECONDS[0]));
        self.ttl_seconds = &SECONDS[..1];
    }

    /// The sweep of as many leases as a server announces at once.
    pub fn sweep(&self) -> TimedCommand {
        TimedCommand { command: Command::Expire { max_ended: 1_024 }, at: self.now }
    }

    /// Drops from the list what has been swept.
    pub fn remove_expired(&mut self) {
        let state = &self.state;
        self.live.retain(|live| state.lease(live.fence).is_some());
    }

    fn acquire(&mut self, number: u64) -> TimedCommand {
        let (holder, principal) = self.callers[self.random.below(self.callers.len())].clone();
        let ttl = TickDuration::from_secs(self.ttl_seconds[self.random.below(self.ttl_seconds.len())]);
        let nonce = u128::from(self.random.next()) << 64 | u128::from(number);
        let request = LeaseRequest {
            resource: resource(number),
            alternatives: Default::default(),
            mode: LeaseMode::Exclusive,
            ttl,
            nonce: Nonce(nonce.to_le_bytes()),
            labels: Labels::default(),
        };
        let (requests, contention) = (vec![request], ContentionPolicy::Deny);
        let command = Command::Acquire(Acquire {
            principal,
            holder,
            requests,
            contention_policy: contention,
            key: None,
        });
        TimedCommand { command, at: self.tick() }
    }

    fn random_lease(&mut self) -> ActiveLease {
        self.live[self.random.below(self.live.len())]
    }

    /// A little later, but so little that nothing runs out unless it [should](Self::let_some_run_out).
    fn tick(&mut self) -> Tick {
        self.now = self.now.saturating_add(TickDuration(self.random.next() % 3));
        self.now
    }
}

impl TimedCommand {
    fn new((command, at): (Command, Tick)) -> Self {
        Self { command, at }
    }
}

/// What a registrar does with each request, but for the disk.
pub fn decide_and_apply(state: &mut KernelState, request: &TimedCommand) -> Decision {
    let decision = decide(state, &request.command, request.at);
    apply_all(state, &decision.events);
    decision
}

/// Records events that were decided on this state.
pub fn apply_all(state: &mut KernelState, events: &[Event]) {
    events.iter().for_each(|event| state.apply(event).expect("what was decided can be applied"));
}

/// A name of some 30 bytes.
pub fn resource(number: u64) -> Resource {
    Resource::parse(&format!("FILE:repo/src/module_{number:06}.rs")).expect("a good name")
}

/// SplitMix64: the same numbers in every run.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).expect("smaller than a usize")
    }
}
