//! The machine that was measured, as far as it decides the figures.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use crate::clock::{Instant, wall_time};
use crate::error::{BenchError, IoContext as _};

#[derive(Debug, Clone, Serialize)]
pub struct MachineFacts {
    /// In UTC, such as 2026-11-19.
    pub date: String,
    pub cores: usize,
    pub processor: String,
    pub kernel: String,
    /// Of the data directories.
    pub file_system: String,
    /// Programs that ran or waited for a core before the measurement, on average over a minute.
    pub load_average: f64,
    /// The median time of a write of 512 bytes with fdatasync into a file that was filled before.
    pub sync_time: Duration,
}

/// More than this before the measurement is named in the report.
pub const IDLE_LOAD: f64 = 0.3;

const SYNCS: u64 = 201;
const SYNC_BYTES: usize = 512;
const TMPFS: u64 = 0x0102_1994;

impl MachineFacts {
    /// Fails if `data` is in memory: nothing there is durable.
    pub fn read(data: &Path) -> Result<Self, BenchError> {
        let date = jiff::Timestamp::from_nanosecond(wall_time().as_nanos().try_into().unwrap_or_default());
        let date = date.map(|date| date.strftime("%F").to_string()).unwrap_or_default();
        let statfs = rustix::fs::statfs(data).while_trying(format!("looking at {}", data.display()))?;
        let kind = u64::try_from(statfs.f_type).unwrap_or_default();
        if kind == TMPFS {
            return Err(BenchError::environment(
                format!("{} is in memory, where a sync costs nothing", data.display()),
                "choose a folder on a disk with --data",
            ));
        }
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let processor = read("/proc/cpuinfo");
        let processor = processor.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let load = read("/proc/loadavg");
        Ok(Self {
            date,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            processor: processor.map_or("unknown processor", |(_, model)| model).to_owned(),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            file_system: file_system_name(kind),
            load_average: load.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or_default(),
            sync_time: measure_sync(data)?,
        })
    }

    pub fn is_idle(&self) -> bool {
        self.load_average <= IDLE_LOAD
    }
}

/// The magic numbers are those of `statfs(2)`.
fn file_system_name(kind: u64) -> String {
    match kind {
        0xEF53 => "ext4".to_owned(),
        0x5846_5342 => "XFS".to_owned(),
        0x9123_683E => "Btrfs".to_owned(),
        0x794C_7630 => "overlayfs".to_owned(),
        other => format!("file system {other:#x}"),
    }
}

fn measure_sync(data: &Path) -> Result<Duration, BenchError> {
    let folder =
        tempfile::tempdir_in(data).while_trying(format!("creating a folder in {}", data.display()))?;
    let mut options = OpenOptions::new();
    let file = options.create_new(true).write(true).open(folder.path().join("sync"));
    let file = file.while_trying("creating a file")?;
    let block = [7; SYNC_BYTES];
    let mut times = Vec::new();
    for is_measured in [false, true] {
        for number in 0..SYNCS {
            let started = Instant::now();
            file.write_all_at(&block, number * SYNC_BYTES as u64).while_trying("writing a file")?;
            if is_measured {
                file.sync_data().while_trying("syncing a file")?;
                times.push(started.elapsed());
            }
        }
        file.sync_all().while_trying("syncing a file")?;
    }
    times.sort_unstable();
    Ok(times[times.len() / 2])
}
