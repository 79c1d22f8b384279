//! Many live leases: the memory of the server, and its start after it was killed.

use std::time::Duration;

use super::lease_pool::{self, Retention};
use crate::cli::Sizes;
use crate::clock::Instant;
use crate::error::BenchError;
use crate::peer::launcher::RunningServer;
use crate::peer::tenure;
use crate::processes::folder_bytes;

/// Long enough that none expires while this runs.
const LIVE_TTL: Duration = Duration::from_secs(6 * 3_600);
/// After the last grant, for work that a server puts off.
const IDLE_TIME: Duration = Duration::from_secs(2);
const LEASES_METRIC: &str = "tenure_leases";

pub struct RestartMeasurement {
    /// Resident memory that the server grew by, for each lease.
    pub bytes_per_lease: f64,
    pub resident_bytes: u64,
    pub resident_bytes_after_restart: u64,
    pub data_bytes: u64,
    pub acquires_per_second: f64,
    /// From the start of the process until `/readyz` answers with 200.
    pub ready_after: Duration,
}

/// Measures one run, and ends the server.
pub async fn run(server: RunningServer, sizes: &Sizes) -> Result<RestartMeasurement, BenchError> {
    let empty_bytes = server.process.resident_bytes();
    let started = Instant::now();
    drop(lease_pool::acquire(&server, "live", sizes.live, Retention::Drop, |_| LIVE_TTL).await?);
    let acquires_per_second = sizes.live as f64 / started.elapsed().as_secs_f64();
    tokio::time::sleep(IDLE_TIME).await;
    check_leases(&server, sizes.live).await?;
    let resident_bytes = server.process.resident_bytes();
    let data_bytes = folder_bytes(&server.data);
    let (server, ready_after) = server.restart_after_kill().await?;
    check_leases(&server, sizes.live).await?;
    Ok(RestartMeasurement {
        bytes_per_lease: resident_bytes.saturating_sub(empty_bytes) as f64 / sizes.live as f64,
        resident_bytes,
        resident_bytes_after_restart: server.process.resident_bytes(),
        data_bytes,
        acquires_per_second,
        ready_after,
    })
}

async fn check_leases(server: &RunningServer, expected: usize) -> Result<(), BenchError> {
    let live = tenure::metric(server, LEASES_METRIC).await?;
    if live == expected as u64 {
        return Ok(());
    }
    Err(BenchError::unexpected(LEASES_METRIC, format!("{live} leases, not {expected}")))
}
