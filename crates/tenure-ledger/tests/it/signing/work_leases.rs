//! What a lease allows is signed as it was when the lease began: no bit of it can be another, and nothing that is spent
//! changes it.

use std::borrow::Cow;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proptest::prelude::*;
use tenure_core::authority::{Authority, Budget, LeaseScope};
use tenure_core::kernel::{Fence, IssuedLease, KernelState, LeaseMode};
use tenure_ledger::signing::{Claims, Leaf, Passport, PassportError, SignedTerms, TrustedKeys, sign_batch};

use crate::signing::fixtures::{LEDGER, issued_lease, key};

fn authority() -> Authority {
    Authority {
        parent: Some(Fence(16)),
        scope: LeaseScope::limited(["T-17"], ["search"], ["src/web"]).unwrap(),
        budget: Budget { tokens: 1_000, ..Budget::MAX },
    }
}

fn lease(authority: Option<Authority>) -> IssuedLease {
    let plain = issued_lease("work:T-17", "agent-1", LeaseMode::Exclusive, 17, 1_000_000, 31_000_000);
    IssuedLease { authority: authority.map(Arc::new), ..plain }
}

fn passport(lease: &IssuedLease) -> String {
    let signed = sign_batch(&key(), LEDGER, 2, &[Leaf::of_issued(LEDGER, lease)]).unwrap();
    Passport::issue(LEDGER, SignedTerms::from(lease), signed.lease_signature(0).unwrap()).to_text()
}

fn check(text: &str) -> Result<Claims, PassportError> {
    Passport::parse(text)?.verify(&TrustedKeys::from_iter([key().public_key()]))
}

// S2-110
#[test]
fn a_passport_proves_parent_scope_and_budget() {
    let proven = |authority| {
        let claims = check(&passport(&lease(authority))).unwrap();
        assert_eq!(claims.lease_id, "4f1d09aa-17");
        claims.terms.authority.map(Cow::into_owned)
    };
    let free = Authority { parent: None, scope: LeaseScope::Unlimited, budget: Budget::MAX };
    for authority in [None, Some(authority()), Some(free)] {
        assert_eq!(proven(authority.clone()), authority);
    }
    // As long as it can be.
    let names: Vec<String> = (0..31).map(|number| format!("{number:0256}")).collect();
    let scope = LeaseScope::limited(names.iter().map(String::as_str), [], []).unwrap();
    let large = Authority { scope, ..authority() };
    assert_eq!(proven(Some(large.clone())), Some(large));
}

// S2-110
#[test]
fn a_passport_with_any_flipped_bit_is_rejected() {
    let text = passport(&lease(Some(authority())));
    let bytes = URL_SAFE_NO_PAD.decode(&text).unwrap();
    for index in 0..bytes.len() {
        for bit in 0..8 {
            let mut altered = bytes.clone();
            altered[index] ^= 1 << bit;
            assert!(check(&URL_SAFE_NO_PAD.encode(altered)).is_err(), "byte {index}, bit {bit}");
        }
    }
}

// S2-110
#[test]
fn a_passport_stripped_of_its_authority_is_not_genuine() {
    let (with, without) = (lease(Some(authority())), lease(None));
    let signed = sign_batch(&key(), LEDGER, 2, &[Leaf::of_issued(LEDGER, &with)]).unwrap();
    let signature = signed.lease_signature(0).unwrap();
    let stripped = Passport::issue(LEDGER, SignedTerms::from(&without), signature).to_text();
    assert!(matches!(check(&stripped), Err(PassportError::NotGenuine { .. })));
    let bytes = SignedTerms::from(&with).to_bytes(LEDGER);
    assert!(bytes.starts_with(b"tenure.authority.v1"));
    assert!(SignedTerms::from(&without).to_bytes(LEDGER).starts_with(b"tenure.lease.v1"));
}

// S2-110
#[test]
fn spending_does_not_change_the_leaf() {
    let lease = lease(Some(Authority { parent: None, ..authority() }));
    let mut state = KernelState::new(LEDGER.tag(), Default::default(), Default::default());
    state.apply(&tenure_core::kernel::Event::Issued(lease.clone())).unwrap();
    let leaf = |state: &KernelState| {
        let view = state.lease(lease.fence).unwrap();
        Leaf::of_renewed(LEDGER, view, lease.terms.issued_at, lease.terms.expires_at)
    };
    let before = leaf(&state);
    assert_eq!(before, Leaf::of_issued(LEDGER, &lease));
    let spent = tenure_core::kernel::WorkEvent::Spent {
        lease: lease.fence,
        at: lease.terms.issued_at,
        amount: Budget { tokens: 7, ..Budget::ZERO },
        purpose: Default::default(),
        key: None,
    };
    state.apply(&tenure_core::kernel::Event::Work(Box::new(spent))).unwrap();
    assert_eq!(leaf(&state), before);
}

fn any_authority() -> impl Strategy<Value = Authority> {
    let name = || prop::collection::btree_set(prop::sample::select(vec!["a", "b", "ab", "a/b"]), 0..3);
    let limited = (name(), name(), name())
        .prop_map(|(work, tools, spaces)| LeaseScope::limited(work, tools, spaces).unwrap());
    let scope = prop_oneof![1 => Just(LeaseScope::Unlimited), 4 => limited];
    let parent = prop::option::of((1..4_u64).prop_map(Fence));
    (parent, scope, prop::array::uniform4(0..3_u64)).prop_map(|(parent, scope, amounts)| Authority {
        parent,
        scope,
        budget: Budget::from_amounts(amounts),
    })
}

proptest! {
    // S2-110
    #[test]
    fn signed_bytes_are_equal_only_for_equal_authorities(one in any_authority(), other in any_authority()) {
        let same = one == other;
        let bytes = |authority| SignedTerms::from(&lease(Some(authority))).to_bytes(LEDGER);
        prop_assert_eq!(bytes(one) == bytes(other), same);
    }
}
