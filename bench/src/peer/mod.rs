//! The systems that are compared: how each is started, and how a client acquires, renews and releases one lease.

pub mod etcd;
pub mod launcher;
pub mod nats;
pub mod postgres;
pub mod redis;
pub mod tenure;
pub mod tenure_stream;
pub mod zookeeper;

use std::time::Duration;

use clap::ValueEnum;
use serde::Serialize;

use crate::error::BenchError;
use crate::peer::launcher::RunningServer;

/// The TTL of every lease in the lease cycle and in the handovers.
pub const TTL: Duration = Duration::from_secs(30);

/// A server and the way in which clients talk to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum System {
    TenureStream,
    TenureSocket,
    TenureHttp,
    Etcd,
    Redis,
    Postgres,
    Nats,
    Zookeeper,
}

/// A server program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ServerKind {
    Tenure,
    Etcd,
    Redis,
    Postgres,
    Nats,
    Zookeeper,
}

impl System {
    pub const ALL: [Self; 8] = [
        Self::TenureStream,
        Self::TenureSocket,
        Self::TenureHttp,
        Self::Etcd,
        Self::Redis,
        Self::Postgres,
        Self::Nats,
        Self::Zookeeper,
    ];

    /// As tables and plots name it.
    pub fn label(self) -> &'static str {
        match self {
            Self::TenureStream => "Tenure, stream",
            Self::TenureSocket => "Tenure, local socket",
            Self::TenureHttp => "Tenure, HTTP",
            Self::Etcd => "etcd",
            Self::Redis => "Redis",
            Self::Postgres => "PostgreSQL",
            Self::Nats => "NATS KV",
            Self::Zookeeper => "ZooKeeper",
        }
    }

    pub fn server(self) -> ServerKind {
        match self {
            Self::TenureStream | Self::TenureSocket | Self::TenureHttp => ServerKind::Tenure,
            Self::Etcd => ServerKind::Etcd,
            Self::Redis => ServerKind::Redis,
            Self::Postgres => ServerKind::Postgres,
            Self::Nats => ServerKind::Nats,
            Self::Zookeeper => ServerKind::Zookeeper,
        }
    }

    pub fn is_tenure(self) -> bool {
        self.server() == ServerKind::Tenure
    }

    /// Whether its protocol takes several commands in one write.
    pub fn can_pipeline(self) -> bool {
        !matches!(self, Self::TenureSocket | Self::TenureHttp | Self::Etcd)
    }

    /// What acquire, renew and release do on the server.
    pub fn operations(self) -> &'static str {
        match self {
            Self::TenureStream => {
                "`/v1/stream`, a WebSocket with JSON: each command is decided, signed, appended to the audited ledger and \
                 synced; a grant has a fence and a queue behind it"
            }
            Self::TenureSocket => {
                "`POST /v1/leases` and the routes of a lease, HTTP/1.1 with keep-alive over the Unix socket: decided, signed, \
                 appended to the audited ledger and synced"
            }
            Self::TenureHttp => {
                "`POST /v1/leases` and the routes of a lease, HTTP/1.1 with keep-alive over TCP: decided, signed, appended \
                 to the audited ledger and synced"
            }
            Self::Etcd => {
                "JSON gateway under `/v3`, HTTP/1.1 with keep-alive: acquire is two requests, lease grant and a transaction \
                 that puts the key if it is absent; renew is a keep-alive, which etcd holds in memory and does not sync; \
                 release revokes the lease, which deletes the key; the gateway's translation to gRPC is part of the CPU time"
            }
            Self::Redis => {
                "`SET key token NX PX`; a script compares the token and runs `PEXPIRE`, or `DEL`; no signature, no queue, \
                 no fence, no history"
            }
            Self::Postgres => {
                "one table with a row per resource: `INSERT … ON CONFLICT DO UPDATE … WHERE` expired; two updates that \
                 compare the fence; each statement is a transaction of its own; no queue, no signature, no history"
            }
            Self::Nats => {
                "JetStream KV: acquire is two requests, a read of the last message and a put that expects its sequence; \
                 renew and release are puts that expect the sequence; the first two have a TTL; no queue, no signature"
            }
            Self::Zookeeper => {
                "acquire creates an ephemeral node, release deletes it; renew is a ping of the session, which is held in \
                 memory and renews everything that the session has"
            }
        }
    }
}

impl ServerKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Tenure => "Tenure",
            Self::Etcd => "etcd",
            Self::Redis => "Redis",
            Self::Postgres => "PostgreSQL",
            Self::Nats => "NATS",
            Self::Zookeeper => "ZooKeeper",
        }
    }
}

/// One operation of the lease cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Acquire,
    Renew,
    Release,
}

impl Step {
    pub const CYCLE: [Self; 3] = [Self::Acquire, Self::Renew, Self::Release];

    pub fn name(self) -> &'static str {
        match self {
            Self::Acquire => "acquire",
            Self::Renew => "renew",
            Self::Release => "release",
        }
    }
}

/// One lease of a connection: what it is on, and what the server returned for renewal and release.
#[derive(Debug, Default, Clone)]
pub struct LeaseSlot {
    /// Letters, digits and hyphens, so that every system takes it as part of a key.
    pub resource: String,
    /// The server's id of the lease.
    pub id: String,
    /// What proves the right to renew and release.
    pub proof: String,
    /// The fence, or the revision of the key.
    pub revision: u64,
}

/// A connection of a client to one of the systems.
pub enum LeaseConnection {
    TenureHttp(tenure::TenureHttp),
    TenureStream(tenure_stream::TenureStream),
    Etcd(etcd::Etcd),
    Redis(redis::Redis),
    Postgres(postgres::Postgres),
    Nats(nats::Nats),
    Zookeeper(zookeeper::Zookeeper),
}

impl LeaseConnection {
    /// Connects as the client with this number; numbers are unique while a server runs.
    pub async fn connect(system: System, server: &RunningServer, number: usize) -> Result<Self, BenchError> {
        Ok(match system {
            System::TenureStream => {
                Self::TenureStream(tenure_stream::TenureStream::connect(server, number).await?)
            }
            System::TenureSocket => {
                Self::TenureHttp(tenure::TenureHttp::connect_local(server, number).await?)
            }
            System::TenureHttp => Self::TenureHttp(tenure::TenureHttp::connect_tcp(server, number).await?),
            System::Etcd => Self::Etcd(etcd::Etcd::connect(server).await?),
            System::Redis => Self::Redis(redis::Redis::connect(server, number).await?),
            System::Postgres => Self::Postgres(postgres::Postgres::connect(server, number).await?),
            System::Nats => Self::Nats(nats::Nats::connect(server, number).await?),
            System::Zookeeper => Self::Zookeeper(zookeeper::Zookeeper::connect(server).await?),
        })
    }

    /// Performs the same step for every slot: all commands in one write, where the protocol can. Calls `completed` as
    /// soon as each response is there and is what it must be. Anything else is an error.
    pub async fn perform(
        &mut self,
        step: Step,
        slots: &mut [LeaseSlot],
        completed: &mut (impl FnMut() + Send),
    ) -> Result<(), BenchError> {
        match self {
            Self::TenureHttp(connection) => {
                for slot in slots {
                    connection.perform(step, slot).await?;
                    completed();
                }
                Ok(())
            }
            Self::Etcd(connection) => {
                for slot in slots {
                    connection.perform(step, slot).await?;
                    completed();
                }
                Ok(())
            }
            Self::TenureStream(connection) => connection.perform(step, slots, completed).await,
            Self::Redis(connection) => connection.perform(step, slots, completed).await,
            Self::Postgres(connection) => connection.perform(step, slots, completed).await,
            Self::Nats(connection) => connection.perform(step, slots, completed).await,
            Self::Zookeeper(connection) => connection.perform(step, slots, completed).await,
        }
    }
}
