//! Leases with authority: what a child may have, what is spent, and who ends with whom.

use tenure_core::authority::{LeaseScope, Purpose};
use tenure_core::kernel::{
    Answer, Cause, ChangeMode, Claim, ClaimWork, Command, DESCENDANTS, DESCENT, End, Event, Fence, Mode,
    Nonce, Refusal, Span, Spend,
};

use crate::kernel_work_world::{
    World, claim, claim_of, derive, holder, key, principal, release, spend, spend_of, tokens,
};

fn refusal(answer: Answer) -> Refusal {
    match answer {
        Answer::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    }
}

// S2-107, S2-108, S2-111
#[test]
fn spend_outside_scope_or_budget_is_rejected() {
    let mut world = World::new();
    let scope = LeaseScope::limited(["a"], ["search"], ["src"]).unwrap();
    let lease = world.granted(&claim(claim_of("a", 60, 10)).with_scope(scope));
    let purpose = |tool: &str, namespace: &str| Purpose {
        work_id: None,
        tool: Some(tool.into()),
        namespace: Some(namespace.into()),
    };
    let for_purpose = |amount, purpose| spend(Spend { purpose, ..spend_of(lease, amount) });
    let answer = world.take(&for_purpose(4, purpose("search", "src/web")));
    assert_eq!(answer, Answer::Spent { lease, left: tokens(6) });
    for (tool, namespace) in [("shell", "src"), ("search", "etc"), ("search", "src/../etc")] {
        let answer = world.take(&for_purpose(1, purpose(tool, namespace)));
        assert_eq!(refusal(answer), Refusal::OutOfScope { what: "for" });
    }
    assert_eq!(refusal(world.take(&spend(spend_of(lease, 7)))), Refusal::BudgetExceeded { left: tokens(6) });
    assert!(world.last.is_empty() && world.left(lease) == 6, "nothing was spent");
    // Nothing at all asks whether it would be allowed.
    assert_eq!(
        world.take(&for_purpose(0, purpose("search", "src"))),
        Answer::Spent { lease, left: tokens(6) }
    );
    assert!(world.last.is_empty());
    assert_eq!(
        refusal(world.take(&for_purpose(0, purpose("shell", "src")))),
        Refusal::OutOfScope { what: "for" }
    );
    assert_eq!(
        refusal(world.after(60, &spend(spend_of(lease, 1)))),
        Refusal::Over { lease, end: End::Expired }
    );
}

// S2-109, O-16
#[test]
fn derive_beyond_the_parent_is_rejected() {
    let mut world = World::new();
    let scope = LeaseScope::limited(["a", "b"], ["search"], ["src"]).unwrap();
    let parent = world.granted(&claim(claim_of("a", 60, 10)).with_scope(scope));
    let part = LeaseScope::limited(["b"], [], ["src/web"]).unwrap();
    let child = |work: &str, seconds, budget| {
        derive(parent, claim_of(work, seconds, budget)).with_scope(part.clone())
    };
    world.now += 10_000_000;
    let cases = [
        (child("c", 20, 1), Refusal::OutOfScope { what: "work_id" }),
        (derive(parent, claim_of("b", 20, 1)), Refusal::OutOfScope { what: "scope" }),
        (child("b", 51, 1), Refusal::OutlivesParent { remaining: Span::from_secs(50) }),
        (child("b", 50, 11), Refusal::BudgetExceeded { left: tokens(10) }),
    ];
    for (command, expected) in cases {
        assert_eq!(refusal(world.take(&command)), expected);
        assert!(world.last.is_empty() && world.left(parent) == 10, "nothing was taken");
    }
    // On the work of the parent itself sits the parent.
    assert!(matches!(
        refusal(world.take(&child("a", 20, 1))),
        Refusal::OutOfScope { .. } | Refusal::Held { .. }
    ));

    let granted = world.granted(&child("b", 50, 4));
    assert!(matches!(&world.last[..], [Event::Issued(issued)] if issued.fence == granted));
    assert_eq!((world.left(parent), world.left(granted)), (6, 4));
    // What the child has not used up stays gone.
    world.take(&release(granted));
    assert_eq!((world.left(parent), world.living()), (6, vec![parent.0]));
    let given = world.state.work(parent).unwrap().given;
    assert_eq!(given, tokens(4));
}

// S2-109
#[test]
fn renew_beyond_the_parent_expiry_is_rejected() {
    let mut world = World::new();
    let parent = world.granted(&claim(claim_of("a", 60, 10)));
    let child = world.granted(&derive(parent, claim_of("b", 30, 1)));
    let renew =
        |lease, seconds| Command::Renew { lease, claim: Claim::Token, ttl: Some(Span::from_secs(seconds)) };
    let refused = refusal(world.after(10, &renew(child, 51)));
    assert_eq!(refused, Refusal::OutlivesParent { remaining: Span::from_secs(50) });
    assert!(matches!(world.take(&renew(child, 50)), Answer::Renewed { .. }));
    assert!(matches!(world.take(&renew(parent, 100)), Answer::Renewed { .. }));
    assert!(matches!(world.take(&renew(child, 100)), Answer::Renewed { .. }));
}

/// A root with two children, one of which has one.
fn family() -> (World, [Fence; 4]) {
    let mut world = World::new();
    let root = world.granted(&claim(claim_of("root", 60, 100)));
    let first = world.granted(&derive(root, claim_of("first", 30, 10)));
    let second = world.granted(&derive(root, claim_of("second", 60, 10)));
    let below = world.granted(&derive(first, claim_of("below", 30, 5)));
    (world, [root, first, second, below])
}

// S2-109
#[test]
fn end_of_a_lease_cascades_to_its_descendants() {
    let revoke =
        |lease| Command::Revoke { lease, cause: Cause::Revoked, by: principal(), detail: "enough".into() };
    let reclaim = Command::Reclaim { holder: holder("actor-root"), by: principal(), detail: "dead".into() };
    let (_, [root, ..]) = family();
    for command in [release(root), revoke(root), reclaim] {
        let (mut world, [_, first, second, below]) = family();
        world.take(&command);
        assert_eq!(world.living(), Vec::<u64>::new(), "{command:?}");
        let ends = world.last.iter().map(|event| match event {
            Event::Released { lease, .. } | Event::Revoked { lease, .. } => *lease,
            other => panic!("{other:?}"),
        });
        let ends: Vec<Fence> = ends.collect();
        // Children before their parents.
        assert_eq!(ends, [below, second, first, root]);
        let ended = world.state.ended(below).unwrap();
        assert_eq!(ended.end, End::Revoked(Cause::Revoked));
    }
    let (mut world, [root, first, second, below]) = family();
    world.take(&release(first));
    assert_eq!(world.living(), [root.0, second.0]);
    assert!(world.state.ended(below).is_some());
}

// S2-109
#[test]
fn cascade_expires_expired_descendants_and_revokes_the_rest() {
    let (mut world, [root, first, second, below]) = family();
    // The first and who is below it are over, and nobody has said so.
    world.after(30, &release(root));
    let end = |lease| world.state.ended(lease).unwrap().end;
    assert_eq!([first, below].map(end), [End::Expired; 2]);
    assert_eq!(end(second), End::Revoked(Cause::Revoked));
    let (mut world, _) = family();
    world.after(60, &Command::Expire { most: 100 });
    assert_eq!(world.living(), Vec::<u64>::new());
    assert!(world.last.iter().all(|event| matches!(event, Event::Expired { .. })));
}

// S2-111
#[test]
fn transfer_or_downgrade_of_a_lease_with_authority_is_rejected() {
    let (mut world, [root, ..]) = family();
    let (claim, nonce) = (Claim::Token, Nonce([2; 16]));
    let to = holder("somebody");
    let transfer = Command::Transfer { lease: root, claim: claim.clone(), to, principal: principal(), nonce };
    let change = ChangeMode { lease: root, claim, mode: Mode::Shared, nonce };
    for command in [transfer, Command::Downgrade(change)] {
        assert_eq!(refusal(world.take(&command)), Refusal::AuthorityBound);
    }
    assert_eq!(world.living().len(), 4);
}

// S2-111
#[test]
fn spend_or_derive_without_authority_is_rejected() {
    let mut world = World::new();
    let resource = tenure_core::kernel::Resource::parse("work:a").unwrap();
    let want = tenure_core::kernel::Want::new(resource, Mode::Exclusive, Span::from_secs(30), Nonce([1; 16]));
    let acquire = tenure_core::kernel::Acquire {
        principal: principal(),
        holder: holder("plain"),
        wants: vec![want],
        contention: tenure_core::kernel::Contention::Refuse,
        key: None,
    };
    let lease = world.granted(&Command::Acquire(acquire));
    assert_eq!(refusal(world.take(&spend(spend_of(lease, 0)))), Refusal::NoAuthority);
    assert_eq!(refusal(world.take(&derive(lease, claim_of("b", 10, 0)))), Refusal::NoAuthority);
    // Whoever works on it keeps others away all the same.
    assert!(matches!(refusal(world.take(&claim(claim_of("a", 10, 0)))), Refusal::Held { .. }));
}

// S2-109
#[test]
fn derivation_depth_and_descendants_are_limited() {
    let mut world = World::new();
    let mut lease = world.granted(&claim(claim_of("0", 60, 100)));
    for depth in 1..=DESCENT {
        lease = world.granted(&derive(lease, claim_of(&depth.to_string(), 60, 1)));
    }
    let full = Refusal::TreeFull { most: DESCENDANTS, deep: DESCENT };
    assert_eq!(refusal(world.take(&derive(lease, claim_of("deeper", 60, 1)))), full);
    world.take(&release(Fence(1)));
    assert_eq!((world.living(), world.last.len()), (Vec::new(), DESCENT + 1));

    let mut state = world.state;
    let mut take = |command: &Command| {
        let decision = tenure_core::kernel::decide(&state, command, tenure_core::kernel::Tick(0));
        decision.events.iter().for_each(|event| state.apply(event).expect("it follows"));
        decision
    };
    let root = match take(&claim(claim_of("root", 60, 1))).answer {
        Answer::Granted { leases } => leases[0],
        other => panic!("{other:?}"),
    };
    for number in 0..DESCENDANTS {
        let answer = take(&derive(root, claim_of(&number.to_string(), 60, 0))).answer;
        assert!(matches!(answer, Answer::Granted { .. }), "{answer:?}");
    }
    assert_eq!(refusal(take(&derive(root, claim_of("more", 60, 0))).answer), full);
    assert_eq!(take(&release(root)).events.len(), DESCENDANTS + 1);
}

// S2-108
#[test]
fn repeated_spend_with_a_key_spends_once() {
    let mut world = World::new();
    let lease = world.granted(&claim(claim_of("a", 600, 10)));
    let keyed = |amount, body| spend(Spend { key: key(1, body), ..spend_of(lease, amount) });
    let first = world.take(&keyed(3, 1));
    assert_eq!(first, Answer::Spent { lease, left: tokens(7) });
    world.take(&spend(spend_of(lease, 1)));
    assert_eq!(world.take(&keyed(3, 1)), first, "the first answer");
    assert!(world.last.is_empty());
    world.save_and_restore();
    assert_eq!(world.take(&keyed(3, 1)), first);
    assert_eq!(refusal(world.take(&keyed(4, 2))), Refusal::KeyReused);
    assert_eq!(
        refusal(world.take(&claim(ClaimWork { key: key(1, 1), ..claim_of("b", 10, 1) }))),
        Refusal::KeyReused
    );
    assert_eq!(world.left(lease), 6);
    // Also after the lease is over: what was spent was spent.
    world.take(&release(lease));
    assert_eq!(world.take(&keyed(3, 1)), first);
    world.save_and_restore();
    assert!(matches!(refusal(world.after(60, &keyed(3, 1))), Refusal::Over { .. }));
    // A refusal is not remembered.
    let lease = world.granted(&claim(claim_of("a", 600, 10)));
    let keyed = |amount| spend(Spend { key: key(2, 1), ..spend_of(lease, amount) });
    assert!(matches!(refusal(world.take(&keyed(11))), Refusal::BudgetExceeded { .. }));
    assert!(matches!(world.take(&keyed(10)), Answer::Spent { .. }));
}

// S2-109
#[test]
fn repeated_derive_with_a_key_derives_once() {
    let mut world = World::new();
    let lease = world.granted(&claim(claim_of("a", 600, 10)));
    let child = derive(lease, ClaimWork { key: key(1, 1), ..claim_of("b", 60, 8) });
    let granted = world.granted(&child);
    assert_eq!(world.granted(&child), granted, "there would not be enough for a second");
    assert_eq!(world.left(lease), 2);
}

#[test]
fn budget_of_an_ended_lease_is_retained() {
    let mut world = World::new();
    let lease = world.granted(&claim(claim_of("a", 60, 10)));
    world.take(&spend(spend_of(lease, 3)));
    world.take(&release(lease));
    world.save_and_restore();
    let ended = world.replayed.ended(lease).unwrap();
    assert_eq!(ended.work.as_ref().map(|work| (work.left, work.spent)), Some((tokens(7), tokens(3))));
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
