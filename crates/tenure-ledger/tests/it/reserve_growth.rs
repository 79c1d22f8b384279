//! The reserve grows with the number of leases, so that all of them can end on a full disk.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::ledger::EventRecord;
use tenure_faulty_disk::FaultyDisk;
use tenure_ledger::embedded::{Disk as _, EmbeddedLedger, EmbeddedRecovery, LedgerOptions};
use tenure_ledger::{AppendError, Ledger, SpaceLevel};

use crate::ledger_suite::{append, event, read_all};

const MIB: u64 = 1 << 20;

fn open(disk: &FaultyDisk) -> EmbeddedLedger {
    open_with(disk, LedgerOptions::default())
}

fn open_with(disk: &FaultyDisk, options: LedgerOptions) -> EmbeddedLedger {
    EmbeddedRecovery::begin_on(Arc::new(disk.clone()), options).unwrap().finish().expect("the ledger opens")
}

/// A ledger whose next segment and reserve are prepared for `live` leases.
fn prepared(disk: &FaultyDisk, live: usize) -> EmbeddedLedger {
    let ledger = open(disk);
    ledger.space_level(live);
    ledger.maintenance().prepare_space().expect("there is space");
    ledger
}

/// The sizes of the files of the reserve, in MiB.
fn reserve(disk: &FaultyDisk) -> Vec<u64> {
    let numbers = (1..).map(|number| disk.length(&format!("reserve-{number}")).unwrap());
    numbers.map_while(|size| size.map(|size| size / MIB)).collect()
}

/// Appends events until `is_done`, and lets the maintenance try to prepare space after each, as beside a writer.
fn append_while(
    ledger: &mut EmbeddedLedger,
    live: usize,
    payload: usize,
    is_done: impl Fn(SpaceLevel) -> bool,
) {
    while !is_done(ledger.space_level(live)) {
        let record = EventRecord::new("lease.renewed", "", "registrar", vec![1; payload]);
        let at = ledger.head().seq;
        ledger.append(at, &[record], b"sealed").expect("there is space");
        let _ = ledger.maintenance().prepare_space();
    }
}

#[test]
fn the_reserve_grows_with_the_number_of_leases_before_it_is_needed() {
    let disk = FaultyDisk::new(1);
    let ledger = open(&disk);
    assert_eq!(ledger.space_level(0), SpaceLevel::EndsAndRenewals, "no lease without a reserve");
    for (live, expected) in [(0, [1; 4]), (1_024, [1; 4]), (1_025, [4; 4]), (4_096, [4; 4]), (4_097, [16; 4])]
    {
        ledger.space_level(live);
        ledger.maintenance().prepare_space().expect("there is space");
        assert_eq!(reserve(&disk), expected, "{live} leases");
        assert_eq!(ledger.space_level(live), SpaceLevel::Plenty);
    }
    assert_eq!(ledger.space_level(1_000_000), SpaceLevel::Plenty, "the largest reserve is enough");
}

#[test]
fn a_growing_number_of_leases_wakes_the_maintenance() {
    let disk = FaultyDisk::new(1);
    let ledger = prepared(&disk, 0);
    let maintenance = ledger.maintenance();
    maintenance.wait_for_work(Duration::ZERO);
    ledger.space_level(1_025);
    // Without the wake, this takes an hour.
    maintenance.wait_for_work(Duration::from_secs(3_600));
    maintenance.prepare_space().unwrap();
    assert_eq!(reserve(&disk), [4; 4]);
}

#[test]
fn leases_that_the_reserve_does_not_cover_are_denied_until_it_has_grown() {
    let disk = FaultyDisk::new(1);
    let ledger = prepared(&disk, 0);
    disk.set_capacity(Some(disk.used_bytes()));
    let full = ledger.maintenance();
    for (live, expected) in [(4_095, SpaceLevel::Plenty), (4_096, SpaceLevel::EndsAndRenewals)] {
        assert_eq!(ledger.space_level(live), expected, "{live} leases");
        let error = full.prepare_space().expect_err("there is no space for a larger reserve");
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        assert_eq!(ledger.space_level(live), expected, "{live} leases, on a full disk");
    }
    assert_eq!(reserve(&disk), [1; 4], "what there is stays");
    disk.set_capacity(None);
    ledger.maintenance().prepare_space().expect("there is space again");
    assert_eq!(ledger.space_level(4_096), SpaceLevel::Plenty);
}

#[test]
fn the_reserve_shrinks_only_at_a_start_and_only_once_the_leases_are_counted() {
    let disk = FaultyDisk::new(1);
    let ledger = prepared(&disk, 5_000);
    ledger.space_level(0);
    ledger.maintenance().prepare_space().unwrap();
    assert_eq!(reserve(&disk), [16; 4], "while the ledger is open");
    drop(ledger);
    let ledger = open(&disk);
    ledger.maintenance().prepare_space().unwrap();
    assert_eq!(reserve(&disk), [16; 4], "before the number of leases is known");
    assert_eq!(
        ledger.space_level(5_000),
        SpaceLevel::Plenty,
        "the reserve from before the start covers them"
    );
    drop(ledger);
    let ledger = prepared(&disk, 10);
    assert_eq!(reserve(&disk), [1; 4]);
    assert_eq!(ledger.space_level(10), SpaceLevel::Plenty);
}

#[test]
fn a_configured_reserve_keeps_its_size() {
    let options = |reserve| LedgerOptions { reserve: Some(reserve), ..LedgerOptions::default() };
    let disk = FaultyDisk::new(1);
    for (bytes, expected) in [(8 * MIB, &[2, 2, 2, 2][..]), (MIB, &[1][..])] {
        let ledger = open_with(&disk, options(bytes));
        assert_eq!(ledger.space_level(100_000), SpaceLevel::Plenty);
        ledger.maintenance().prepare_space().unwrap();
        assert_eq!(reserve(&disk), expected);
    }
}

#[test]
fn every_covered_lease_can_end_alone_on_a_full_disk() {
    for (live, granted, expected) in [(0, 1_024, [1; 4]), (0, 4_095, [1; 4]), (1_025, 16_383, [4; 4])] {
        let disk = FaultyDisk::new(1);
        let mut ledger = prepared(&disk, live);
        assert_eq!(reserve(&disk), expected);
        disk.set_capacity(Some(disk.used_bytes()));
        assert_eq!(ledger.space_level(granted), SpaceLevel::Plenty);
        // Renewals use all that they may.
        append_while(&mut ledger, granted, 400, |level| level == SpaceLevel::EndsOnly);
        for ended in 0..granted {
            let level = ledger.space_level(granted - ended);
            assert_eq!(level, SpaceLevel::EndsOnly, "{ended} of {granted} have ended");
            append(&mut ledger, 1);
            let _ = ledger.maintenance().prepare_space();
        }
        drop(ledger);
        disk.restart_after_power_cut();
        disk.set_capacity(None);
        open(&disk);
    }
}

#[test]
fn one_write_that_ends_every_lease_fits_on_a_full_disk() {
    for live in [1_024, 4_095, 16_383, 65_000] {
        let disk = FaultyDisk::new(1);
        let mut ledger = prepared(&disk, live / 4);
        disk.set_capacity(Some(disk.used_bytes()));
        append_while(&mut ledger, live, 100_000, |level| level == SpaceLevel::EndsOnly);
        let at = ledger.head().seq;
        let end = |number: usize| {
            let payload = vec![u8::try_from(number % 251).unwrap(); 180];
            EventRecord::new("lease.released", "", "a holder", payload)
        };
        let ends: Vec<_> = (0..live).map(end).collect();
        ledger.append(at, &ends, b"sealed").unwrap_or_else(|error| panic!("{live} leases: {error}"));
    }
}

#[test]
fn a_write_that_fits_no_file_of_the_reserve_changes_nothing() {
    let disk = FaultyDisk::new(1);
    let mut ledger = prepared(&disk, 0);
    disk.set_capacity(Some(disk.used_bytes()));
    let (before, reserved) = (ledger.head(), reserve(&disk));
    let large = EventRecord::new("lease.issued", "", "registrar", vec![1; 3 << 20]);
    let error = ledger.append(before.seq, &[large], b"sealed").expect_err("there is no space for it");
    assert!(matches!(error, AppendError::NoSpace), "{error:?}");
    assert_eq!((ledger.head(), reserve(&disk)), (before, reserved));
    append(&mut ledger, 5);
    assert_eq!(read_all(&ledger)[0].records, (1..=5).map(event).collect::<Vec<_>>());
}

#[test]
fn a_crash_while_the_reserve_grows_leaves_blank_files_that_can_be_used() {
    // Most operations write zeros, and a file takes 19: in steps of three every kind of operation has its turn.
    for at in (0..).step_by(3) {
        let disk = FaultyDisk::new(at);
        let mut ledger = prepared(&disk, 0);
        append(&mut ledger, 1);
        ledger.space_level(1_025);
        disk.crash_after(at);
        let is_done = ledger.maintenance().prepare_space().is_ok();
        assert!(is_done || disk.is_powered_off(), "something failed on a disk that did not");
        drop(ledger);
        if at % 2 == 0 {
            disk.restart_after_power_cut()
        } else {
            disk.restart_process()
        }
        let mut ledger = open(&disk);
        disk.set_capacity(Some(disk.used_bytes()));
        append_while(&mut ledger, 0, 900_000, |level| level <= SpaceLevel::EndsOnly);
        while ledger.space_level(0) > SpaceLevel::Exhausted {
            append(&mut ledger, 100);
            let _ = ledger.maintenance().prepare_space();
        }
        let written = read_all(&ledger);
        drop(ledger);
        disk.restart_after_power_cut();
        disk.set_capacity(None);
        assert_eq!(read_all(&open(&disk)), written, "operation {at}");
        if is_done {
            assert!(at > 70, "four files of 4 MiB take many operations, not {at}");
            return;
        }
    }
}
