//! A state in steady traffic: as many live leases as asked for, and as much memory of ended ones as it keeps.

use tenure_core::kernel::{
    Acquire, Claim, Command, Contention, Decision, Event, Fence, HashKey, Holder, Labels, LedgerTag, Limits,
    Mode, Nonce, Principal, Resource, Span, State, Tick, Want, decide,
};
use tenure_core::lease::ReleaseReason;

/// How many operations are timed at once, as a busy server takes them at once.
pub const BATCH: usize = 16;

const HOLDERS: u64 = 1_000;
const PRINCIPALS: u64 = 20;
const SECONDS: [u64; 5] = [5, 30, 60, 600, 24 * 3600];

/// The leases of a ledger, and who asks for them.
pub struct World {
    pub state: State,
    pub live: Vec<Live>,
    now: Tick,
    next_number: u64,
    random: Random,
    speakers: Vec<(Holder, Principal)>,
    /// How many seconds the next leases last: one of these.
    lengths: &'static [u64],
}

/// A live lease, and the number in its resource's name.
#[derive(Clone, Copy)]
pub struct Live {
    pub fence: Fence,
    pub number: u64,
}

/// A request and the tick that it is stamped with.
pub struct Request {
    pub command: Command,
    pub at: Tick,
}

impl World {
    /// A world without leases. Room for `leases` is made and touched, so that it counts for nobody later.
    pub fn empty(leases: usize) -> Self {
        let speakers = (0..HOLDERS).map(|number| {
            let holder = Holder::parse(&format!("agent-{:03}@host-{:02}", number, number % 50));
            let principal = Principal::parse(&format!("token-{:02}", number % PRINCIPALS));
            (holder.expect("a good name"), principal.expect("a good name"))
        });
        let mut live = vec![Live { fence: Fence(u64::MAX), number: u64::MAX }; leases];
        live.clear();
        Self {
            state: State::new(LedgerTag(0xbe9c), Limits::default(), HashKey(7, 11)),
            live,
            now: Tick(1_000_000),
            next_number: 0,
            random: Random(leases as u64 + 1),
            speakers: speakers.collect(),
            lengths: &SECONDS,
        }
    }

    /// Acquires until there are `leases`.
    pub fn fill(&mut self, leases: usize) {
        while self.live.len() < leases {
            let requests = self.acquires((leases - self.live.len()).min(BATCH));
            requests.iter().for_each(|request| drop(perform(&mut self.state, request)));
            self.note_granted(requests.len());
        }
    }

    /// Requests for resources that nobody holds. The caller must [note](Self::note_granted) them.
    pub fn acquires(&mut self, count: usize) -> Vec<Request> {
        let first = self.next_number;
        self.next_number += count as u64;
        (first..self.next_number).map(|number| self.acquire(number)).collect()
    }

    /// Takes the newest grants into the list of what lives.
    pub fn note_granted(&mut self, count: usize) {
        let (fence, number) = (self.state.last_fence().0 + 1, self.next_number);
        let grants = (1..=count as u64).rev();
        self.live.extend(grants.map(|back| Live { fence: Fence(fence - back), number: number - back }));
    }

    /// Requests for resources that somebody holds.
    pub fn refused_acquires(&mut self) -> Vec<Request> {
        let numbers: Vec<u64> = (0..BATCH).map(|_| self.any_live().number).collect();
        numbers.into_iter().map(|number| self.acquire(number)).collect()
    }

    /// Renewals of any leases.
    pub fn renewals(&mut self) -> Vec<Request> {
        let renewal = |fence| Command::Renew { lease: fence, claim: Claim::Token, ttl: None };
        (0..BATCH).map(|_| (renewal(self.any_live().fence), self.tick())).map(Request::new).collect()
    }

    /// Releases of any leases, which count as gone from now on.
    pub fn releases(&mut self) -> Vec<Request> {
        let release = |world: &mut Self| {
            let index = world.random.below(world.live.len());
            let lease = world.live.swap_remove(index).fence;
            Command::Release { lease, claim: Claim::Token, reason: ReleaseReason::Completed }
        };
        (0..BATCH).map(|_| (release(self), self.tick())).map(Request::new).collect()
    }

    /// Time passes until the shortest leases are over. From now on there are only such to come, or else
    /// there would be fewer of them each time.
    pub fn let_some_run_out(&mut self) {
        self.now = self.now.saturating_add(Span::from_secs(SECONDS[0]));
        self.lengths = &SECONDS[..1];
    }

    /// The sweep of as many leases as a server announces at once.
    pub fn sweep(&self) -> Request {
        Request { command: Command::Expire { most: 1_024 }, at: self.now }
    }

    /// Drops from the list what has been swept.
    pub fn note_swept(&mut self) {
        let state = &self.state;
        self.live.retain(|live| state.lease(live.fence).is_some());
    }

    fn acquire(&mut self, number: u64) -> Request {
        let (holder, principal) = self.speakers[self.random.below(self.speakers.len())].clone();
        let ttl = Span::from_secs(self.lengths[self.random.below(self.lengths.len())]);
        let nonce = u128::from(self.random.next()) << 64 | u128::from(number);
        let want = Want {
            resource: resource(number),
            others: Default::default(),
            mode: Mode::Exclusive,
            ttl,
            nonce: Nonce(nonce.to_le_bytes()),
            labels: Labels::default(),
        };
        let (wants, contention) = (vec![want], Contention::Refuse);
        let command = Command::Acquire(Acquire { principal, holder, wants, contention, key: None });
        Request { command, at: self.tick() }
    }

    fn any_live(&mut self) -> Live {
        self.live[self.random.below(self.live.len())]
    }

    /// A little later, but so little that nothing runs out unless it [should](Self::let_some_run_out).
    fn tick(&mut self) -> Tick {
        self.now = self.now.saturating_add(Span(self.random.next() % 3));
        self.now
    }
}

impl Request {
    fn new((command, at): (Command, Tick)) -> Self {
        Self { command, at }
    }
}

/// What a registrar does with each request, but for the disk.
pub fn perform(state: &mut State, request: &Request) -> Decision {
    let decision = decide(state, &request.command, request.at);
    apply_all(state, &decision.events);
    decision
}

/// Records events that were decided on this state.
pub fn apply_all(state: &mut State, events: &[Event]) {
    events.iter().for_each(|event| state.apply(event).expect("what was decided can be applied"));
}

/// A name of some 30 bytes.
pub fn resource(number: u64) -> Resource {
    Resource::parse(&format!("FILE:repo/src/module_{number:06}.rs")).expect("a good name")
}

/// SplitMix64: the same numbers in every run.
pub struct Random(pub u64);

impl Random {
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
