//! What is measured, one file per subject.

pub mod cycle;
pub mod expiry;
pub mod handover;
pub mod keepalive;
pub mod lease_pool;
pub mod restart;

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::clock::{Instant, process_cpu_time};
use crate::error::BenchError;
use crate::latency::LatencyHistogram;
use crate::machine::{busy_time, core_share};
use crate::peer::launcher::RunningServer;

/// A row whose connections do not end within this time after the measured time has failed.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);

/// Where a row is; all connections look at it.
#[derive(Default)]
pub struct RunPhase(AtomicU8);

const MEASURED: u8 = 1;
const STOPPED: u8 = 2;

impl RunPhase {
    pub fn is_measured(&self) -> bool {
        self.0.load(Ordering::Relaxed) == MEASURED
    }

    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed) == STOPPED
    }
}

/// What the connections of a row did in the measured time, and what it cost.
pub struct RowMeasurement {
    /// One for each response.
    pub latency: LatencyHistogram,
    pub elapsed: Duration,
    pub server_cpu: Duration,
    pub client_cpu: Duration,
    /// Of all programs of the machine, these two among them.
    pub machine_cpu: Duration,
}

impl RowMeasurement {
    pub fn per_second(&self) -> f64 {
        self.latency.count() as f64 / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// In microseconds.
    pub fn server_cpu_per_operation(&self) -> f64 {
        self.server_cpu.as_secs_f64() * 1e6 / (self.latency.count() as f64).max(1.0)
    }

    /// In microseconds.
    pub fn client_cpu_per_operation(&self) -> f64 {
        self.client_cpu.as_secs_f64() * 1e6 / (self.latency.count() as f64).max(1.0)
    }

    /// The part of the cores that neither the server nor the load generator used. The kernel's own threads are in it.
    pub fn other_cpu_share(&self) -> f64 {
        let other = self.machine_cpu.saturating_sub(self.server_cpu + self.client_cpu);
        core_share(other, self.elapsed)
    }

    /// Of one core.
    pub fn server_cpu_share(&self) -> f64 {
        self.server_cpu.as_secs_f64() / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

/// Lets the connections run for the warm-up and the measured time, then until they have stopped. The first failure of a
/// connection fails the row. Returns what each connection returned.
pub async fn measure<T: 'static>(
    server: &RunningServer,
    phase: &RunPhase,
    warm_up: Duration,
    measured_time: Duration,
    mut connections: JoinSet<Result<(T, LatencyHistogram), BenchError>>,
) -> Result<(RowMeasurement, Vec<T>), BenchError> {
    let mut done = Vec::new();
    wait_for(&mut connections, &mut done, warm_up).await?;
    let (started, machine_cpu) = (Instant::now(), busy_time());
    let (server_cpu, client_cpu) = (server.process.cpu_time(), process_cpu_time());
    phase.0.store(MEASURED, Ordering::Relaxed);
    wait_for(&mut connections, &mut done, measured_time).await?;
    phase.0.store(STOPPED, Ordering::Relaxed);
    let elapsed = started.elapsed();
    let client_cpu = process_cpu_time().saturating_sub(client_cpu);
    let server_cpu = server.process.cpu_time().saturating_sub(server_cpu);
    let machine_cpu = busy_time().saturating_sub(machine_cpu);
    wait_for(&mut connections, &mut done, STOP_TIMEOUT).await?;
    if !connections.is_empty() {
        let problem = format!("{} connections have no response", connections.len());
        return Err(BenchError::environment(problem, "look at the server by hand"));
    }
    let mut latency = LatencyHistogram::default();
    let mut results = Vec::new();
    for (result, own) in done {
        latency.merge(&own);
        results.push(result);
    }
    Ok((RowMeasurement { latency, elapsed, server_cpu, client_cpu, machine_cpu }, results))
}

/// Waits for `time`, or until every connection has ended.
async fn wait_for<T: 'static>(
    connections: &mut JoinSet<Result<T, BenchError>>,
    done: &mut Vec<T>,
    time: Duration,
) -> Result<(), BenchError> {
    let until_ended = async {
        while let Some(joined) = connections.join_next().await {
            let result =
                joined.map_err(|error| BenchError::environment(error.to_string(), "report this defect"))?;
            done.push(result?);
        }
        Ok(())
    };
    timeout(time, until_ended).await.unwrap_or(Ok(()))
}
