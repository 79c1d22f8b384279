//! What is signed of a lease: everything that it claims, and so that no two leases look alike.

use std::borrow::Cow;
use std::collections::HashSet;

use proptest::prelude::*;
use tenure_core::kernel::{
    ClockAnchor, EncodeContext, Event, Fence, HashSeed, Holder, IssuedLease, KernelState, LeaseMode,
    LeaseTerms, LedgerTag, Limits, Resource, Tick, TickDuration, encode,
};
use tenure_core::lease::ReleaseReason;
use tenure_core::proto::{LeaseEvent, lease_event};
use tenure_ledger::signing::{Leaf, LedgerId, SignedTerms};
use tenure_ledger::{BatchBytes, ChainHash, Seq};

use crate::signing::fixtures::{LEDGER, hex, issued_lease, three_leases};

// Computed by another program, from the description alone.
#[test]
fn golden_leaves() {
    let [first, second, third] = three_leases();
    assert_eq!(
        hex(&SignedTerms::from(&first).to_bytes(LEDGER)),
        "74656e7572652e6c656173652e76314f1d09aa0102030405060708090a0b0c0000000b34663164303961612d3137\
         0000000b6465706c6f793a70726f640000000563692d343201000000000000001100000000000f4240\
         0000000001d905c0"
    );
    let leaf = |lease| hex(Leaf::of_issued(LEDGER, lease).as_bytes());
    assert_eq!(leaf(&first), "01bd6824eb39c19134cc72ef65aa97b25fbb74f3e450c9c27292f442b3f46264");
    assert_eq!(leaf(&second), "4954f760402a03ca3faa708e0c8ea17eb4cd6bc3dca00ea6628796cd95eb281a");
    assert_eq!(leaf(&third), "20cce55bd2f9dff495149519cba601f2a1f0a5b0f19c431eda0c45251cae6459");
}

#[test]
fn a_mode_is_signed_with_its_stored_number() {
    for mode in LeaseMode::ALL {
        let lease = issued_lease("deploy:prod", "ci-42", mode, 17, 1, 2);
        let stamp = EncodeContext { tag: LEDGER.tag(), anchor: ClockAnchor::default(), signature: &[1] };
        let record = encode(&Event::Issued(lease.clone()), stamp);
        let message: LeaseEvent = prost::Message::decode(record.payload.as_slice()).unwrap();
        let Some(lease_event::Event::Issued(stored)) = message.event else { panic!("{message:?}") };
        let bytes = SignedTerms::from(&lease).to_bytes(LEDGER);
        assert_eq!(i32::from(bytes[bytes.len() - 25]), stored.mode, "{mode:?}");
    }
}

#[test]
fn a_renewal_is_signed_with_its_own_ticks_and_the_names_of_its_lease() {
    let lease = issued_lease("deploy:prod", "ci-42", LeaseMode::Exclusive, 17, 1_000_000, 31_000_000);
    let mut state = KernelState::new(LEDGER.tag(), Limits::default(), HashSeed::default());
    state.apply(&Event::Issued(lease.clone())).unwrap();
    let (at, expires_at) = (Tick(20_000_000), Tick(50_000_000));
    let renewed = Leaf::of_renewed(LEDGER, state.lease(lease.fence).unwrap(), at, expires_at);
    let terms = LeaseTerms { issued_at: at, expires_at, ..lease.terms.clone() };
    assert_eq!(renewed, Leaf::of_issued(LEDGER, &IssuedLease { terms, ..lease.clone() }));
    assert_ne!(renewed, Leaf::of_issued(LEDGER, &lease));
    state
        .apply(&Event::Renewed { lease: lease.fence, at, expires_at, ttl: TickDuration(30_000_000) })
        .unwrap();
    let after = Leaf::of_renewed(LEDGER, state.lease(lease.fence).unwrap(), at, expires_at);
    assert_eq!(after, renewed, "whether the renewal is recorded already makes no difference");
}

#[test]
fn the_leaf_of_a_batch_covers_its_releases_and_expiries() {
    let leaf = |event: &Event| {
        let stamp = EncodeContext { tag: LEDGER.tag(), anchor: ClockAnchor::default(), signature: &[0] };
        Leaf::of_batch(LEDGER, ChainHash::default(), &BatchBytes::new(Seq(42), &[encode(event, stamp)]))
    };
    let (lease, at) = (Fence(17), Tick(31_000_000));
    let (holder, reason) = (|| Holder::parse("alice").unwrap(), ReleaseReason::Completed);
    let ends = [
        Event::Released { lease, at, by: holder(), reason },
        Event::Released { lease: Fence(18), at, by: holder(), reason },
        Event::Expired { lease, at },
        Event::Expired { lease, at: Tick(at.0 + 1) },
    ];
    let leaves: HashSet<Leaf> = ends.iter().map(leaf).collect();
    assert_eq!(leaves.len(), ends.len());
}

type Fields = (LedgerId, String, String, LeaseMode, u64, u64, u64);

fn bytes((ledger, resource, holder, mode, fence, at, expires_at): &Fields) -> Vec<u8> {
    let (resource, holder) = (Resource::parse(resource).unwrap(), Holder::parse(holder).unwrap());
    let terms = SignedTerms {
        resource: Cow::Owned(resource),
        holder: Cow::Owned(holder),
        mode: *mode,
        fence: Fence(*fence),
        at: Tick(*at),
        expires_at: Tick(*expires_at),
        authority: None,
    };
    terms.to_bytes(*ledger)
}

/// Few values for each part, so that two leases often differ in one part only; and names whose ends look
/// like beginnings of each other.
fn fields() -> impl Strategy<Value = Fields> {
    let number = || prop_oneof![0_u64..3, Just(1 << 52), Just(0x6161_6161)];
    let name = || "[ab:]{1,4}|a{24}b|\u{20}{8}";
    let ledger = prop_oneof![Just(LEDGER), any::<[u8; 16]>().prop_map(LedgerId)];
    (ledger, name(), name(), proptest::sample::select(&LeaseMode::ALL[..]), number(), number(), number())
}

proptest! {
    #[test]
    fn signed_bytes_are_equal_only_for_equal_leases(one in fields(), other in fields()) {
        prop_assert_eq!(one == other, bytes(&one) == bytes(&other));
    }

    // That the bytes can be taken apart again is why no two leases share them.
    #[test]
    fn signed_bytes_decode_to_the_same_lease(fields in fields()) {
        prop_assert_eq!(decode_terms(&bytes(&fields)), Some(fields));
    }

    #[test]
    fn moving_a_letter_between_resource_and_holder_changes_the_signed_bytes(name in "[a-c]{2,12}", cut in 1_usize..11) {
        let cut = cut.min(name.len() - 1);
        let lease = |at: usize| (LEDGER, name[..at].to_owned(), name[at..].to_owned(), LeaseMode::Shared, 1, 1, 2);
        for other in (1..name.len()).filter(|other| *other != cut) {
            prop_assert_ne!(bytes(&lease(cut)), bytes(&lease(other)));
        }
    }
}

/// A reader of its own, written from the description.
fn decode_terms(bytes: &[u8]) -> Option<Fields> {
    fn text(rest: &mut &[u8]) -> Option<String> {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let (text, after) = after.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        *rest = after;
        String::from_utf8(text.to_vec()).ok()
    }
    let mut rest = bytes.strip_prefix(b"tenure.lease.v1")?;
    let (ledger, after) = rest.split_first_chunk::<16>()?;
    rest = after;
    let (lease_id, resource, holder) = (text(&mut rest)?, text(&mut rest)?, text(&mut rest)?);
    let (mode, after) = rest.split_first()?;
    let (numbers, []) = after.as_chunks::<8>() else { return None };
    let [fence, at, expires_at] = numbers else { return None };
    let fence = u64::from_be_bytes(*fence);
    let tag = LedgerTag(u32::from_be_bytes(*ledger.first_chunk()?));
    (lease_id == tag.lease_id(Fence(fence))).then_some(())?;
    let mode = LeaseMode::ALL[usize::from(*mode) - 1];
    let (at, expires_at) = (u64::from_be_bytes(*at), u64::from_be_bytes(*expires_at));
    Some((LedgerId(*ledger), resource, holder, mode, fence, at, expires_at))
}
