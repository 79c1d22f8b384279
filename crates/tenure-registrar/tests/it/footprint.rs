//! How much of the disk a service takes, and how it ends its leases when there is no more.

use std::collections::VecDeque;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;
use std::{fs, thread};

use tempfile::TempDir;
use tenure_core::kernel::{
    Acquire, Command, CommandOutcome, ContentionPolicy, Fence, Holder, Labels, LeaseCredential, LeaseMode,
    LeaseRequest, Nonce, Principal, Rejection, Resource, TickDuration,
};
use tenure_core::lease::ReleaseReason;
use tenure_faulty_disk::FaultyDisk;
use tenure_registrar::Reply;
use tenure_registrar::runtime::{BootClock, RegistrarService, ServiceOptions};

use crate::ledger_store::ledger_store;
use crate::runtime::{ManualClock, acquire, granted_fence};

const HOUR: TickDuration = TickDuration::from_secs(3_600);

/// The bytes of all files in a directory, as their lengths say and as the file system allocated them.
fn used_bytes(directory: &Path) -> (u64, u64) {
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().metadata().unwrap());
    files.fold((0, 0), |(length, allocated), file| (length + file.len(), allocated + 512 * file.blocks()))
}

fn wait_until(what: &str, mut is_reached: impl FnMut() -> bool) {
    for _ in 0..12_000 {
        if is_reached() {
            return;
        }
        thread::park_timeout(Duration::from_millis(5));
    }
    panic!("{what}");
}

fn open_in(directory: &Path) -> RegistrarService {
    let (store, clock) = (ledger_store(directory, 16 << 20, None), Arc::new(BootClock::new().unwrap()));
    RegistrarService::open(directory, &store, ServiceOptions::default(), clock).unwrap()
}

#[test]
fn an_empty_data_directory_takes_8_mb_or_less() {
    let folder = tempfile::tempdir().unwrap();
    let service = open_in(folder.path());
    wait_until("the next segment and the reserve must be prepared", || {
        ["spare", "reserve-4"].iter().all(|name| folder.path().join(name).exists())
    });
    let (length, allocated) = used_bytes(folder.path());
    assert!(length <= 8_000_000, "{length} bytes");
    assert!(allocated <= 8_000_000, "{allocated} bytes allocated");
    service.stop().unwrap();
}

#[test]
fn the_first_request_after_the_first_start_is_granted() {
    let folder = tempfile::tempdir().unwrap();
    let service = open_in(folder.path());
    granted_fence(service.handle().submit_and_wait(acquire("db", "ann", 60)));
    service.stop().unwrap();
}

/// A service on a disk that can fill up, with a clock that stands still until it is moved.
struct SmallDisk {
    disk: FaultyDisk,
    clock: Arc<ManualClock>,
    /// Holds the key alone.
    folder: TempDir,
    service: RegistrarService,
}

impl SmallDisk {
    fn new() -> SmallDisk {
        let (disk, clock) = (FaultyDisk::new(1), Arc::new(ManualClock::default()));
        let folder = tempfile::tempdir().unwrap();
        let service = open(&disk, &folder, &clock);
        SmallDisk { disk, clock, folder, service }
    }

    /// The sizes of the files of the reserve, in MiB.
    fn reserve(&self) -> Vec<u64> {
        let sizes = (1..).map(|number| self.disk.file_length(&format!("reserve-{number}")).unwrap());
        sizes.map_while(|size| size.map(|size| size >> 20)).collect()
    }

    /// Sends commands, at most 256 at a time, until one is rejected for want of space. Returns how many were not.
    fn submit_all(&self, commands: impl Iterator<Item = Command>) -> Result<usize, usize> {
        let (mut done, mut in_flight) = (0, VecDeque::new());
        let mut commands = commands.fuse();
        loop {
            while in_flight.len() < 256
                && let Some(command) = commands.next()
            {
                let (sender, reply) = channel();
                self.service.handle().submit(command, move |response| drop(sender.send(response.reply)));
                in_flight.push_back(reply);
            }
            let Some(next) = in_flight.pop_front() else { return Ok(done) };
            match next.recv().unwrap() {
                Reply::Answered { answer: CommandOutcome::Rejected(Rejection::NoSpace), .. } => {
                    return Err(done);
                }
                Reply::Answered { answer: CommandOutcome::Rejected(rejection), .. } => {
                    panic!("{rejection:?}")
                }
                Reply::Answered { .. } => done += 1,
                other => panic!("{other:?}"),
            }
        }
    }

    /// Acquires `count` leases, on the resource with the number `first` and those after it.
    fn acquire(&self, first: u64, count: u64) -> Result<usize, usize> {
        self.submit_all((first..first + count).step_by(100).map(acquire_100))
    }

    /// The same, no faster than the reserve grows.
    fn acquire_in_time(&self, first: u64, count: u64) {
        for first in (first..first + count).step_by(100) {
            wait_until("the reserve must grow", || self.acquire(first, 100).is_ok());
        }
    }

    fn lease_count(&self) -> usize {
        self.service.view().read(tenure_core::kernel::KernelState::lease_count)
    }
}

fn open(disk: &FaultyDisk, folder: &TempDir, clock: &Arc<ManualClock>) -> RegistrarService {
    let store = disk.clone();
    RegistrarService::open(folder.path(), &store, ServiceOptions::default(), clock.clone()).unwrap()
}

fn acquire_100(first: u64) -> Command {
    let lease_request = |number: u64| LeaseRequest {
        resource: Resource::parse(&format!("db:{number}")).unwrap(),
        alternatives: Default::default(),
        mode: LeaseMode::Exclusive,
        ttl: HOUR,
        nonce: Nonce::default(),
        labels: Labels::default(),
    };
    Command::Acquire(Acquire {
        principal: Principal::parse("owner").unwrap(),
        holder: Holder::parse("ann").unwrap(),
        requests: (first..first + 100).map(lease_request).collect(),
        contention_policy: ContentionPolicy::Deny,
        key: None,
    })
}

fn release(lease: u64) -> Command {
    let reason = ReleaseReason::Completed;
    Command::Release { lease: Fence(lease), claim: LeaseCredential::Token, reason }
}

fn renew(lease: u64, ttl: TickDuration) -> Command {
    Command::Renew { lease: Fence(lease), credential: LeaseCredential::Token, ttl: Some(ttl) }
}

#[test]
fn the_reserve_grows_with_leases_and_grants_resume_once_it_can() {
    let small = SmallDisk::new();
    assert_eq!(small.reserve(), [1; 4]);
    assert_eq!(small.acquire(0, 1_000), Ok(10));
    small.disk.set_capacity(Some(small.disk.used_bytes()));
    // On a full disk there are grants up to what the reserve covers.
    let granted = small.acquire(1_000, 10_000).expect_err("the reserve cannot grow");
    assert!((20..80).contains(&granted), "{granted} times 100 leases more");
    assert_eq!(small.reserve(), [1; 4]);
    assert_eq!(
        small.submit_all((1..500).map(|lease| renew(lease, TickDuration::from_secs(7_200)))),
        Ok(499),
        "renewals go on"
    );
    small.disk.set_capacity(None);
    wait_until("grants must go on once there is space", || small.acquire(50_000, 100).is_ok());
    wait_until("the reserve must grow", || small.reserve() == [16; 4]);
    small.service.stop().unwrap();
}

#[test]
fn leases_from_before_a_start_keep_their_reserve() {
    let mut small = SmallDisk::new();
    small.acquire_in_time(0, 6_000);
    wait_until("the reserve must grow", || small.reserve() == [16; 4]);
    small.service.stop().unwrap();
    small.disk.set_capacity(Some(small.disk.used_bytes() + (1 << 16)));
    small.service = open(&small.disk, &small.folder, &small.clock);
    assert_eq!(small.acquire(100_000, 100), Ok(1));
    assert_eq!(small.reserve(), [16; 4]);
    small.service.stop().unwrap();
}

#[test]
fn a_hundred_thousand_leases_can_end_on_a_full_disk() {
    const LEASES: u64 = 100_000;
    let mut small = SmallDisk::new();
    small.acquire_in_time(0, LEASES);
    wait_until("the reserve must grow", || small.reserve() == [16; 4]);
    small.disk.set_capacity(Some(small.disk.used_bytes()));
    // Renewals take all that they may.
    let renewals = (1..1_000_u64).flat_map(|round| {
        let ttl = TickDuration::from_secs(3_600 + round);
        (1..=LEASES).map(move |lease| renew(lease, ttl))
    });
    let renewed = small.submit_all(renewals).expect_err("renewals leave the rest of the reserve to ends");
    assert!(renewed > 100_000, "only {renewed} renewals");
    assert_eq!(small.acquire(LEASES, 100), Err(0));
    // A part is released, each in a write of its own, and the others expire.
    for lease in 1..=50_000 {
        assert_eq!(small.submit_all(std::iter::once(release(lease))), Ok(1), "lease {lease}");
    }
    assert_eq!(small.lease_count(), 50_000);
    small.clock.advance(Duration::from_secs(100_000));
    small.service.handle().submit(release(1), drop);
    wait_until("all leases must end", || small.lease_count() == 0);
    // There is no space for the mark of an orderly end.
    let _ = small.service.stop();
    small.disk.set_capacity(None);
    small.disk.restart_after_power_cut();
    small.service = open(&small.disk, &small.folder, &small.clock);
    assert_eq!(small.lease_count(), 0);
    assert_eq!(small.acquire(LEASES, 100), Ok(1));
    wait_until("without leases the reserve must be small again", || small.reserve() == [1; 4]);
    small.service.stop().unwrap();
}
