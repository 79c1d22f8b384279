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
    /// The part of the cores that was used right before the measurement.
    pub busy_share: f64,
    /// The median time of a write of 512 bytes with fdatasync into a file that was filled before.
    pub sync_time: Duration,
}

/// A machine whose other programs use more of its cores than this is not idle. Threads of the kernel, which write to the
/// disk for the servers, are among them.
pub const IDLE_SHARE: f64 = 0.15;
/// For which the machine is watched before the measurement.
const IDLE_CHECK_TIME: Duration = Duration::from_secs(2);

const SYNCS: u64 = 201;
const SYNC_BYTES: usize = 512;
const TMPFS: u64 = 0x0102_1994;

impl MachineFacts {
    /// Fails if `data` is in memory: nothing there is durable.
    pub async fn read(data: &Path) -> Result<Self, BenchError> {
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
        let (started, busy) = (Instant::now(), busy_time());
        tokio::time::sleep(IDLE_CHECK_TIME).await;
        let busy_share = core_share(busy_time().saturating_sub(busy), started.elapsed());
        Ok(Self {
            date,
            cores: cores(),
            processor: processor.map_or("unknown processor", |(_, model)| model).to_owned(),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            file_system: file_system_name(kind),
            busy_share,
            sync_time: measure_sync(data)?,
        })
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The part of all cores that `cpu` is of `elapsed`.
pub fn core_share(cpu: Duration, elapsed: Duration) -> f64 {
    cpu.as_secs_f64() / (elapsed.as_secs_f64() * cores() as f64).max(f64::MIN_POSITIVE)
}

/// The CPU time that all programs and the kernel used since the machine was started.
pub fn busy_time() -> Duration {
    let ticks = busy_ticks(&fs::read_to_string("/proc/stat").unwrap_or_default()).unwrap_or_default();
    Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// The first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal, and parts of the first two.
fn busy_ticks(stat: &str) -> Option<u64> {
    let fields = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace().map(str::parse::<u64>);
    let fields: Vec<u64> = fields.collect::<Result<_, _>>().ok()?;
    let [user, nice, system, _, _, irq, softirq, steal, ..] = fields[..] else { return None };
    Some(user + nice + system + irq + softirq + steal)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_the_disk_and_idling_are_not_busy() {
        assert_eq!(busy_ticks("cpu  1 2 4 1000 2000 8 16 32 64 0\ncpu0 1 2 4 8\n"), Some(63));
        assert_eq!(busy_ticks("cpu  1 2 4\n"), None);
        assert!(busy_time() > Duration::ZERO);
    }

    #[test]
    fn a_share_is_of_all_cores() {
        let elapsed = Duration::from_secs(2);
        let whole = Duration::from_secs(2 * cores() as u64);
        assert!((core_share(whole, elapsed) - 1.0).abs() < 1e-9);
        assert_eq!(core_share(Duration::ZERO, elapsed), 0.0);
    }
}
