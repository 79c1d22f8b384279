//! Keeping many leases alive: each is renewed every third of its TTL, as the client library does it.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;

use super::lease_pool::{self, PER_FRAME, PoolClient, Retention};
use super::{RowMeasurement, RunPhase, measure};
use crate::cli::Sizes;
use crate::clock::Instant;
use crate::error::BenchError;
use crate::latency::LatencyHistogram;
use crate::peer::launcher::RunningServer;
use crate::peer::{Step, TTL};

pub struct KeepaliveMeasurement {
    /// One latency for each renewal.
    pub renewals: RowMeasurement,
    /// Renewals per second that the leases need.
    pub needed_per_second: f64,
}

/// Measures one run on a server without other leases.
pub async fn run(server: &RunningServer, sizes: &Sizes) -> Result<KeepaliveMeasurement, BenchError> {
    let clients = lease_pool::acquire(server, "renewed", sizes.renewed, Retention::Keep, |_| TTL).await?;
    let phase = Arc::new(RunPhase::default());
    let mut connections = JoinSet::new();
    let count = clients.len();
    for (number, client) in clients.into_iter().enumerate() {
        connections.spawn(renew(client, phase.clone(), number as f64 / count as f64));
    }
    let (renewals, _) = measure(server, &phase, sizes.warm_up, sizes.renewal_time, connections).await?;
    let needed_per_second = sizes.renewed as f64 / (TTL / 3).as_secs_f64();
    Ok(KeepaliveMeasurement { renewals, needed_per_second })
}

/// Renews the leases of one connection in turn, 16 in a frame, evenly over a third of the TTL. `offset` is the part of an
/// interval by which this connection is behind the first, so that they do not send all at once.
async fn renew(
    mut client: PoolClient,
    phase: Arc<RunPhase>,
    offset: f64,
) -> Result<((), LatencyHistogram), BenchError> {
    let mut latency = LatencyHistogram::default();
    if client.leases.is_empty() {
        return Ok(((), latency));
    }
    let frames = client.leases.len().div_ceil(PER_FRAME);
    let interval = (TTL / 3).div_f64(frames as f64);
    let mut due = Instant::now().after(interval.mul_f64(offset));
    loop {
        for frame in client.leases.chunks_mut(PER_FRAME) {
            if phase.is_stopped() {
                return Ok(((), latency));
            }
            let early = due.since(Instant::now());
            if early > Duration::ZERO {
                sleep(early).await;
            }
            let sent = Instant::now();
            let mut completed = || {
                if phase.is_measured() {
                    latency.record(sent.elapsed());
                }
            };
            client.connection.perform(Step::Renew, frame, &mut completed).await?;
            due = due.after(interval);
        }
    }
}
