//! A kernel for leases with authority, and who asks it.

use tenure_core::authority::{Budget, LeaseScope, Purpose};
use tenure_core::kernel::{
    ClaimWork, ClockAnchor, Command, CommandOutcome, Decision, DeriveLease, EncodeContext, Event, Fence,
    Holder, IdempotencyKey, KernelState, Labels, LeaseCredential, LedgerTag, Limits, Nonce, Principal,
    RequestDigest, SpendBudget, Tick, TickDuration, WorkCommand, decide, decode, encode,
};

pub const TAG: LedgerTag = LedgerTag(7);

/// A state, and another that is told the same through the codec.
pub struct WorkFixture {
    pub state: KernelState,
    pub replayed: KernelState,
    pub now: u64,
    pub last: Vec<Event>,
}

impl WorkFixture {
    pub fn new() -> Self {
        let state = || KernelState::new(TAG, Limits::default(), Default::default());
        Self { state: state(), replayed: state(), now: 0, last: Vec::new() }
    }

    /// So many seconds pass, and something is asked.
    pub fn run_after(&mut self, seconds: u64, command: &Command) -> CommandOutcome {
        self.now += seconds * 1_000_000;
        self.run(command)
    }

    pub fn run(&mut self, command: &Command) -> CommandOutcome {
        let Decision { events, outcome: answer, .. } = decide(&self.state, command, Tick(self.now));
        for event in &events {
            self.state.apply(event).unwrap_or_else(|error| panic!("{error}: {event:?} of {command:?}"));
            // After each event, not only after each decision: nobody is without its parent even in between.
            let whole = self.state.check_invariants();
            whole.unwrap_or_else(|wrong| panic!("{wrong} after {event:?} of {command:?}\n{events:?}"));
            let stamp = EncodeContext { tag: TAG, anchor: ClockAnchor::default(), signature: &[] };
            let stored = decode(&encode(event, stamp), TAG).expect("it can be read");
            assert_eq!(stored.as_ref(), Some(event));
            self.replayed.apply(event).expect("a replay is the same");
        }
        assert_eq!(self.state.to_comparable(), self.replayed.to_comparable());
        self.last = events;
        answer
    }

    /// The lease that was granted.
    pub fn expect_granted(&mut self, command: &Command) -> Fence {
        match self.run(command) {
            CommandOutcome::Granted { leases } if leases.len() == 1 => leases[0],
            answer => panic!("{answer:?} to {command:?}"),
        }
    }

    pub fn remaining_tokens(&self, lease: Fence) -> u64 {
        self.state.work_lease(lease).expect("it lives").remaining.tokens
    }

    /// Which leases live, by their numbers.
    pub fn active_leases(&self) -> Vec<u64> {
        self.state.leases_from(Fence(0)).map(|lease| lease.fence.0).collect()
    }

    pub fn save_and_restore(&mut self) {
        let mut bytes = Vec::new();
        self.state.save(&mut |piece| bytes.extend_from_slice(piece));
        let restored = KernelState::restore(&bytes, TAG, Limits::default(), Default::default());
        let restored = restored.expect("what was saved can be restored");
        restored.check_invariants().expect("a restored state is whole");
        assert_eq!(restored.to_comparable(), self.state.to_comparable());
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
    Budget { tokens, ..Budget::ZERO }
}

pub fn key(key: u8, body: u8) -> Option<IdempotencyKey> {
    Some(IdempotencyKey { key: RequestDigest([key; 16]), body: RequestDigest([body; 16]) })
}

/// A lease on `work_id` for so many seconds, with so many tokens.
pub fn claim_request(work_id: &str, seconds: u64, budget: u64) -> ClaimWork {
    ClaimWork {
        principal: principal(),
        holder: holder(&format!("actor-{work_id}")),
        work_id: work_id.into(),
        ttl: TickDuration::from_secs(seconds),
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
    Command::Work(Box::new(WorkCommand::Derive(DeriveLease {
        parent,
        credential: LeaseCredential::Token,
        child,
    })))
}

pub fn spend_request(lease: Fence, amount: u64) -> SpendBudget {
    let (purpose, key) = (Purpose::default(), None);
    SpendBudget { lease, credential: LeaseCredential::Token, amount: tokens(amount), purpose, key }
}

pub fn spend(spend: SpendBudget) -> Command {
    Command::Work(Box::new(WorkCommand::Spend(spend)))
}

pub fn release(lease: Fence) -> Command {
    let reason = tenure_core::lease::ReleaseReason::Completed;
    Command::Release { lease, claim: LeaseCredential::Token, reason }
}
