//! Events of leases with authority as nobody decided them.

use std::sync::Arc;

use proptest::prelude::*;
use tenure_core::authority::{Authority, Budget, LeaseScope, Purpose};
use tenure_core::kernel::{
    Event, Fence, Holder, IdempotencyKey, IssuedLease, Labels, LeaseMode, LeaseTerms, Nonce, Principal,
    RequestDigest, Resource, Tick, TickDuration, WorkEvent,
};

/// A lease that begins with authority, or something that is spent.
pub fn work_event(
    holder: &BoxedStrategy<Holder>,
    principal: &BoxedStrategy<Principal>,
    fence: impl Strategy<Value = Fence> + Clone + 'static,
    tick: impl Strategy<Value = Tick> + Clone + 'static,
) -> BoxedStrategy<Event> {
    let mode = prop_oneof![9 => Just(LeaseMode::Exclusive), 1 => Just(LeaseMode::Shared)];
    let lease = (fence.clone(), resource(), holder.clone(), principal.clone(), mode);
    let parent = prop::option::of(fence.clone()).prop_map(|fence| fence.filter(|fence| *fence != Fence(0)));
    let authority = (parent, any_scope(), any_budget()).prop_map(|(parent, scope, budget)| Authority {
        parent,
        scope,
        budget,
    });
    let when = (tick.clone(), tick.clone());
    let issued = (lease, when, authority, key()).prop_map(
        |((fence, resource, holder, principal, mode), (at, expires_at), authority, key)| {
            Event::Issued(IssuedLease {
                fence,
                resource,
                holder,
                principal,
                terms: LeaseTerms {
                    mode,
                    issued_at: at,
                    expires_at,
                    ttl: TickDuration(5),
                    renewals: 0,
                    nonce: Nonce([1; 16]),
                    labels: Labels::default(),
                },
                key,
                ticket: None,
                continues: None,
                authority: Some(Arc::new(authority)),
            })
        },
    );
    let spent =
        (fence, tick, any_budget(), any_purpose(), key()).prop_map(|(lease, at, amount, purpose, key)| {
            Event::Work(Box::new(WorkEvent::Spent { lease, at, amount, purpose, key }))
        });
    prop_oneof![2 => issued, 1 => spent].boxed()
}

pub fn any_work_id() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "b", "c", "a/b"])
}

fn resource() -> impl Strategy<Value = Resource> {
    let name =
        prop_oneof![9 => any_work_id().prop_map(|id| format!("work:{id}")), 1 => Just("deploy:a".to_owned())];
    name.prop_map(|name| Resource::parse(&name).expect("a resource"))
}

pub fn any_scope() -> impl Strategy<Value = LeaseScope> {
    let set = || prop::collection::btree_set(any_work_id(), 0..4);
    let limited = (set(), set(), set()).prop_map(|(work_ids, tools, namespaces)| {
        LeaseScope::limited(work_ids, tools, namespaces).expect("a scope")
    });
    prop_oneof![2 => Just(LeaseScope::Unlimited), 2 => limited]
}

pub fn any_budget() -> impl Strategy<Value = Budget> {
    let amount = prop_oneof![8 => 0..4_u64, 1 => Just(1_000), 1 => Just(Budget::MAX_AMOUNT)];
    prop::array::uniform4(amount).prop_map(Budget::from_amounts)
}

pub fn any_purpose() -> impl Strategy<Value = Purpose> {
    let name = || {
        let name = prop_oneof![4 => any_work_id(), 1 => Just("..")];
        prop::option::weighted(0.2, name.prop_map(Arc::from))
    };
    (name(), name(), name()).prop_map(|(work_id, tool, namespace)| Purpose { work_id, tool, namespace })
}

fn key() -> impl Strategy<Value = Option<IdempotencyKey>> {
    let digest = || (0..2_u8).prop_map(|byte| RequestDigest([byte; 16]));
    prop::option::weighted(0.3, (digest(), digest()).prop_map(|(key, body)| IdempotencyKey { key, body }))
}
