//! Whoever can write the files but has no key computes sums and hashes anew. The signatures tell.

use std::fs;
use std::path::Path;

use tenure_core::kernel::{ClockAnchor, EncodeContext, Event, decode, encode};
use tenure_core::lease::ReleaseReason;
use tenure_core::ledger::EventRecord;
use tenure_ledger::{BatchBytes, LedgerStore as _, open_read_only, verify};
use tenure_registrar::leaf_reference;
use tenure_registrar::runtime::{LedgerVerificationError, ReplayError, verify_ledger_directory};
use tenure_testkit::sample_ledger::SampleLedger;
use tenure_testkit::server::ledger_store;
use tenure_testkit::{run_command, tenure_command};

/// Writes every batch of a ledger into another directory, with each record as `change` leaves it.
fn write_anew(history: &SampleLedger, to: &Path, change: impl Fn(EventRecord) -> EventRecord) {
    fs::create_dir(to).unwrap();
    fs::copy(history.data().join("identity"), to.join("identity")).unwrap();
    let mut ledger = ledger_store(to, 65_536).open().unwrap().finish().unwrap();
    let archive = open_read_only(&history.data()).unwrap();
    let mut batches = archive.batches();
    while let Some(placed) = batches.next_batch().unwrap() {
        let batch = placed.batch;
        let records: Vec<_> = batch.records.into_iter().map(&change).collect();
        ledger
            .append_batch(&BatchBytes::new(batch.first, &records).with_signature(&batch.signature))
            .unwrap();
    }
    ledger.close().unwrap();
}

#[test]
fn forged_batch_with_a_valid_hash_chain_is_detected() {
    let history = SampleLedger::create(&[]);
    let folder = history.folder.path();
    let tag = verify(&history.data()).unwrap().ledger.tag();
    write_anew(&history, &folder.join("same"), |record| record);
    verify_ledger_directory(&folder.join("same"), &mut |_, _| {}).expect("nothing was changed");

    let other_reason = |record: EventRecord| match decode(&record, tag).unwrap() {
        Some(Event::Released { lease, at, by, .. }) => {
            let event = Event::Released { lease, at, by, reason: ReleaseReason::Aborted };
            encode(
                &event,
                EncodeContext { tag, anchor: ClockAnchor::default(), signature: &leaf_reference(0) },
            )
        }
        _ => record,
    };
    let forged = folder.join("forged");
    write_anew(&history, &forged, other_reason);
    verify(&forged).expect("sums and hashes are as they should be");
    let found = verify_ledger_directory(&forged, &mut |_, _| {}).expect_err("the signature is not");
    let LedgerVerificationError::Record { source: ReplayError::Unsigned { at, .. }, .. } = &found else {
        panic!("{found:?}");
    };
    let released = history.events().into_iter().find(|event| event["type"] == "lease.released").unwrap();
    assert!(at.0 <= released["seq"].as_u64().unwrap());

    let result = run_command(tenure_command(folder).args(["verify", "--data", "forged"]));
    assert_eq!((result.code, result.output.as_str()), (Some(1), ""));
    for part in ["0000000000000001.segment is damaged at byte ", "is not signed as it should be"] {
        assert!(result.errors.contains(part), "{}", result.errors);
    }
}

#[test]
fn batch_without_a_signature_is_detected() {
    let history = SampleLedger::create(&[]);
    let bare = history.folder.path().join("bare");
    fs::create_dir(&bare).unwrap();
    fs::copy(history.data().join("identity"), bare.join("identity")).unwrap();
    let mut ledger = ledger_store(&bare, 65_536).open().unwrap().finish().unwrap();
    let archive = open_read_only(&history.data()).unwrap();
    let mut batches = archive.batches();
    while let Some(placed) = batches.next_batch().unwrap() {
        ledger.append_batch(&BatchBytes::new(placed.batch.first, &placed.batch.records)).unwrap();
    }
    ledger.close().unwrap();
    verify(&bare).expect("sums and hashes are as they should be");
    let found = verify_ledger_directory(&bare, &mut |_, _| {}).expect_err("there are no signatures");
    assert!(
        matches!(found, LedgerVerificationError::Record { source: ReplayError::Unsigned { .. }, .. }),
        "{found:?}"
    );
}

#[test]
fn second_reader_rejects_what_the_first_one_accepts() {
    let history = SampleLedger::create(&[]);
    let folder = history.folder.path();
    let tag = verify(&history.data()).unwrap().ledger.tag();
    // The kernel leaves signatures to whoever checks them; the work face's reducer wants each lease to have one.
    let unsigned = |record: EventRecord| match decode(&record, tag).unwrap() {
        Some(event @ Event::Issued(_)) => {
            encode(&event, EncodeContext { tag, anchor: ClockAnchor::default(), signature: &[] })
        }
        _ => record,
    };
    write_anew(&history, &folder.join("unsigned"), unsigned);
    let result = run_command(tenure_command(folder).args(["replay", "--at", "last", "--data", "unsigned"]));
    assert_eq!((result.code, result.output.as_str()), (Some(1), ""));
    assert!(result.errors.contains("the second reader refuses event "), "{}", result.errors);
}
