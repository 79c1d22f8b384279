//! Many live leases of Tenure, acquired over several WebSockets.

use std::time::Duration;

use tokio::task::JoinSet;

use crate::error::BenchError;
use crate::peer::launcher::RunningServer;
use crate::peer::tenure_stream::TenureStream;
use crate::peer::{LeaseSlot, Step};

/// Commands in one frame.
pub const PER_FRAME: usize = 16;
const CONNECTIONS: usize = 8;

/// One connection and the leases that it acquired.
pub struct PoolClient {
    pub connection: TenureStream,
    pub leases: Vec<LeaseSlot>,
}

/// Whether the leases are used after they are acquired. A million of them take memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retention {
    Keep,
    Drop,
}

/// Acquires `count` leases. `ttl` says for the number of a lease how long it must live from now; the leases of a frame
/// have the TTL of the first.
pub async fn acquire(
    server: &RunningServer,
    label: &'static str,
    count: usize,
    retention: Retention,
    ttl: impl Fn(usize) -> Duration + Clone + Send + 'static,
) -> Result<Vec<PoolClient>, BenchError> {
    let share = count.div_ceil(CONNECTIONS);
    let mut acquiring = JoinSet::new();
    for number in 0..CONNECTIONS {
        let connection = TenureStream::connect(server, number).await?;
        let range = (number * share).min(count)..((number + 1) * share).min(count);
        let ttl = ttl.clone();
        acquiring.spawn(async move {
            let mut client = PoolClient { connection, leases: Vec::new() };
            let mut frame = Vec::new();
            for first in range.clone().step_by(PER_FRAME) {
                frame.clear();
                frame.extend(
                    (first..range.end.min(first + PER_FRAME)).map(|lease| LeaseSlot {
                        resource: format!("{label}-{lease}"),
                        ..LeaseSlot::default()
                    }),
                );
                client.connection.set_ttl_ms(ttl(first).as_millis());
                client.connection.perform(Step::Acquire, &mut frame, &mut || ()).await?;
                if retention == Retention::Keep {
                    client.leases.append(&mut frame);
                }
            }
            Ok::<_, BenchError>(client)
        });
    }
    let mut clients = Vec::new();
    while let Some(joined) = acquiring.join_next().await {
        let joined =
            joined.map_err(|error| BenchError::environment(error.to_string(), "report this defect"))?;
        clients.push(joined?);
    }
    Ok(clients)
}
