//! Leases with authority through the writer: many who spend at once, and who ends together.

use std::sync::Arc;

use tenure_core::authority::{Budget, LeaseScope, Purpose};
use tenure_core::kernel::{
    ClaimWork, Command, CommandOutcome, DeriveLease, Fence, HashSeed, Holder, Labels, LeaseCredential,
    Limits, Nonce, Principal, Rejection, SpendBudget, TickDuration, WorkCommand, decode,
};
use tenure_core::lease::ReleaseReason;
use tenure_ledger::signing::{LedgerSigningKey, TrustedKeys};
use tenure_ledger::{MemoryLedger, Seq};
use tenure_registrar::Reply;
use tenure_registrar::runtime::{Response, replay};

use crate::runtime::{ManualClock, granted_fence, start};
use crate::scenario::LEDGER;

fn tokens(tokens: u64) -> Budget {
    Budget { tokens, ..Budget::ZERO }
}

fn work_claim(work: &str, budget: u64) -> ClaimWork {
    ClaimWork {
        principal: Principal::parse("owner").unwrap(),
        holder: Holder::parse(work).unwrap(),
        work_id: work.into(),
        ttl: TickDuration::from_secs(60),
        nonce: Nonce::default(),
        labels: Labels::default(),
        scope: LeaseScope::Unlimited,
        budget: tokens(budget),
        key: None,
    }
}

fn work(command: WorkCommand) -> Command {
    Command::Work(Box::new(command))
}

fn derive(parent: Fence, child: ClaimWork) -> Command {
    work(WorkCommand::Derive(DeriveLease { parent, credential: LeaseCredential::Token, child }))
}

fn spend(lease: Fence, amount: u64) -> Command {
    let (claim, purpose, key) = (LeaseCredential::Token, Purpose::default(), None);
    work(WorkCommand::Spend(SpendBudget { lease, credential: claim, amount: tokens(amount), purpose, key }))
}

/// What a spender was told: whether it was spent.
fn is_spent(response: &Response) -> bool {
    match &response.reply {
        Reply::Answered { answer: CommandOutcome::Spent { .. }, .. } => true,
        Reply::Answered { answer: CommandOutcome::Rejected(Rejection::BudgetExceeded { .. }), .. } => false,
        other => panic!("{other:?}"),
    }
}

// S2-108, S2-111
#[test]
fn concurrent_spends_sum_to_the_acknowledged_amount_after_replay() {
    let writer = start(MemoryLedger::new(LEDGER), Arc::new(ManualClock::default()));
    let lease =
        granted_fence(writer.handle().submit_and_wait(work(WorkCommand::Claim(work_claim("plan", 10_000)))));
    let spent: u64 = std::thread::scope(|scope| {
        let spender = |number: u64| {
            let handle = writer.handle();
            scope.spawn(move || {
                let amounts = (0..40).map(|round| 1 + (number * 11 + round * 5) % 12);
                amounts.filter(|amount| is_spent(&handle.submit_and_wait(spend(lease, *amount)))).sum::<u64>()
            })
        };
        let spenders: Vec<_> = (0..64).map(spender).collect();
        spenders.into_iter().map(|spender| spender.join().unwrap()).sum()
    });
    let (ledger, end) = writer.stop();
    assert!(end.is_none(), "{end:?}");
    let state =
        replay(&*ledger.reader(), Limits::default(), HashSeed::default()).expect("it adds up").into_state();
    let work = state.work_lease(lease).expect("it lives");
    assert_eq!((work.spent.tokens, work.remaining.tokens), (spent, 10_000 - spent));
    assert!(
        work.remaining.tokens < 12,
        "nobody was refused who could have had it: {}",
        work.remaining.tokens
    );
}

// S2-109, O-16
#[test]
fn a_child_lease_is_signed_and_ends_with_its_parent_in_one_batch() {
    let writer = start(MemoryLedger::new(LEDGER), Arc::new(ManualClock::default()));
    let handle = writer.handle();
    let root = granted_fence(handle.submit_and_wait(work(WorkCommand::Claim(work_claim("plan", 100)))));
    let response = handle.submit_and_wait(derive(root, work_claim("part", 40)));
    let child = granted_fence(response.clone());
    granted_fence(handle.submit_and_wait(derive(child, work_claim("below", 10))));

    let passport = handle.passport(&response, child).expect("what was granted is signed");
    let trusted: TrustedKeys = [LedgerSigningKey::from_secret(&[7; 32]).public_key()].into_iter().collect();
    let claims = passport.verify(&trusted).expect("by the registrar");
    let authority = claims.terms.authority.expect("with authority");
    assert_eq!((authority.parent, authority.budget), (Some(root), tokens(40)));

    let reason = ReleaseReason::Completed;
    handle.submit_and_wait(Command::Release { lease: root, claim: LeaseCredential::Token, reason });
    let (ledger, _) = writer.stop();
    let batches = ledger.reader().read(Seq(0)).map(|batch| batch.expect("it can be read"));
    let ends = batches.map(|batch| {
        let events =
            batch.records.iter().filter_map(|record| decode(record, LEDGER.tag()).expect("an event"));
        events.filter(|event| event.ended_lease().is_some()).count()
    });
    assert_eq!(ends.filter(|count| *count > 0).collect::<Vec<_>>(), [3]);
}
