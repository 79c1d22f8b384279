//! Handovers: many clients want one resource, and each releases it as soon as it has it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;

use super::{RowMeasurement, RunPhase, measure};
use crate::cli::Sizes;
use crate::clock::Instant;
use crate::error::BenchError;
use crate::latency::LatencyHistogram;
use crate::peer::etcd::Etcd;
use crate::peer::launcher::RunningServer;
use crate::peer::redis::Redis;
use crate::peer::tenure::TenureHttp;
use crate::peer::tenure_stream::TenureStream;
use crate::peer::{LeaseSlot, Step, System, TTL};
use crate::statistics::jain_index;

/// The systems whose handovers are measured, and how a client waits for its turn.
pub const SYSTEMS: [(System, &str); 4] = [
    (
        System::TenureStream,
        "waits in the FIFO queue, `waitMs` on `/v1/stream`; each grant is a new durable lease",
    ),
    (
        System::TenureHttp,
        "waits in the FIFO queue, `waitMs` on `POST /v1/leases`; each grant is a new durable lease",
    ),
    (
        System::Etcd,
        "waits in the queue of `/v3/lock/lock`, with one lease for all its grants; ordered by revision",
    ),
    (System::Redis, "polls `SET NX PX`; there is no queue"),
];

/// Longer than any row: a wait that times out fails it.
const WAIT_MS: u64 = 10 * 60 * 1_000;

pub struct HandoverMeasurement {
    /// One latency for each handover: from the moment before the release is sent to the grant of another client.
    pub handovers: RowMeasurement,
    /// Jain's index of how often each client was served, also if it followed itself.
    pub fairness: f64,
}

/// What the clients of one row share.
#[derive(Default)]
struct SharedResource {
    phase: RunPhase,
    /// When the last release was sent; 0 before the first.
    released_at: AtomicU64,
    /// Clients that have the lease at this moment.
    holders: AtomicUsize,
    /// The client that had the lease last.
    last_holder: AtomicUsize,
    last_fence: AtomicU64,
}

/// Measures one row. `label` makes its resource different from those of other rows.
pub async fn run(
    system: System,
    server: &RunningServer,
    sizes: &Sizes,
    label: &str,
) -> Result<HandoverMeasurement, BenchError> {
    let shared = Arc::new(SharedResource::default());
    let mut connections = JoinSet::new();
    for number in 0..sizes.waiters {
        let mut slot = LeaseSlot { resource: format!("{label}-handover"), ..LeaseSlot::default() };
        let connection = WaitingConnection::connect(system, server, number, sizes, &mut slot).await?;
        let client = Waiter { number, connection, slot, shared: shared.clone() };
        connections.spawn(client.run());
    }
    let measured = measure(server, &shared.phase, sizes.warm_up, sizes.measured_time, connections);
    let (handovers, served) = measured.await?;
    if handovers.latency.count() == 0 {
        return Err(BenchError::unexpected("a handover", "none in the measured time"));
    }
    Ok(HandoverMeasurement { handovers, fairness: jain_index(&served) })
}

struct Waiter {
    number: usize,
    connection: WaitingConnection,
    slot: LeaseSlot,
    shared: Arc<SharedResource>,
}

impl Waiter {
    /// Returns how often it was served in the measured time.
    async fn run(mut self) -> Result<(u64, LatencyHistogram), BenchError> {
        let (mut served, mut latency) = (0, LatencyHistogram::default());
        while !self.shared.phase.is_stopped() {
            self.connection.acquire_or_wait(&mut self.slot).await?;
            let granted = Instant::now();
            if self.shared.holders.fetch_add(1, Ordering::SeqCst) != 0 {
                return Err(BenchError::unexpected("acquire", "two holders of one resource"));
            }
            self.check_fence()?;
            let released = self.shared.released_at.load(Ordering::SeqCst);
            let last_holder = self.shared.last_holder.swap(self.number, Ordering::SeqCst);
            if self.shared.phase.is_measured() && released > 0 {
                served += 1;
                if last_holder != self.number {
                    latency.record(granted.since(Instant::from_nanos(released)));
                }
            }
            self.shared.holders.fetch_sub(1, Ordering::SeqCst);
            self.shared.released_at.store(Instant::now().as_nanos(), Ordering::SeqCst);
            self.connection.release(&mut self.slot).await?;
        }
        Ok((served, latency))
    }

    /// Fences of one resource increase with every grant; only Tenure has them here.
    fn check_fence(&self) -> Result<(), BenchError> {
        if !self.connection.has_fences() {
            return Ok(());
        }
        match self.shared.last_fence.swap(self.slot.revision, Ordering::SeqCst) {
            last if last < self.slot.revision => Ok(()),
            last => {
                Err(BenchError::unexpected("acquire", format!("fence {} after {last}", self.slot.revision)))
            }
        }
    }
}

/// A connection whose client waits for its turn.
enum WaitingConnection {
    TenureStream(TenureStream),
    TenureHttp(TenureHttp),
    Etcd { connection: Etcd, renewed: Instant },
    Redis { connection: Redis, poll_interval: Duration },
}

impl WaitingConnection {
    async fn connect(
        system: System,
        server: &RunningServer,
        number: usize,
        sizes: &Sizes,
        slot: &mut LeaseSlot,
    ) -> Result<Self, BenchError> {
        Ok(match system {
            System::TenureStream => Self::TenureStream(TenureStream::connect(server, number).await?),
            System::TenureHttp => Self::TenureHttp(TenureHttp::connect_tcp(server, number).await?),
            System::Etcd => {
                let mut connection = Etcd::connect(server).await?;
                connection.grant(slot).await?;
                Self::Etcd { connection, renewed: Instant::now() }
            }
            System::Redis => {
                let connection = Redis::connect(server, number).await?;
                Self::Redis { connection, poll_interval: sizes.poll_interval }
            }
            System::TenureSocket | System::Postgres | System::Nats | System::Zookeeper => {
                let problem = format!("handovers of {} are not measured", system.label());
                return Err(BenchError::environment(problem, "leave it out with --systems"));
            }
        })
    }

    async fn acquire_or_wait(&mut self, slot: &mut LeaseSlot) -> Result<(), BenchError> {
        match self {
            Self::TenureStream(connection) => connection.acquire_or_wait(slot, WAIT_MS).await,
            Self::TenureHttp(connection) => connection.acquire(slot, Some(WAIT_MS)).await,
            Self::Etcd { connection, renewed } => {
                if renewed.elapsed() > TTL / 3 {
                    connection.perform(Step::Renew, slot).await?;
                    *renewed = Instant::now();
                }
                connection.lock(slot).await
            }
            Self::Redis { connection, poll_interval } => {
                while !connection.try_acquire(slot).await? {
                    sleep(*poll_interval).await;
                }
                Ok(())
            }
        }
    }

    async fn release(&mut self, slot: &mut LeaseSlot) -> Result<(), BenchError> {
        let slots = std::slice::from_mut(slot);
        match self {
            Self::TenureStream(connection) => connection.perform(Step::Release, slots, &mut || ()).await,
            Self::TenureHttp(connection) => connection.perform(Step::Release, &mut slots[0]).await,
            Self::Etcd { connection, .. } => connection.unlock(&slots[0]).await,
            Self::Redis { connection, .. } => connection.perform(Step::Release, slots, &mut || ()).await,
        }
    }

    fn has_fences(&self) -> bool {
        matches!(self, Self::TenureStream(_) | Self::TenureHttp(_))
    }
}
