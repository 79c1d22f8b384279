//! The lease cycle: every client acquires, renews and releases leases of its own, as fast as responses come.

use std::fmt::Write as _;
use std::sync::Arc;

use serde::Serialize;
use tokio::task::JoinSet;

use super::{RowMeasurement, RunPhase, measure};
use crate::cli::Sizes;
use crate::clock::Instant;
use crate::error::BenchError;
use crate::latency::LatencyHistogram;
use crate::peer::launcher::RunningServer;
use crate::peer::{LeaseConnection, LeaseSlot, Step, System};

/// Resources that each slot uses in turn.
const RESOURCES_PER_SLOT: u64 = 64;

/// How much a row has in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Depth {
    /// Operations without a response, over all connections.
    pub in_flight: usize,
    /// Of these, how many a connection sends in one write.
    pub per_write: usize,
}

impl Depth {
    /// The depths that the sizes ask for, from the least to the most in flight.
    pub fn all(sizes: &Sizes) -> Vec<Self> {
        let depths = sizes.in_flight.iter().flat_map(|in_flight| {
            let per_write = sizes.per_write.iter().filter(move |per_write| in_flight % *per_write == 0);
            per_write.map(|per_write| Self { in_flight: *in_flight, per_write: *per_write })
        });
        depths.collect()
    }

    pub fn suits(self, system: System) -> bool {
        self.per_write == 1 || system.can_pipeline()
    }
}

/// Checks that a held resource is denied to another client, so that the row measures leases and not mere writes.
pub async fn probe_exclusion(system: System, server: &RunningServer, label: &str) -> Result<(), BenchError> {
    let mut holder = LeaseConnection::connect(system, server, usize::MAX).await?;
    let mut other = LeaseConnection::connect(system, server, usize::MAX - 1).await?;
    let resource = format!("{label}-probe");
    let mut held = [LeaseSlot { resource, ..LeaseSlot::default() }];
    let mut denied = held.clone();
    holder.perform(Step::Acquire, &mut held, &mut || ()).await?;
    match other.perform(Step::Acquire, &mut denied, &mut || ()).await {
        Err(BenchError::Denied(_)) => {}
        Err(error) => return Err(error),
        Ok(()) => return Err(BenchError::unexpected("acquire", "two holders of one resource")),
    }
    holder.perform(Step::Renew, &mut held, &mut || ()).await?;
    holder.perform(Step::Release, &mut held, &mut || ()).await?;
    // What is released can be acquired again.
    let mut other = LeaseConnection::connect(system, server, usize::MAX - 2).await?;
    other.perform(Step::Acquire, &mut denied, &mut || ()).await?;
    other.perform(Step::Release, &mut denied, &mut || ()).await
}

/// Measures one row. `label` makes its resources different from those of other rows.
pub async fn run(
    system: System,
    server: &RunningServer,
    depth: Depth,
    sizes: &Sizes,
    label: &str,
) -> Result<RowMeasurement, BenchError> {
    probe_exclusion(system, server, label).await?;
    let phase = Arc::new(RunPhase::default());
    let clients = depth.in_flight / depth.per_write;
    let max_cycles = sizes.max_operations.div_ceil(Step::CYCLE.len() as u64 * depth.in_flight as u64);
    let mut connections = JoinSet::new();
    for number in 0..clients {
        let connection = LeaseConnection::connect(system, server, number).await?;
        let client = Client {
            connection,
            slots: vec![LeaseSlot::default(); depth.per_write],
            label: format!("{label}-{number}"),
            latency: LatencyHistogram::default(),
            phase: phase.clone(),
        };
        connections.spawn(client.run(max_cycles));
    }
    let (measurement, _) = measure(server, &phase, sizes.warm_up, sizes.measured_time, connections).await?;
    if measurement.latency.count() == 0 {
        return Err(BenchError::unexpected("the lease cycle", "no response in the measured time"));
    }
    Ok(measurement)
}

struct Client {
    connection: LeaseConnection,
    slots: Vec<LeaseSlot>,
    label: String,
    latency: LatencyHistogram,
    phase: Arc<RunPhase>,
}

impl Client {
    /// Ends after a whole cycle, so that nothing stays held.
    async fn run(mut self, max_cycles: u64) -> Result<((), LatencyHistogram), BenchError> {
        for cycle in 0..max_cycles {
            if self.phase.is_stopped() {
                break;
            }
            for (index, slot) in self.slots.iter_mut().enumerate() {
                slot.resource.clear();
                write!(slot.resource, "{}-{index}-{}", self.label, cycle % RESOURCES_PER_SLOT)
                    .expect("memory can be written");
            }
            for step in Step::CYCLE {
                let sent = Instant::now();
                let (latency, phase) = (&mut self.latency, &self.phase);
                let mut completed = || {
                    if phase.is_measured() {
                        latency.record(sent.elapsed());
                    }
                };
                self.connection.perform(step, &mut self.slots, &mut completed).await?;
            }
        }
        Ok(((), self.latency))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_per_write_divide_the_depth() {
        let sizes = Sizes {
            is_quick: true,
            runs: 1,
            measured_time: std::time::Duration::ZERO,
            warm_up: std::time::Duration::ZERO,
            max_operations: 1,
            in_flight: vec![1, 16],
            per_write: vec![1, 4, 16],
            waiters: 2,
            poll_interval: std::time::Duration::ZERO,
            expiring: 1,
            expiry_window: std::time::Duration::ZERO,
            renewed: 16,
            renewal_time: std::time::Duration::ZERO,
            live: 1,
        };
        let depths: Vec<_> =
            Depth::all(&sizes).iter().map(|depth| (depth.in_flight, depth.per_write)).collect();
        assert_eq!(depths, [(1, 1), (16, 1), (16, 4), (16, 16)]);
        let pipelined = Depth { in_flight: 16, per_write: 4 };
        assert!(pipelined.suits(System::Redis) && !pipelined.suits(System::TenureHttp));
    }
}
