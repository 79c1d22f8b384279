//! A service on a real disk, and requests for it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenure_core::kernel::{
    Acquire, Command, Contention, HashKey, Holder, Labels, Mode, Nonce, Principal, Resource, Span, Want,
};
use tenure_registrar::shell::{BootClock, Clock, Routine, Service, ServiceOptions};

/// A directory that goes with this value. Below the target directory: the one for temporary files may be in memory.
pub struct Data(PathBuf);

impl Data {
    pub fn new(name: &str) -> Result<Data, String> {
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("ledger-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(|error| error.to_string())?;
        Ok(Data(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// As a server has it, with everything that runs beside the writer.
pub fn options() -> ServiceOptions {
    let routine = Routine { checkpoint_after: u64::MAX, ..Routine::default() };
    ServiceOptions { hash_key: HashKey(1, 2), routine, ..ServiceOptions::default() }
}

pub fn open(data: &Path) -> Result<Service, String> {
    let clock = BootClock::new().map_err(|error| error.to_string())?;
    open_with(data, Arc::new(clock))
}

pub fn open_with(data: &Path, clock: Arc<dyn Clock>) -> Result<Service, String> {
    Service::open(data, options(), clock).map_err(|error| error.to_string())
}

/// Asks for one lease on a resource of its own.
pub fn acquire(number: u64, ttl: Span) -> Command {
    acquire_many(&[number], ttl)
}

/// Asks for a lease on each of these resources.
pub fn acquire_many(numbers: &[u64], ttl: Span) -> Command {
    let want = |number: &u64| Want {
        resource: Resource::parse(&format!("work:item-{number:012}")).expect("a name"),
        others: Default::default(),
        mode: Mode::Exclusive,
        ttl,
        nonce: Nonce([7; 16]),
        labels: Labels::default(),
    };
    let holder = format!("worker-{:04}", numbers[0] % 1_000);
    Command::Acquire(Acquire {
        principal: Principal::parse("bench").expect("a name"),
        holder: Holder::parse(&holder).expect("a name"),
        wants: numbers.iter().map(want).collect(),
        contention: Contention::Refuse,
        key: None,
    })
}
