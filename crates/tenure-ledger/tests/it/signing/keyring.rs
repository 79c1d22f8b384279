//! Keys as ledger entries: each rests on one before it.

use proptest::prelude::*;
use tenure_core::kernel::decode;
use tenure_core::ledger::EventRecord;
use tenure_ledger::signing::{
    KeyAdded, KeyEntry, KeyEntryError, KeyRetired, Keyring, KeyringError, LedgerSigningKey,
};

use crate::signing::fixtures::{LEDGER, OTHER_LEDGER, hex, key, key_added, keyring, other_key};

fn retired(key: &LedgerSigningKey, by: &LedgerSigningKey) -> KeyEntry {
    KeyEntry::Retired(KeyRetired::new(LEDGER, key.id(), by))
}

#[test]
fn keys_are_added_and_retired_in_a_chain() {
    let (first, second, third) = (key(), other_key(2), other_key(3));
    let mut keyring = keyring();
    keyring.apply(10, &key_added(&second, &first)).unwrap();
    keyring.apply(11, &retired(&first, &second)).unwrap();
    keyring.apply(20, &key_added(&third, &second)).unwrap();
    keyring.apply(30, &retired(&second, &second)).unwrap();
    assert_eq!(keyring.first(), Some(first.public_key()));
    assert_eq!(keyring.active_keys().collect::<Vec<_>>(), [third.public_key()]);
    assert_eq!(keyring.public_key(first.id()), Some(first.public_key()), "what it signed stays signed");
    assert_eq!((keyring.retired_at(first.id()), keyring.retired_at(third.id())), (Some(11), None));
    assert_eq!(keyring.public_key(other_key(4).id()), None);
}

#[test]
fn a_key_is_valid_after_its_added_event_up_to_its_retired_event() {
    let (first, second) = (key(), other_key(2));
    let mut keyring = keyring();
    keyring.apply(10, &key_added(&second, &first)).unwrap();
    keyring.apply(20, &retired(&first, &second)).unwrap();
    let key_id = first.id();
    assert_eq!(keyring.key_valid_at(key_id, 2), Ok(first.public_key()));
    assert_eq!(keyring.key_valid_at(key_id, 20), Ok(first.public_key()));
    assert_eq!(keyring.key_valid_at(key_id, 21), Err(KeyringError::Retired { key_id, since: 20, seq: 21 }));
    assert_eq!(
        keyring.key_valid_at(key_id, 1),
        Err(KeyringError::NotYetAdded { key_id, added_at: 1, seq: 1 })
    );
    let key_id = second.id();
    assert_eq!(
        keyring.key_valid_at(key_id, 10),
        Err(KeyringError::NotYetAdded { key_id, added_at: 10, seq: 10 })
    );
    assert_eq!(keyring.key_valid_at(key_id, 11), Ok(second.public_key()));
    let key_id = other_key(3).id();
    assert_eq!(keyring.key_valid_at(key_id, 11), Err(KeyringError::Unknown { key_id }));
}

#[test]
fn an_invalid_key_entry_is_rejected_and_changes_nothing() {
    let (first, second, third) = (key(), other_key(2), other_key(3));
    let mut keyring = keyring();
    keyring.apply(10, &key_added(&second, &first)).unwrap();
    keyring.apply(11, &retired(&first, &second)).unwrap();
    let (first_id, second_id, third_id) = (first.id(), second.id(), third.id());
    let mut stolen = KeyAdded::new(LEDGER, third.public_key(), &third);
    stolen.signed_by = second_id;
    let mut renamed = KeyAdded::new(LEDGER, third.public_key(), &second);
    renamed.key_id = second_id;
    let elsewhere = KeyAdded::new(OTHER_LEDGER, third.public_key(), &second);
    let mut unfit = KeyRetired::new(LEDGER, third_id, &second);
    unfit.key_id = second_id;
    let not_genuine = |key_id| KeyringError::InvalidSignature { key_id, signed_by: second_id };
    let since = KeyringError::Retired { key_id: first_id, since: 11, seq: 12 };
    let cases = [
        (12, key_added(&third, &third), KeyringError::Unknown { key_id: third_id }),
        (12, key_added(&third, &first), since),
        (12, key_added(&first, &second), KeyringError::AddedTwice { key_id: first_id }),
        (12, KeyEntry::Added(stolen), not_genuine(third_id)),
        (12, KeyEntry::Added(renamed), KeyringError::KeyIdMismatch { key_id: second_id }),
        (12, KeyEntry::Added(elsewhere), not_genuine(third_id)),
        (12, retired(&third, &second), KeyringError::Unknown { key_id: third_id }),
        (12, retired(&first, &second), since),
        (12, KeyEntry::Retired(unfit), not_genuine(second_id)),
        (12, retired(&second, &second), KeyringError::LastKey { key_id: second_id }),
        (11, key_added(&third, &second), KeyringError::OutOfOrder { seq: 11, latest: 11 }),
    ];
    let before = keyring.clone();
    for (seq, entry, error) in cases {
        assert_eq!(keyring.apply(seq, &entry), Err(error), "{entry:?}");
        assert_eq!(keyring, before);
    }
    keyring.apply(12, &key_added(&third, &second)).unwrap();
}

#[test]
fn the_first_key_is_self_signed_for_this_ledger() {
    let mut keyring = Keyring::new(OTHER_LEDGER);
    let key_id = key().id();
    let foreign = KeyringError::InvalidSignature { key_id, signed_by: key_id };
    assert_eq!(keyring.apply(1, &key_added(&key(), &key())), Err(foreign));
    let unknown = KeyringError::Unknown { key_id: other_key(2).id() };
    assert_eq!(keyring.apply(1, &key_added(&key(), &other_key(2))), Err(unknown));
    assert_eq!(keyring.first(), None);
}

// Computed by another program, from the description alone.
#[test]
fn golden_entries() {
    let KeyEntry::Added(added) = key_added(&key(), &key()) else { unreachable!() };
    let KeyEntry::Retired(retired) = retired(&key(), &key()) else { unreachable!() };
    assert_eq!(
        hex(&added.signature),
        "084709a3b87c2c1a6df03c0c22e64b8716c61e5da2b2ad09f32dc4eeaf7aaebe\
         97556634befc10f3806caa65c0afdc42c9990183a0cbf2f72b5c74f56bad1d0d"
    );
    assert_eq!(
        hex(&retired.signature),
        "e386efe24398b5b08c00e216ce8dd224f1d8d95a87cb5fa2c4044b847e9a1eb0\
         56cb1d383c012f002a4c2ff14c0ae3351007b407529c8b3cdd540fdb7d6f2401"
    );
}

#[test]
fn a_key_entry_round_trips_and_is_ignored_by_the_kernel() {
    for entry in [key_added(&other_key(2), &key()), retired(&key(), &other_key(2))] {
        let record = entry.to_record();
        assert_eq!(KeyEntry::from_record(&record), Ok(Some(entry)));
        assert_eq!(decode(&record, LEDGER.tag()), Ok(None));
    }
    let clock = EventRecord::new("clock.mark", "", "registrar", [1, 2, 3]);
    assert_eq!(KeyEntry::from_record(&clock), Ok(None));
}

#[test]
fn a_key_record_with_the_type_of_another_payload_is_rejected() {
    let mut record = key_added(&key(), &key()).to_record();
    for event_type in ["key.retired", "key.lent", "key", "key."] {
        record.event_type = event_type.into();
        assert!(matches!(KeyEntry::from_record(&record), Err(KeyEntryError::Malformed { part: "type", .. })));
    }
    let empty = EventRecord::new("key.added", "", "registrar", []);
    assert!(matches!(KeyEntry::from_record(&empty), Err(KeyEntryError::Malformed { part: "payload", .. })));
}

#[test]
fn a_key_record_with_any_flipped_bit_is_rejected() {
    let (first, second) = (key(), other_key(2));
    let mut keyring = keyring();
    keyring.apply(2, &key_added(&second, &first)).unwrap();
    for entry in [key_added(&other_key(3), &second), retired(&first, &second)] {
        let good = entry.to_record();
        keyring.clone().apply(3, &entry).unwrap();
        for bit in 0..good.payload.len() * 8 {
            let mut record = good.clone();
            record.payload[bit / 8] ^= 1 << (bit % 8);
            let applied = KeyEntry::from_record(&record)
                .is_ok_and(|found| found.is_some_and(|found| keyring.clone().apply(3, &found).is_ok()));
            assert!(!applied, "bit {bit} of {entry:?}");
        }
    }
}

proptest! {
    #[test]
    fn decoding_any_key_payload_does_not_panic(payload: Vec<u8>, is_added: bool) {
        let event_type = if is_added { "key.added" } else { "key.retired" };
        let _ = KeyEntry::from_record(&EventRecord::new(event_type, "", "", payload));
    }
}
