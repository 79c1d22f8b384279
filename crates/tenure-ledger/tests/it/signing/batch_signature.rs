//! Batches and the leases in them: what was signed verifies, and nothing else does.

use proptest::prelude::*;
use tenure_core::rules::MAX_SIGNATURE_BYTES;
use tenure_ledger::signing::merkle::MerkleError;
use tenure_ledger::signing::{
    BatchSignature, DecodeError, KeyringError, Leaf, LeaseSignature, SignatureError, sign_batch,
};

use crate::signing::fixtures::{
    FIRST_SEQ, LEDGER, OTHER_LEDGER, hex, key, keyring, leaves, other_key, signed_batch, three_leases,
};

fn three_leaves() -> [Leaf; 3] {
    three_leases().map(|lease| Leaf::of_issued(LEDGER, &lease))
}

// Computed by another program, from the description alone.
#[test]
fn golden_batch_and_lease_signatures() {
    let signature = "7b1c53a26bac2c47fd85478118fb4545143be8a1cfcdb3eb0c230d201e5df695\
                     20ef8e40ea07e66fe618d814fcc3e715b7d49315c4aeeed986a9552428a0ec06";
    let root = "6c019faf024d4bf4136bd0496cd4026c29fed36c3394a2fab4fe8f32b04bf366";
    let head = "01548f8c1645ce55b4000000000000002a0003";
    assert_eq!(hex(&signed_batch().signature().to_bytes()), format!("{head}{root}{signature}"));
    let sibling = "1db6afc939e900882e80ff5bed506afec86db5e203071b3d65ba66b9f346d620";
    let last = signed_batch().lease_signature(2).unwrap();
    assert_eq!(hex(&last.to_bytes()), format!("{head}0002{signature}{sibling}"));
}

#[test]
fn a_batch_signature_verifies_only_with_its_own_leaves() {
    let leaves = three_leaves();
    let signature = *signed_batch().signature();
    assert_eq!(BatchSignature::from_bytes(&signature.to_bytes()), Ok(signature));
    assert_eq!(signature.verify(&keyring(), LEDGER, &leaves), Ok(signed_batch()));
    let [a, b, c] = leaves;
    let not_these = Err(SignatureError::Tree(MerkleError::LeafNotFound));
    for other_leaves in [vec![a, b], vec![a, c, b], vec![a, b, c, b], vec![a]] {
        assert_eq!(signature.verify(&keyring(), LEDGER, &other_leaves), not_these);
    }
    assert_eq!(signature.verify(&keyring(), LEDGER, &[a, b, c, c]), Err(MerkleError::DuplicateLeaf.into()));
    assert_eq!(signature.verify(&keyring(), LEDGER, &[]), Err(MerkleError::Empty.into()));
    assert_eq!(signature.verify(&keyring(), OTHER_LEDGER, &leaves), Err(SignatureError::OtherLedger));
}

#[test]
fn a_batch_signature_requires_a_ledger_key_valid_at_its_event() {
    let leaves = three_leaves();
    let by = |key, first_seq| *sign_batch(&key, LEDGER, first_seq, &leaves).unwrap().signature();
    let verify = |signature: BatchSignature| signature.verify(&keyring(), LEDGER, &leaves).map(|_| ());
    assert_eq!(verify(by(key(), 2)), Ok(()));
    let key_id = key().id();
    assert_eq!(verify(by(key(), 1)), Err(KeyringError::NotYetAdded { key_id, added_at: 1, seq: 1 }.into()));
    let key_id = other_key(2).id();
    assert_eq!(verify(by(other_key(2), 2)), Err(KeyringError::Unknown { key_id }.into()));
}

#[test]
fn a_signature_for_another_ledger_is_rejected() {
    let leaves = three_leaves();
    let elsewhere = sign_batch(&key(), OTHER_LEDGER, FIRST_SEQ, &leaves).unwrap();
    let not_genuine = SignatureError::NotGenuine { key_id: key().id() };
    assert_eq!(elsewhere.signature().verify(&keyring(), LEDGER, &leaves), Err(not_genuine));
    let signature = elsewhere.lease_signature(0).unwrap();
    assert_eq!(signature.verify(&keyring(), LEDGER, leaves[0]), Err(not_genuine));
}

#[test]
fn signing_zero_or_more_than_4096_leaves_is_rejected() {
    let sign = |leaves: &[Leaf]| sign_batch(&key(), LEDGER, 2, leaves).map(|_| ());
    assert_eq!(sign(&[]), Err(MerkleError::Empty));
    assert_eq!(sign(&leaves(4096)), Ok(()));
    assert_eq!(sign(&leaves(4097)), Err(MerkleError::TooManyLeaves { leaves: 4097 }));
}

#[test]
fn a_lease_signature_verifies_only_its_own_leaf() {
    let (signed, leaves) = (signed_batch(), three_leaves());
    for (index, leaf) in (0..).zip(leaves) {
        let signature = signed.lease_signature(index).unwrap();
        assert_eq!(LeaseSignature::from_bytes(&signature.to_bytes()), Ok(signature.clone()));
        for other in leaves {
            assert_eq!(signature.verify(&keyring(), LEDGER, other).is_ok(), other == leaf);
        }
        assert_eq!(signature.verify(&keyring(), OTHER_LEDGER, leaf), Err(SignatureError::OtherLedger));
    }
    assert_eq!(signed.lease_signature(3), Err(MerkleError::NoSuchLeaf { index: 3, count: 3 }));
}

// Leaf 4 of 5 moves up twice without a sibling, so its way to the root is also that of leaf 1 of 2.
#[test]
fn a_lease_signature_with_a_smaller_batch_size_is_rejected() {
    let all = leaves(5);
    let signed = sign_batch(&key(), LEDGER, 2, &all).unwrap();
    let mut bytes = signed.lease_signature(4).unwrap().to_bytes();
    assert_eq!(LeaseSignature::from_bytes(&bytes).unwrap().verify(&keyring(), LEDGER, all[4]), Ok(()));
    bytes[17..21].copy_from_slice(&[0, 2, 0, 1]);
    let found = LeaseSignature::from_bytes(&bytes).unwrap().verify(&keyring(), LEDGER, all[4]);
    assert_eq!(found, Err(SignatureError::NotGenuine { key_id: key().id() }));
}

#[test]
fn the_longest_signature_fits_into_an_event() {
    let all = leaves(4096);
    let signed = sign_batch(&key(), LEDGER, u64::MAX, &all).unwrap();
    let signature = signed.lease_signature(4095).unwrap();
    assert_eq!(signature.verify(&keyring(), LEDGER, all[4095]), Ok(()));
    let bytes = signature.to_bytes();
    assert_eq!((bytes.len(), LeaseSignature::MAX_BYTES), (469, 469));
    assert!(bytes.len() <= MAX_SIGNATURE_BYTES);
    assert_eq!(LeaseSignature::from_bytes(&bytes), Ok(signature));
}

#[test]
fn batch_and_lease_signatures_with_a_flipped_bit_are_rejected() {
    let leaves = three_leaves();
    let good = signed_batch().signature().to_bytes();
    assert_eq!(good.len(), BatchSignature::BYTES);
    for bytes in flipped(&good) {
        let found =
            BatchSignature::from_bytes(&bytes).map(|signature| signature.verify(&keyring(), LEDGER, &leaves));
        assert!(!matches!(found, Ok(Ok(_))), "{}", hex(&bytes));
    }
    for (index, leaf) in (0..).zip(leaves) {
        for bytes in flipped(&signed_batch().lease_signature(index).unwrap().to_bytes()) {
            let found = LeaseSignature::from_bytes(&bytes).map(|it| it.verify(&keyring(), LEDGER, leaf));
            assert!(!matches!(found, Ok(Ok(()))), "{}", hex(&bytes));
        }
    }
}

#[test]
fn truncated_or_extended_signatures_are_rejected() {
    let batch_signature = signed_batch().signature().to_bytes();
    let signature = signed_batch().lease_signature(1).unwrap().to_bytes();
    for length in 0..batch_signature.len() {
        assert_eq!(BatchSignature::from_bytes(&batch_signature[..length]), Err(DecodeError::Truncated));
    }
    for length in 0..signature.len() {
        assert_eq!(LeaseSignature::from_bytes(&signature[..length]), Err(DecodeError::Truncated));
    }
    for more in [1, 31, 32, 64] {
        let longer = |bytes: &[u8]| [bytes, &vec![0; more]].concat();
        assert_eq!(BatchSignature::from_bytes(&longer(&batch_signature)), Err(DecodeError::TrailingBytes));
        assert_eq!(LeaseSignature::from_bytes(&longer(&signature)), Err(DecodeError::TrailingBytes));
    }
    let newer = |bytes: &[u8]| [&[2], &bytes[1..]].concat();
    let unknown = DecodeError::UnknownVersion { found: 2, known: 1 };
    assert_eq!(BatchSignature::from_bytes(&newer(&batch_signature)), Err(unknown));
    assert_eq!(LeaseSignature::from_bytes(&newer(&signature)), Err(unknown));
}

/// The order of the curve's base point, least byte first: S and S + L are the same to a careless verifier.
const ORDER: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

#[test]
fn a_malleated_ed25519_signature_is_rejected() {
    let leaves = three_leaves();
    let mut bytes = signed_batch().signature().to_bytes();
    let mut carry = 0;
    for (byte, more) in bytes[BatchSignature::BYTES - 32..].iter_mut().zip(ORDER) {
        let sum = u16::from(*byte) + u16::from(more) + carry;
        (*byte, carry) = (sum.to_le_bytes()[0], sum >> 8);
    }
    let found = BatchSignature::from_bytes(&bytes).unwrap().verify(&keyring(), LEDGER, &leaves);
    assert_eq!(found, Err(SignatureError::NotGenuine { key_id: key().id() }));
}

// Only who has the key can make such a signature; a careless verifier accepts it, and others may not.
#[test]
fn an_ed25519_signature_with_a_small_order_point_is_rejected() {
    let mut bytes = signed_batch().signature().to_bytes();
    let made = "0100000000000000000000000000000000000000000000000000000000000000\
                0a1cdb65b2ba29b7c3627f9014dded3dab8c09d9357a13c2e9df7c3a0f2f1805";
    for (byte, digits) in bytes[BatchSignature::BYTES - 64..].iter_mut().zip(made.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(str::from_utf8(digits).unwrap(), 16).unwrap();
    }
    let found = BatchSignature::from_bytes(&bytes).unwrap().verify(&keyring(), LEDGER, &three_leaves());
    assert_eq!(found, Err(SignatureError::NotGenuine { key_id: key().id() }));
}

fn flipped(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    (0..bytes.len() * 8).map(|bit| {
        let mut flipped = bytes.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        flipped
    })
}

proptest! {
    #[test]
    fn decoding_any_signature_bytes_does_not_panic_and_round_trips(bytes in readable()) {
        if let Ok(signature) = BatchSignature::from_bytes(&bytes) {
            prop_assert_eq!(signature.to_bytes(), bytes.clone());
            prop_assert!(signature.verify(&keyring(), LEDGER, &three_leaves()).is_err());
        }
        if let Ok(signature) = LeaseSignature::from_bytes(&bytes) {
            prop_assert_eq!(signature.to_bytes(), bytes);
            prop_assert!(signature.verify(&keyring(), LEDGER, three_leaves()[0]).is_err());
        }
    }
}

/// Bytes of all kinds, among them some that are almost right.
fn readable() -> impl Strategy<Value = Vec<u8>> {
    let like = |length: usize| {
        (proptest::collection::vec(any::<u8>(), length - 1), 0_u8..8, 0_u8..8).prop_map(
            |(mut bytes, count, index)| {
                bytes.insert(0, 1);
                bytes[1..9].copy_from_slice(&key().id().0);
                bytes[17..21].copy_from_slice(&[0, count, 0, index]);
                bytes
            },
        )
    };
    let random = proptest::collection::vec(any::<u8>(), 0..600);
    prop_oneof![
        random,
        like(BatchSignature::BYTES),
        (0_usize..5).prop_flat_map(move |steps| like(85 + 32 * steps))
    ]
}
