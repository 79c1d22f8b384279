//! Each law of work leases is shown a history that breaks it, and must name itself.

use std::sync::Arc;

use tenure_core::authority::{Authority, Budget, LeaseScope, Purpose};
use tenure_core::kernel::{
    ClaimWork, Command, CommandOutcome, DeriveLease, Event, Fence, Holder, IdempotencyKey, IssuedLease,
    KernelState, Labels, LeaseCredential, LeaseEnd, LeaseMode, LeaseTerms, Nonce, Principal, Rejection,
    RequestDigest, Resource, RevocationCause, SpendBudget, Tick, TickDuration, WorkCommand, WorkEvent,
};
use tenure_core::lease::ReleaseReason;
use tenure_sim::invariants::{InvariantResult, LedgerModel, Violation, WorkLaw};

const SECOND: u64 = 1_000_000;
const ROOT: Fence = Fence(1);

/// A root lease with 10 tokens for 60 s from tick 0, of which a child has 4 for 30 s. Both allow what [`scope`] names.
struct WorkHistory(LedgerModel);

impl WorkHistory {
    fn new() -> Self {
        let mut history = Self(LedgerModel::default());
        history.grant(1, None, claim("T-0", 60, 10)).expect("a claim is lawful");
        history.grant(2, Some(ROOT), claim("T-1", 30, 4)).expect("a derivation is lawful");
        history.end_write().expect("a write is lawful");
        history
    }

    /// The holder requests it, and it is granted at tick 0.
    fn grant(&mut self, fence: u64, parent: Option<Fence>, claim: ClaimWork) -> InvariantResult {
        self.request(&grant_command(parent, claim.clone()));
        self.apply(&granted(fence, parent, &claim))
    }

    fn spend(&mut self, spend: &SpendBudget, at: u64) -> InvariantResult {
        self.request(&spend_command(spend));
        self.apply(&spent(spend, at))
    }

    fn request(&mut self, command: &Command) {
        self.0.work_mut().record_request(command);
    }

    fn apply(&mut self, event: &Event) -> InvariantResult {
        self.0.apply_durable(event, event.occurred_at().0)
    }

    fn end_write(&mut self) -> InvariantResult {
        self.0.check_between_batches()
    }

    fn answer(&mut self, command: &Command, answer: CommandOutcome, at: u64) -> InvariantResult {
        self.0.work_mut().check_answer(command, &answer, Tick(at * SECOND))
    }

    fn reject(&mut self, command: &Command, rejection: Rejection, at: u64) -> InvariantResult {
        self.answer(command, CommandOutcome::Rejected(rejection), at)
    }
}

fn principal() -> Principal {
    Principal::parse("team").unwrap()
}

fn tokens(tokens: u64) -> Budget {
    Budget { tokens, ..Budget::ZERO }
}

fn scope() -> LeaseScope {
    LeaseScope::limited(["T-0", "T-1", "T-2"], ["build"], ["src"]).unwrap()
}

fn claim(work_id: &str, seconds: u64, budget: u64) -> ClaimWork {
    ClaimWork {
        principal: principal(),
        holder: Holder::parse(&format!("holder-of-{work_id}")).unwrap(),
        work_id: work_id.into(),
        ttl: TickDuration::from_secs(seconds),
        nonce: Nonce::default(),
        labels: Labels::default(),
        scope: scope(),
        budget: tokens(budget),
        key: None,
    }
}

fn grant_command(parent: Option<Fence>, child: ClaimWork) -> Command {
    let credential = LeaseCredential::Token;
    Command::Work(Box::new(match parent {
        Some(parent) => WorkCommand::Derive(DeriveLease { parent, credential, child }),
        None => WorkCommand::Claim(child),
    }))
}

fn granted(fence: u64, parent: Option<Fence>, claim: &ClaimWork) -> Event {
    Event::Issued(IssuedLease {
        fence: Fence(fence),
        resource: Resource::parse(&format!("work:{}", claim.work_id)).unwrap(),
        holder: claim.holder.clone(),
        principal: claim.principal.clone(),
        terms: LeaseTerms {
            mode: LeaseMode::Exclusive,
            issued_at: Tick(0),
            expires_at: Tick(claim.ttl.0),
            ttl: claim.ttl,
            renewals: 0,
            nonce: claim.nonce,
            labels: Labels::default(),
        },
        key: claim.key,
        ticket: None,
        continues: None,
        authority: Some(Arc::new(Authority { parent, scope: claim.scope.clone(), budget: claim.budget })),
    })
}

/// A spend of the root lease under key 1.
fn spend(amount: u64) -> SpendBudget {
    let key = RequestDigest([1; 16]);
    SpendBudget {
        lease: ROOT,
        credential: LeaseCredential::Token,
        amount: tokens(amount),
        purpose: Purpose::default(),
        key: Some(IdempotencyKey { key, body: key }),
    }
}

fn spend_in(namespace: &str) -> SpendBudget {
    let purpose = Purpose { namespace: Some(namespace.into()), ..Purpose::default() };
    SpendBudget { purpose, ..spend(1) }
}

fn spend_command(spend: &SpendBudget) -> Command {
    Command::Work(Box::new(WorkCommand::Spend(spend.clone())))
}

fn spent(spend: &SpendBudget, at: u64) -> Event {
    Event::Work(Box::new(WorkEvent::Spent {
        lease: spend.lease,
        at: Tick(at * SECOND),
        amount: spend.amount,
        purpose: spend.purpose.clone(),
        key: spend.key,
    }))
}

fn spent_answer(remaining: u64) -> CommandOutcome {
    CommandOutcome::Spent { lease: ROOT, remaining: tokens(remaining) }
}

fn release_command(lease: u64) -> Command {
    let (lease, reason) = (Fence(lease), ReleaseReason::Completed);
    Command::Release { lease, claim: LeaseCredential::Token, reason }
}

fn released(lease: u64, at: u64) -> Event {
    let (lease, at, reason) = (Fence(lease), Tick(at * SECOND), ReleaseReason::Completed);
    Event::Released { lease, at, by: Holder::parse("holder").unwrap(), reason }
}

/// The registrar ends a lease in the name of its principal, because its parent ends.
fn revoked(lease: u64, at: u64) -> Event {
    let (lease, at, cause) = (Fence(lease), Tick(at * SECOND), RevocationCause::Revoked);
    Event::Revoked { lease, at, cause, by: principal(), detail: "".into() }
}

fn renewed(lease: u64, at: u64, until: u64) -> (Command, Event) {
    let (lease, ttl) = (Fence(lease), TickDuration::from_secs(until - at));
    let (at, expires_at) = (Tick(at * SECOND), Tick(until * SECOND));
    let credential = LeaseCredential::Token;
    (Command::Renew { lease, credential, ttl: Some(ttl) }, Event::Renewed { lease, at, expires_at, ttl })
}

/// The end of a history that is lawful until its last step, which breaks this law.
fn break_law(law: WorkLaw, history: &mut WorkHistory) -> InvariantResult {
    let child = claim("T-2", 30, 6);
    match law {
        WorkLaw::ScopeWithinParent => {
            let scope = LeaseScope::limited(["T-2"], ["build", "shell"], []).unwrap();
            history.grant(3, Some(ROOT), ClaimWork { scope, ..child })
        }
        WorkLaw::EndWithinParent => history.grant(3, Some(ROOT), claim("T-2", 61, 6)),
        WorkLaw::BudgetFromParent => history.grant(3, Some(ROOT), claim("T-2", 30, 7)),
        WorkLaw::SpentBelowWithinBudget => history.spend(&spend(11), 1),
        WorkLaw::SpendWithinLease => history.spend(&spend(7), 1),
        WorkLaw::ChildrenEndFirst => {
            history.request(&release_command(1));
            history.apply(&released(1, 1))
        }
        WorkLaw::EndsWithParent => {
            history.apply(&revoked(2, 1))?;
            history.end_write()
        }
        WorkLaw::YoungestEndsFirst => {
            history.grant(3, Some(ROOT), child)?;
            history.apply(&revoked(2, 1))
        }
        WorkLaw::HolderOnly => {
            let holder = Holder::parse("holder-of-T-1").unwrap();
            let credential = LeaseCredential::Holder { holder, principal: principal() };
            history.spend(&SpendBudget { credential, ..spend(1) }, 1)
        }
        WorkLaw::OncePerKey => {
            history.spend(&spend(1), 1)?;
            history.spend(&spend(1), 2)
        }
        WorkLaw::AcknowledgedIsDurable => history.answer(&spend_command(&spend(1)), spent_answer(5), 1),
        WorkLaw::ExactRemaining => {
            history.spend(&spend(1), 1)?;
            history.answer(&spend_command(&spend(1)), spent_answer(6), 1)
        }
        WorkLaw::RejectedChangesNothing => {
            history.spend(&spend(4), 1)?;
            let rejection = Rejection::BudgetExceeded { remaining: tokens(2) };
            history.reject(&spend_command(&spend(4)), rejection, 1)
        }
        WorkLaw::JustifiedRejections => {
            let rejection = Rejection::OutOfScope { what: "for" };
            history.reject(&spend_command(&spend_in("src/web")), rejection, 1)
        }
        WorkLaw::ReplayedSums => history.0.work().check_sums(&KernelState::default()),
    }
}

#[track_caller]
fn assert_breaks(law: WorkLaw, result: InvariantResult) {
    let Violation(text) = result.expect_err("this history breaks a law");
    assert!(text.starts_with(law.sentence()), "found {text:?}, not {law:?}");
}

#[test]
fn each_work_law_rejects_a_history_that_breaks_it() {
    for law in WorkLaw::ALL {
        assert_breaks(*law, break_law(*law, &mut WorkHistory::new()));
    }
}

#[test]
fn a_lawful_work_history_is_accepted() {
    let mut history = WorkHistory::new();
    let child =
        ClaimWork { scope: LeaseScope::limited(["T-2"], [], ["src/web"]).unwrap(), ..claim("T-2", 60, 1) };
    assert_eq!(history.grant(3, Some(ROOT), child.clone()), Ok(()));
    let answer = CommandOutcome::Granted { leases: vec![Fence(3)] };
    assert_eq!(history.answer(&grant_command(Some(ROOT), child), answer, 0), Ok(()));
    assert_eq!(history.spend(&spend(5), 1), Ok(()));
    // A repeated spend is acknowledged again.
    assert_eq!(history.answer(&spend_command(&spend(5)), spent_answer(0), 1), Ok(()));
    assert_eq!(history.answer(&spend_command(&spend(5)), spent_answer(0), 2), Ok(()));
    let (command, event) = renewed(2, 20, 60);
    history.request(&command);
    assert_eq!(history.apply(&event), Ok(()));
    history.request(&release_command(1));
    for event in [revoked(3, 21), revoked(2, 21), released(1, 21)] {
        assert_eq!(history.apply(&event), Ok(()));
    }
    assert_eq!(history.end_write(), Ok(()));
    assert_eq!(history.answer(&release_command(1), CommandOutcome::Released { lease: ROOT }, 21), Ok(()));
}

#[test]
fn a_renewal_beyond_the_parent_is_a_violation() {
    let mut history = WorkHistory::new();
    let (command, event) = renewed(2, 20, 61);
    history.request(&command);
    assert_breaks(WorkLaw::EndWithinParent, history.apply(&event));
}

#[test]
fn a_spend_outside_the_scope_or_after_the_end_is_a_violation() {
    for namespace in ["src-old", "docs", "src/../docs"] {
        assert_breaks(WorkLaw::SpendWithinLease, WorkHistory::new().spend(&spend_in(namespace), 1));
    }
    assert_eq!(WorkHistory::new().spend(&spend_in("src/web"), 1), Ok(()));
    assert_breaks(WorkLaw::SpendWithinLease, WorkHistory::new().spend(&spend(1), 60));
}

#[test]
fn an_unrequested_or_foreign_change_of_a_lease_is_a_violation() {
    assert_breaks(WorkLaw::HolderOnly, WorkHistory::new().apply(&spent(&spend(1), 1)));
    assert_breaks(WorkLaw::HolderOnly, WorkHistory::new().apply(&released(2, 1)));
    let (_, event) = renewed(2, 1, 40);
    assert_breaks(WorkLaw::HolderOnly, WorkHistory::new().apply(&event));
    let child = claim("T-2", 30, 1);
    assert_breaks(WorkLaw::HolderOnly, WorkHistory::new().apply(&granted(3, Some(ROOT), &child)));
    let holder = Holder::parse("holder-of-T-0").unwrap();
    let credential = LeaseCredential::Holder { holder, principal: Principal::parse("stranger").unwrap() };
    let spend = spend_command(&SpendBudget { credential, ..spend(0) });
    assert_breaks(WorkLaw::HolderOnly, WorkHistory::new().answer(&spend, spent_answer(6), 1));
}

#[test]
fn an_unjustified_rejection_is_a_violation() {
    let command = spend_command(&spend(6));
    let reject = |rejection, at| WorkHistory::new().reject(&command, rejection, at);
    let ended = || Rejection::Ended { lease: ROOT, end: LeaseEnd::Expired };
    let exceeded = |remaining| Rejection::BudgetExceeded { remaining: tokens(remaining) };
    assert_breaks(WorkLaw::JustifiedRejections, reject(ended(), 59));
    assert_eq!(reject(ended(), 60), Ok(()));
    assert_breaks(WorkLaw::JustifiedRejections, reject(exceeded(6), 1));
    assert_breaks(WorkLaw::ExactRemaining, reject(exceeded(5), 1));
    assert_breaks(WorkLaw::JustifiedRejections, reject(Rejection::NotHolder, 1));
    let derive = |seconds| grant_command(Some(ROOT), claim("T-2", seconds, 1));
    let outlives = |seconds| Rejection::OutlivesParent { remaining: TickDuration::from_secs(seconds) };
    assert_eq!(WorkHistory::new().reject(&derive(51), outlives(50), 10), Ok(()));
    let unjustified = WorkHistory::new().reject(&derive(50), outlives(50), 10);
    assert_breaks(WorkLaw::JustifiedRejections, unjustified);
    assert_breaks(WorkLaw::JustifiedRejections, WorkHistory::new().reject(&derive(52), outlives(51), 10));
}

#[test]
fn a_spend_after_its_rejection_is_a_violation() {
    let mut history = WorkHistory::new();
    let too_much = spend(7);
    history.request(&spend_command(&too_much));
    let rejection = Rejection::BudgetExceeded { remaining: tokens(6) };
    assert_eq!(history.reject(&spend_command(&too_much), rejection, 1), Ok(()));
    assert_breaks(WorkLaw::RejectedChangesNothing, history.spend(&spend(6), 2));
}
