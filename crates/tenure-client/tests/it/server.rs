//! The real server in a folder of its own, behind a network that can be cut.

use std::future::{Future, IntoFuture};
use std::net::SocketAddr;
use std::time::Duration;

use tempfile::TempDir;
use tenure_client::{Acquire, Client, Filter, Lease, LeaseState, Secret};
use tenure_server::{Server, Settings};

use crate::proxy::Proxy;

/// A server, and the way to it.
pub struct World {
    folder: TempDir,
    server: Option<Server>,
    pub address: SocketAddr,
    pub proxy: Proxy,
    pub token: String,
}

impl World {
    pub async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let server = start(&folder, any).await;
        let address = server.address().expect("it listens");
        let token = std::fs::read_to_string(folder.path().join("data/admin.token")).unwrap();
        let proxy = Proxy::start(address).await;
        Self { folder, server: Some(server), address, proxy, token: token.trim_end().to_owned() }
    }

    /// A client whose network can be cut.
    pub fn client(&self) -> Client {
        self.client_of(&format!("http://{}", self.proxy.address))
    }

    /// A client that always gets through.
    pub fn neighbour(&self) -> Client {
        self.client_of(&format!("http://{}", self.address))
    }

    pub fn client_of(&self, url: &str) -> Client {
        Client::builder().url(url).unwrap().token(Secret::new(&self.token)).build().unwrap()
    }

    pub async fn stop(&mut self) {
        self.server.take().unwrap().stop().await.unwrap();
    }

    /// On the same address, with what the last one wrote.
    pub async fn start_again(&mut self) {
        self.server = Some(start(&self.folder, self.address).await);
    }

    /// Every lease on `resource` that there ever was.
    pub async fn leases_on(&self, resource: &str) -> Vec<Lease> {
        let mut all = Vec::new();
        for state in [LeaseState::Active, LeaseState::Expired, LeaseState::Released] {
            let filter = Filter { resource: Some(resource.into()), state: Some(state), ..Filter::default() };
            all.extend(self.neighbour().list(&filter).await.unwrap().leases);
        }
        all
    }

    /// How many wait behind the holder of this lease.
    pub async fn wait_for_waiters(&self, lease: &str, count: usize) {
        let neighbour = self.neighbour();
        eventually(|| async {
            let recall = neighbour.show(lease).await.unwrap().recall;
            recall.map_or(0, |recall| recall.waiting) == count
        })
        .await;
    }
}

async fn start(folder: &TempDir, listen: SocketAddr) -> Server {
    let mut settings = Settings::new(folder.path().join("data"));
    settings.listen = Some(listen);
    settings.pools.add("tuner", ["left", "right"]).unwrap();
    settings.ledger.segment_size = 1 << 16;
    settings.ledger.reserve = 1 << 16;
    settings.ledger.witness = Some(folder.path().join("witness"));
    Server::start(settings).await.unwrap()
}

/// A wish for `resource`.
pub fn wish(resource: &str, holder: &str, ttl_ms: u64) -> Acquire {
    Acquire::new(resource, holder, Duration::from_millis(ttl_ms))
}

/// Waits until it is so, which nobody announces.
pub async fn eventually<F: Future<Output = bool>>(is_so: impl Fn() -> F) {
    let asked = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    in_time(asked).await;
}

/// Ends what hangs; judges no speed.
pub async fn in_time<T>(awaited: impl IntoFuture<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), awaited).await.expect("it hangs")
}
