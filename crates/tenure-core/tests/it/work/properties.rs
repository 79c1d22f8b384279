//! Leases with authority in random worlds, compared with a second model that keeps plain sums.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tenure_core::authority::{Budget, LeaseScope, Purpose};
use tenure_core::kernel::{
    ClaimWork, Command, CommandOutcome, Event, Fence, LeaseCredential, Rejection, RevocationCause,
    SpendBudget, TickDuration, WorkEvent,
};

use crate::kernel::strategies::config;
use crate::work::fixture::{
    WorkFixture, claim, claim_request, derive, key, principal, release, spend, spend_request,
};
use crate::work::strategies::{any_budget, any_purpose, any_scope, any_work_id};

#[derive(Debug, Clone)]
enum WorkStep {
    Claim { work: &'static str, seconds: u64, scope: LeaseScope, budget: Budget },
    Derive { of: u64, work: &'static str, seconds: u64, scope: LeaseScope, budget: Budget },
    Spend { of: u64, amount: Budget, purpose: Purpose, key: Option<u8> },
    Renew { of: u64, seconds: u64 },
    Release { of: u64 },
    Revoke { of: u64 },
    Expire,
    Save,
}

fn step() -> impl Strategy<Value = (u64, WorkStep)> {
    let part = || (any_work_id(), 1..40_u64, any_scope(), any_budget());
    let step = prop_oneof![
        4 => part().prop_map(|(work, seconds, scope, budget)| WorkStep::Claim { work, seconds, scope, budget }),
        8 => (0..6_u64, part()).prop_map(|(of, (work, seconds, scope, budget))| {
            WorkStep::Derive { of, work, seconds, scope, budget }
        }),
        8 => (0..6_u64, any_budget(), any_purpose(), prop::option::of(0..3_u8))
            .prop_map(|(of, amount, purpose, key)| WorkStep::Spend { of, amount, purpose, key }),
        3 => (0..6_u64, 1..40_u64).prop_map(|(of, seconds)| WorkStep::Renew { of, seconds }),
        2 => (0..6_u64).prop_map(|of| WorkStep::Release { of }),
        1 => (0..6_u64).prop_map(|of| WorkStep::Revoke { of }),
        1 => Just(WorkStep::Expire),
        2 => Just(WorkStep::Save),
    ];
    (prop_oneof![5 => Just(0_u64), 3 => 1..5_u64, 1 => 5..40_u64], step)
}

/// What each lease was given, by whom, and what it used up, said in the plainest way.
#[derive(Default)]
struct WorkModel {
    leases: BTreeMap<Fence, WorkModelEntry>,
}

struct WorkModelEntry {
    parent: Option<Fence>,
    end: u64,
    had: Budget,
    used: Budget,
    ended: bool,
}

impl WorkModel {
    fn record(&mut self, event: &Event) {
        match event {
            Event::Issued(issued) => {
                let authority = issued.authority.as_ref().expect("all have authority here");
                if let Some(parent) = authority.parent {
                    let parent = self.leases.get_mut(&parent).expect("it was issued");
                    let is_within =
                        issued.terms.issued_at.0 < parent.end && issued.terms.expires_at.0 <= parent.end;
                    assert!(!parent.ended && is_within);
                    parent.used = parent.used.plus(authority.budget).expect("it can be counted");
                }
                let (parent, had) = (authority.parent, authority.budget);
                let entry = WorkModelEntry {
                    parent,
                    end: issued.terms.expires_at.0,
                    had,
                    used: Budget::ZERO,
                    ended: false,
                };
                assert!(self.leases.insert(issued.fence, entry).is_none());
            }
            Event::Work(event) => {
                let WorkEvent::Spent { lease, at, amount, .. } = &**event;
                let entry = self.leases.get_mut(lease).expect("it was issued");
                assert!(!entry.ended && at.0 < entry.end);
                entry.used = entry.used.plus(*amount).expect("it can be counted");
            }
            Event::Renewed { lease, expires_at, .. } => {
                let parent = self.leases[lease].parent.map(|parent| self.leases[&parent].end);
                assert!(parent.is_none_or(|end| expires_at.0 <= end), "a child outlives its parent");
                self.leases.get_mut(lease).expect("it was issued").end = expires_at.0;
            }
            Event::Released { lease, .. } | Event::Expired { lease, .. } | Event::Revoked { lease, .. } => {
                let below = self.leases.values().filter(|entry| entry.parent == Some(*lease));
                assert!(below.into_iter().all(|entry| entry.ended), "{lease:?} leaves somebody behind");
                self.leases.get_mut(lease).expect("it was issued").ended = true;
            }
            other => panic!("{other:?}"),
        }
    }

    fn check(&self, world: &WorkFixture) {
        for (fence, entry) in &self.leases {
            assert!(entry.had.covers(entry.used), "{fence:?} used more than it had");
            let live = world.state.work_lease(*fence);
            assert_eq!(live.is_some(), !entry.ended);
            let work = live
                .or_else(|| world.state.ended_lease(*fence).and_then(|ended| ended.work_lease.as_deref()));
            if let Some(work) = work {
                assert_eq!(work.remaining, entry.had.minus(entry.used).expect("never below nothing"));
            }
        }
    }
}

fn play(steps: &[(u64, WorkStep)]) {
    let (mut world, mut model) = (WorkFixture::new(), WorkModel::default());
    let mut spent_under: BTreeMap<u8, (Fence, Budget, CommandOutcome, u64)> = BTreeMap::new();
    for (pause, step) in steps {
        world.now += pause * 1_000_000;
        let lease = |back: u64| Fence(world.state.last_fence().0.saturating_sub(back));
        let part = |work: &str, seconds, scope: &LeaseScope, budget| ClaimWork {
            scope: scope.clone(),
            budget,
            ..claim_request(work, seconds, 0)
        };
        let command = match step {
            WorkStep::Claim { work, seconds, scope, budget } => claim(part(work, *seconds, scope, *budget)),
            WorkStep::Derive { of, work, seconds, scope, budget } => {
                derive(lease(*of), part(work, *seconds, scope, *budget))
            }
            WorkStep::Spend { of, amount, purpose, key: number } => spend(SpendBudget {
                amount: *amount,
                purpose: purpose.clone(),
                key: number.and_then(|number| key(number, number)),
                ..spend_request(lease(*of), 0)
            }),
            WorkStep::Renew { of, seconds } => {
                let ttl = Some(TickDuration::from_secs(*seconds));
                Command::Renew { lease: lease(*of), credential: LeaseCredential::Token, ttl }
            }
            WorkStep::Release { of } => release(lease(*of)),
            WorkStep::Revoke { of } => Command::Revoke {
                lease: lease(*of),
                cause: RevocationCause::Revoked,
                by: principal(),
                detail: "".into(),
            },
            WorkStep::Expire => Command::Expire { max_ended: 100 },
            WorkStep::Save => {
                world.save_and_restore();
                continue;
            }
        };
        let (of, before) = match step {
            WorkStep::Spend { of, .. } => (Some(lease(*of)), world.state.work_lease(lease(*of)).cloned()),
            _ => (None, None),
        };
        let answer = world.run(&command);
        world.last.iter().for_each(|event| model.record(event));
        model.check(&world);
        if let (WorkStep::Spend { amount, purpose, key, .. }, Some(of)) = (step, of) {
            let is_new = world.last.iter().any(|event| matches!(event, Event::Work(_)));
            match &answer {
                CommandOutcome::Spent { remaining, .. }
                    if is_new || *amount == Budget::ZERO && key.is_none() =>
                {
                    let before = before.expect("it lived");
                    assert!(before.authority.scope.allows(purpose), "out of scope");
                    assert_eq!(before.remaining.minus(*amount), Ok(*remaining), "exactly what was spent");
                }
                CommandOutcome::Rejected(Rejection::BudgetExceeded { remaining }) => {
                    assert!(!remaining.covers(*amount))
                }
                _ => {}
            }
            if let Some(key) = key.filter(|_| is_new) {
                spent_under.insert(key, (of, *amount, answer.clone(), world.now));
            } else if let Some((lease, _, first, at)) = key.and_then(|key| spent_under.get(&key))
                && world.now < at + 60_000_000
                && *lease == of
            {
                assert_eq!(answer, *first, "the same answer, and nothing more is spent");
            }
        }
    }
}

proptest! {
    #![proptest_config(config(2_000))]

    // S2-108, S2-109, S2-111, O-16
    #[test]
    fn budgets_add_up_and_no_lease_outlives_its_parent(steps in prop::collection::vec(step(), 1..40)) {
        play(&steps);
    }
}
