//! Leases with authority: what a child may have, what is spent, and who ends with whom.

use tenure_core::authority::{LeaseScope, Purpose};
use tenure_core::kernel::{
    ChangeMode, ClaimWork, Command, CommandOutcome, Event, Fence, LeaseCredential, LeaseEnd, LeaseMode,
    MAX_DERIVATION_DEPTH, MAX_DESCENDANTS, Nonce, Rejection, RevocationCause, SpendBudget, TickDuration,
};

use crate::work::fixture::{
    WorkFixture, claim, claim_request, derive, holder, key, principal, release, spend, spend_request, tokens,
};

fn rejection(answer: CommandOutcome) -> Rejection {
    match answer {
        CommandOutcome::Rejected(rejection) => rejection,
        other => panic!("{other:?}"),
    }
}

// S2-107, S2-108, S2-111
#[test]
fn spend_outside_scope_or_budget_is_rejected() {
    let mut world = WorkFixture::new();
    let scope = LeaseScope::limited(["a"], ["search"], ["src"]).unwrap();
    let lease = world.expect_granted(&claim(claim_request("a", 60, 10)).with_scope(scope));
    let purpose = |tool: &str, namespace: &str| Purpose {
        work_id: None,
        tool: Some(tool.into()),
        namespace: Some(namespace.into()),
    };
    let for_purpose = |amount, purpose| spend(SpendBudget { purpose, ..spend_request(lease, amount) });
    let answer = world.run(&for_purpose(4, purpose("search", "src/web")));
    assert_eq!(answer, CommandOutcome::Spent { lease, remaining: tokens(6) });
    for (tool, namespace) in [("shell", "src"), ("search", "etc"), ("search", "src/../etc")] {
        let answer = world.run(&for_purpose(1, purpose(tool, namespace)));
        assert_eq!(rejection(answer), Rejection::OutOfScope { what: "for" });
    }
    assert_eq!(
        rejection(world.run(&spend(spend_request(lease, 7)))),
        Rejection::BudgetExceeded { remaining: tokens(6) }
    );
    assert!(world.last.is_empty() && world.remaining_tokens(lease) == 6, "nothing was spent");
    // Nothing at all asks whether it would be allowed.
    assert_eq!(
        world.run(&for_purpose(0, purpose("search", "src"))),
        CommandOutcome::Spent { lease, remaining: tokens(6) }
    );
    assert!(world.last.is_empty());
    assert_eq!(
        rejection(world.run(&for_purpose(0, purpose("shell", "src")))),
        Rejection::OutOfScope { what: "for" }
    );
    assert_eq!(
        rejection(world.run_after(60, &spend(spend_request(lease, 1)))),
        Rejection::Ended { lease, end: LeaseEnd::Expired }
    );
}

// S2-109, O-16
#[test]
fn derive_beyond_the_parent_is_rejected() {
    let mut world = WorkFixture::new();
    let scope = LeaseScope::limited(["a", "b"], ["search"], ["src"]).unwrap();
    let parent = world.expect_granted(&claim(claim_request("a", 60, 10)).with_scope(scope));
    let part = LeaseScope::limited(["b"], [], ["src/web"]).unwrap();
    let child = |work: &str, seconds, budget| {
        derive(parent, claim_request(work, seconds, budget)).with_scope(part.clone())
    };
    world.now += 10_000_000;
    let cases = [
        (child("c", 20, 1), Rejection::OutOfScope { what: "work_id" }),
        (derive(parent, claim_request("b", 20, 1)), Rejection::OutOfScope { what: "scope" }),
        (child("b", 51, 1), Rejection::OutlivesParent { remaining: TickDuration::from_secs(50) }),
        (child("b", 50, 11), Rejection::BudgetExceeded { remaining: tokens(10) }),
    ];
    for (command, expected) in cases {
        assert_eq!(rejection(world.run(&command)), expected);
        assert!(world.last.is_empty() && world.remaining_tokens(parent) == 10, "nothing was taken");
    }
    // On the work of the parent itself sits the parent.
    assert!(matches!(
        rejection(world.run(&child("a", 20, 1))),
        Rejection::OutOfScope { .. } | Rejection::Held { .. }
    ));

    let granted = world.expect_granted(&child("b", 50, 4));
    assert!(matches!(&world.last[..], [Event::Issued(issued)] if issued.fence == granted));
    assert_eq!((world.remaining_tokens(parent), world.remaining_tokens(granted)), (6, 4));
    // What the child has not used up stays gone.
    world.run(&release(granted));
    assert_eq!((world.remaining_tokens(parent), world.active_leases()), (6, vec![parent.0]));
    let delegated = world.state.work_lease(parent).unwrap().delegated;
    assert_eq!(delegated, tokens(4));
}

// S2-109
#[test]
fn renew_beyond_the_parent_expiry_is_rejected() {
    let mut world = WorkFixture::new();
    let parent = world.expect_granted(&claim(claim_request("a", 60, 10)));
    let child = world.expect_granted(&derive(parent, claim_request("b", 30, 1)));
    let renew = |lease, seconds| Command::Renew {
        lease,
        credential: LeaseCredential::Token,
        ttl: Some(TickDuration::from_secs(seconds)),
    };
    let refused = rejection(world.run_after(10, &renew(child, 51)));
    assert_eq!(refused, Rejection::OutlivesParent { remaining: TickDuration::from_secs(50) });
    assert!(matches!(world.run(&renew(child, 50)), CommandOutcome::Renewed { .. }));
    assert!(matches!(world.run(&renew(parent, 100)), CommandOutcome::Renewed { .. }));
    assert!(matches!(world.run(&renew(child, 100)), CommandOutcome::Renewed { .. }));
}

/// A root with two children, one of which has one.
fn derived_leases() -> (WorkFixture, [Fence; 4]) {
    let mut world = WorkFixture::new();
    let root = world.expect_granted(&claim(claim_request("root", 60, 100)));
    let first = world.expect_granted(&derive(root, claim_request("first", 30, 10)));
    let second = world.expect_granted(&derive(root, claim_request("second", 60, 10)));
    let below = world.expect_granted(&derive(first, claim_request("below", 30, 5)));
    (world, [root, first, second, below])
}

// S2-109
#[test]
fn end_of_a_lease_cascades_to_its_descendants() {
    let revoke = |lease| Command::Revoke {
        lease,
        cause: RevocationCause::Revoked,
        by: principal(),
        detail: "enough".into(),
    };
    let reclaim = Command::Reclaim { holder: holder("actor-root"), by: principal(), detail: "dead".into() };
    let (_, [root, ..]) = derived_leases();
    for command in [release(root), revoke(root), reclaim] {
        let (mut world, [_, first, second, below]) = derived_leases();
        world.run(&command);
        assert_eq!(world.active_leases(), Vec::<u64>::new(), "{command:?}");
        let ends = world.last.iter().map(|event| match event {
            Event::Released { lease, .. } | Event::Revoked { lease, .. } => *lease,
            other => panic!("{other:?}"),
        });
        let ends: Vec<Fence> = ends.collect();
        // Children before their parents.
        assert_eq!(ends, [below, second, first, root]);
        let ended = world.state.ended_lease(below).unwrap();
        assert_eq!(ended.end, LeaseEnd::Revoked(RevocationCause::Revoked));
    }
    let (mut world, [root, first, second, below]) = derived_leases();
    world.run(&release(first));
    assert_eq!(world.active_leases(), [root.0, second.0]);
    assert!(world.state.ended_lease(below).is_some());
}

// S2-109
#[test]
fn cascade_expires_expired_descendants_and_revokes_the_rest() {
    let (mut world, [root, first, second, below]) = derived_leases();
    // The first and who is below it are over, and nobody has said so.
    world.run_after(30, &release(root));
    let end = |lease| world.state.ended_lease(lease).unwrap().end;
    assert_eq!([first, below].map(end), [LeaseEnd::Expired; 2]);
    assert_eq!(end(second), LeaseEnd::Revoked(RevocationCause::Revoked));
    let (mut world, _) = derived_leases();
    world.run_after(60, &Command::Expire { max_ended: 100 });
    assert_eq!(world.active_leases(), Vec::<u64>::new());
    assert!(world.last.iter().all(|event| matches!(event, Event::Expired { .. })));
}

// S2-111
#[test]
fn transfer_or_downgrade_of_a_lease_with_authority_is_rejected() {
    let (mut world, [root, ..]) = derived_leases();
    let (claim, nonce) = (LeaseCredential::Token, Nonce([2; 16]));
    let to = holder("somebody");
    let transfer = Command::Transfer { lease: root, claim: claim.clone(), to, principal: principal(), nonce };
    let change = ChangeMode { lease: root, credential: claim, mode: LeaseMode::Shared, nonce };
    for command in [transfer, Command::Downgrade(change)] {
        assert_eq!(rejection(world.run(&command)), Rejection::AuthorityBound);
    }
    assert_eq!(world.active_leases().len(), 4);
}

// S2-111
#[test]
fn spend_or_derive_without_authority_is_rejected() {
    let mut world = WorkFixture::new();
    let resource = tenure_core::kernel::Resource::parse("work:a").unwrap();
    let request = tenure_core::kernel::LeaseRequest::new(
        resource,
        LeaseMode::Exclusive,
        TickDuration::from_secs(30),
        Nonce([1; 16]),
    );
    let acquire = tenure_core::kernel::Acquire {
        principal: principal(),
        holder: holder("plain"),
        requests: vec![request],
        contention_policy: tenure_core::kernel::ContentionPolicy::Deny,
        key: None,
    };
    let lease = world.expect_granted(&Command::Acquire(acquire));
    assert_eq!(rejection(world.run(&spend(spend_request(lease, 0)))), Rejection::NoAuthority);
    assert_eq!(rejection(world.run(&derive(lease, claim_request("b", 10, 0)))), Rejection::NoAuthority);
    // Whoever works on it keeps others away all the same.
    assert!(matches!(rejection(world.run(&claim(claim_request("a", 10, 0)))), Rejection::Held { .. }));
}

// S2-109
#[test]
fn derivation_depth_and_descendants_are_limited() {
    let mut world = WorkFixture::new();
    let mut lease = world.expect_granted(&claim(claim_request("0", 60, 100)));
    for depth in 1..=MAX_DERIVATION_DEPTH {
        lease = world.expect_granted(&derive(lease, claim_request(&depth.to_string(), 60, 1)));
    }
    let full =
        Rejection::TooManyDerived { max_descendants: MAX_DESCENDANTS, max_depth: MAX_DERIVATION_DEPTH };
    assert_eq!(rejection(world.run(&derive(lease, claim_request("deeper", 60, 1)))), full);
    world.run(&release(Fence(1)));
    assert_eq!((world.active_leases(), world.last.len()), (Vec::new(), MAX_DERIVATION_DEPTH + 1));

    let mut state = world.state;
    let mut take = |command: &Command| {
        let decision = tenure_core::kernel::decide(&state, command, tenure_core::kernel::Tick(0));
        decision.events.iter().for_each(|event| state.apply(event).expect("it follows"));
        decision
    };
    let root = match take(&claim(claim_request("root", 60, 1))).outcome {
        CommandOutcome::Granted { leases } => leases[0],
        other => panic!("{other:?}"),
    };
    for number in 0..MAX_DESCENDANTS {
        let answer = take(&derive(root, claim_request(&number.to_string(), 60, 0))).outcome;
        assert!(matches!(answer, CommandOutcome::Granted { .. }), "{answer:?}");
    }
    assert_eq!(rejection(take(&derive(root, claim_request("more", 60, 0))).outcome), full);
    assert_eq!(take(&release(root)).events.len(), MAX_DESCENDANTS + 1);
}

// S2-108
#[test]
fn repeated_spend_with_a_key_spends_once() {
    let mut world = WorkFixture::new();
    let lease = world.expect_granted(&claim(claim_request("a", 600, 10)));
    let keyed = |amount, body| spend(SpendBudget { key: key(1, body), ..spend_request(lease, amount) });
    let first = world.run(&keyed(3, 1));
    assert_eq!(first, CommandOutcome::Spent { lease, remaining: tokens(7) });
    world.run(&spend(spend_request(lease, 1)));
    assert_eq!(world.run(&keyed(3, 1)), first, "the first answer");
    assert!(world.last.is_empty());
    world.save_and_restore();
    assert_eq!(world.run(&keyed(3, 1)), first);
    assert_eq!(rejection(world.run(&keyed(4, 2))), Rejection::KeyReused);
    assert_eq!(
        rejection(world.run(&claim(ClaimWork { key: key(1, 1), ..claim_request("b", 10, 1) }))),
        Rejection::KeyReused
    );
    assert_eq!(world.remaining_tokens(lease), 6);
    // Also after the lease is over: what was spent was spent.
    world.run(&release(lease));
    assert_eq!(world.run(&keyed(3, 1)), first);
    world.save_and_restore();
    assert!(matches!(rejection(world.run_after(60, &keyed(3, 1))), Rejection::Ended { .. }));
    // A refusal is not remembered.
    let lease = world.expect_granted(&claim(claim_request("a", 600, 10)));
    let keyed = |amount| spend(SpendBudget { key: key(2, 1), ..spend_request(lease, amount) });
    assert!(matches!(rejection(world.run(&keyed(11))), Rejection::BudgetExceeded { .. }));
    assert!(matches!(world.run(&keyed(10)), CommandOutcome::Spent { .. }));
}

// S2-109
#[test]
fn repeated_derive_with_a_key_derives_once() {
    let mut world = WorkFixture::new();
    let lease = world.expect_granted(&claim(claim_request("a", 600, 10)));
    let child = derive(lease, ClaimWork { key: key(1, 1), ..claim_request("b", 60, 8) });
    let granted = world.expect_granted(&child);
    assert_eq!(world.expect_granted(&child), granted, "there would not be enough for a second");
    assert_eq!(world.remaining_tokens(lease), 2);
}

#[test]
fn budget_of_an_ended_lease_is_retained() {
    let mut world = WorkFixture::new();
    let lease = world.expect_granted(&claim(claim_request("a", 60, 10)));
    world.run(&spend(spend_request(lease, 3)));
    world.run(&release(lease));
    world.save_and_restore();
    let ended = world.replayed.ended_lease(lease).unwrap();
    assert_eq!(
        ended.work_lease.as_ref().map(|work| (work.remaining, work.spent)),
        Some((tokens(7), tokens(3)))
    );
}

/// The same request with another scope.
trait WithScope {
    fn with_scope(self, scope: LeaseScope) -> Command;
}

impl WithScope for Command {
    fn with_scope(self, scope: LeaseScope) -> Command {
        use tenure_core::kernel::WorkCommand;
        match self {
            Command::Work(command) => match *command {
                WorkCommand::Claim(own) => claim(ClaimWork { scope, ..own }),
                WorkCommand::Derive(own) => derive(own.parent, ClaimWork { scope, ..own.child }),
                other => Command::Work(Box::new(other)),
            },
            other => other,
        }
    }
}
