//! A service on a real disk, and requests for it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenure_core::kernel::{
    Acquire, Command, ContentionPolicy, HashSeed, Holder, Labels, LeaseMode, LeaseRequest, Nonce, Principal,
    Resource, TickDuration,
};
use tenure_ledger::LedgerStore;
use tenure_registrar::runtime::{BootClock, Clock, MaintenanceOptions, RegistrarService, ServiceOptions};

use crate::ledger_store::ledger_store;

/// A directory that goes with this value. Below the target directory: the one for temporary files may be in memory.
pub struct DataDirectory(PathBuf);

impl DataDirectory {
    pub fn new(name: &str) -> Result<DataDirectory, String> {
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("ledger-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(|error| error.to_string())?;
        Ok(DataDirectory(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for DataDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// As a server has it, with everything that runs beside the writer.
pub fn options() -> ServiceOptions {
    let routine = MaintenanceOptions { checkpoint_after: u64::MAX, ..MaintenanceOptions::default() };
    ServiceOptions { hash_seed: HashSeed(1, 2), maintenance: routine, ..ServiceOptions::default() }
}

/// In files as large as a server has them.
pub fn store(data: &Path) -> impl LedgerStore {
    ledger_store(data, 16 << 20, 64 << 20)
}

pub fn open(data: &Path) -> Result<RegistrarService, String> {
    let clock = BootClock::new().map_err(|error| error.to_string())?;
    open_with(data, Arc::new(clock))
}

pub fn open_with(data: &Path, clock: Arc<dyn Clock>) -> Result<RegistrarService, String> {
    RegistrarService::open(data, &store(data), options(), clock).map_err(|error| error.to_string())
}

/// Asks for one lease on a resource of its own.
pub fn acquire(number: u64, ttl: TickDuration) -> Command {
    acquire_many(&[number], ttl)
}

/// Asks for a lease on each of these resources.
pub fn acquire_many(numbers: &[u64], ttl: TickDuration) -> Command {
    let lease_request = |number: &u64| LeaseRequest {
        resource: Resource::parse(&format!("work:item-{number:012}")).expect("a name"),
        alternatives: Default::default(),
        mode: LeaseMode::Exclusive,
        ttl,
        nonce: Nonce([7; 16]),
        labels: Labels::default(),
    };
    let holder = format!("worker-{:04}", numbers[0] % 1_000);
    Command::Acquire(Acquire {
        principal: Principal::parse("bench").expect("a name"),
        holder: Holder::parse(&holder).expect("a name"),
        requests: numbers.iter().map(lease_request).collect(),
        contention_policy: ContentionPolicy::Deny,
        key: None,
    })
}
