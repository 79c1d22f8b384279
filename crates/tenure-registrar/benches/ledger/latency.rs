//! One acquire under way: what it takes beyond the sync itself, which is measured beside it.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

use tenure_core::kernel::{CommandOutcome, TickDuration};
use tenure_registrar::Reply;

use crate::time::measure_duration;
use crate::workload::{DataDirectory, acquire, open};

/// What was measured, each as a median.
pub struct LatencyMeasurements {
    /// From asking to being told.
    pub acquire: Duration,
    /// Writing as many bytes into a file that was filled beforehand, and syncing it.
    pub sync: Duration,
    /// What one took beyond the other, of two that were measured one right after the other.
    pub beyond: Duration,
}

/// How many bytes one acquire is on the disk.
const RECORD: usize = 512;
const FILE: u64 = 16 << 20;

pub fn measure(repetitions: u64) -> Result<LatencyMeasurements, String> {
    let data = DataDirectory::new("latency")?;
    let service = open(data.path())?;
    let file = create_zeroed_file(&data)?;
    let handle = service.handle();
    let (mut acquires, mut syncs, mut beyond) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..repetitions {
        let offset = number * RECORD as u64 % FILE;
        let (synced, sync) =
            measure_duration(|| file.write_all_at(&[7; RECORD], offset).and_then(|()| file.sync_data()));
        synced.map_err(|error| error.to_string())?;
        let command = acquire(number, TickDuration::from_secs(3_600));
        let (response, acquire) = measure_duration(|| handle.submit_and_wait(command));
        if !matches!(response.reply, Reply::Answered { answer: CommandOutcome::Granted { .. }, .. }) {
            return Err("a request was not granted".into());
        }
        beyond.push(acquire.saturating_sub(sync));
        acquires.push(acquire);
        syncs.push(sync);
    }
    service.stop().map_err(|error| error.to_string())?;
    Ok(LatencyMeasurements { acquire: median(acquires), sync: median(syncs), beyond: median(beyond) })
}

fn create_zeroed_file(data: &DataDirectory) -> Result<File, String> {
    let mut options = OpenOptions::new();
    let file = options.create(true).truncate(true).write(true).open(data.path().join("peer"));
    let file = file.map_err(|error| error.to_string())?;
    let zeros = vec![0; 1 << 20];
    for part in 0..FILE >> 20 {
        file.write_all_at(&zeros, part << 20).map_err(|error| error.to_string())?;
    }
    file.sync_all().map_err(|error| error.to_string())?;
    Ok(file)
}

fn median(mut figures: Vec<Duration>) -> Duration {
    figures.sort_unstable();
    figures[figures.len() / 2]
}
