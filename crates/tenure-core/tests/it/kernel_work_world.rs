//! A kernel for leases with authority, and who asks it.

use tenure_core::authority::{Budget, LeaseScope, Purpose};
use tenure_core::kernel::{
    Anchor, Answer, Claim, ClaimWork, Command, Decision, Derive, Digest, Event, Fence, Holder, Labels,
    LedgerTag, Limits, Nonce, Principal, RequestKey, Span, Spend, Stamp, State, Tick, WorkCommand, decide,
    decode, encode,
};

pub const TAG: LedgerTag = LedgerTag(7);

/// A state, and another that is told the same through the codec.
pub struct World {
    pub state: State,
    pub replayed: State,
    pub now: u64,
    pub last: Vec<Event>,
}

impl World {
    pub fn new() -> Self {
        let state = || State::new(TAG, Limits::default(), Default::default());
        Self { state: state(), replayed: state(), now: 0, last: Vec::new() }
    }

    /// So many seconds pass, and something is asked.
    pub fn after(&mut self, seconds: u64, command: &Command) -> Answer {
        self.now += seconds * 1_000_000;
        self.take(command)
    }

    pub fn take(&mut self, command: &Command) -> Answer {
        let Decision { events, answer, .. } = decide(&self.state, command, Tick(self.now));
        for event in &events {
            self.state.apply(event).unwrap_or_else(|misfit| panic!("{misfit}: {event:?} of {command:?}"));
            // After each event, not only after each decision: nobody is without its parent even in between.
            let whole = self.state.check_invariants();
            whole.unwrap_or_else(|wrong| panic!("{wrong} after {event:?} of {command:?}\n{events:?}"));
            let stamp = Stamp { tag: TAG, anchor: Anchor::default(), signature: &[] };
            let stored = decode(&encode(event, stamp), TAG).expect("it can be read");
            assert_eq!(stored.as_ref(), Some(event));
            self.replayed.apply(event).expect("a replay is the same");
        }
        assert_eq!(self.state.snapshot(), self.replayed.snapshot());
        self.last = events;
        answer
    }

    /// The lease that was granted.
    pub fn granted(&mut self, command: &Command) -> Fence {
        match self.take(command) {
            Answer::Granted { leases } if leases.len() == 1 => leases[0],
            answer => panic!("{answer:?} to {command:?}"),
        }
    }

    pub fn left(&self, lease: Fence) -> u64 {
        self.state.work(lease).expect("it lives").left.tokens
    }

    /// Which leases live, by their numbers.
    pub fn living(&self) -> Vec<u64> {
        self.state.leases_from(Fence(0)).map(|lease| lease.fence.0).collect()
    }

    pub fn save_and_restore(&mut self) {
        let mut bytes = Vec::new();
        self.state.save(&mut |piece| bytes.extend_from_slice(piece));
        let restored = State::restore(&bytes, TAG, Limits::default(), Default::default());
        let restored = restored.expect("what was saved can be restored");
        restored.check_invariants().expect("a restored state is whole");
        assert_eq!(restored.snapshot(), self.state.snapshot());
        self.replayed = restored;
    }
}

pub fn holder(name: &str) -> Holder {
    Holder::parse(name).expect("a name")
}

pub fn principal() -> Principal {
    Principal::parse("token:a").expect("a name")
}

pub fn tokens(tokens: u64) -> Budget {
    Budget { tokens, ..Budget::NOTHING }
}

pub fn key(key: u8, body: u8) -> Option<RequestKey> {
    Some(RequestKey { key: Digest([key; 16]), body: Digest([body; 16]) })
}

/// A lease on `work_id` for so many seconds, with so many tokens.
pub fn claim_of(work_id: &str, seconds: u64, budget: u64) -> ClaimWork {
    ClaimWork {
        principal: principal(),
        holder: holder(&format!("actor-{work_id}")),
        work_id: work_id.into(),
        ttl: Span::from_secs(seconds),
        nonce: Nonce([1; 16]),
        labels: Labels::default(),
        scope: LeaseScope::Unlimited,
        budget: tokens(budget),
        key: None,
    }
}

pub fn claim(claim: ClaimWork) -> Command {
    Command::Work(Box::new(WorkCommand::Claim(claim)))
}

pub fn derive(parent: Fence, child: ClaimWork) -> Command {
    Command::Work(Box::new(WorkCommand::Derive(Derive { parent, claim: Claim::Token, child })))
}

pub fn spend_of(lease: Fence, amount: u64) -> Spend {
    let (purpose, key) = (Purpose::default(), None);
    Spend { lease, claim: Claim::Token, amount: tokens(amount), purpose, key }
}

pub fn spend(spend: Spend) -> Command {
    Command::Work(Box::new(WorkCommand::Spend(spend)))
}

pub fn release(lease: Fence) -> Command {
    let reason = tenure_core::lease::ReleaseReason::Completed;
    Command::Release { lease, claim: Claim::Token, reason }
}
