//! A server behind a network that can be cut, and clients on both sides of it.

use std::time::Duration;

use tenure_client::{AcquireRequest, Client, Lease, LeaseFilter, LeaseState, Secret};
use tenure_server::Settings;

use crate::proxy::Proxy;
use crate::server::TestServer;
use crate::wait::eventually;

/// A server, and the way to it.
pub struct ProxiedServer {
    pub server: TestServer,
    pub proxy: Proxy,
}

impl ProxiedServer {
    pub async fn new() -> Self {
        let server = TestServer::start_async(tempfile::tempdir().unwrap(), pools).await.unwrap();
        let proxy = Proxy::start(server.address).await;
        Self { server, proxy }
    }

    /// A client whose network can be cut.
    pub fn proxied_client(&self) -> Client {
        self.client_for_url(&format!("http://{}", self.proxy.address))
    }

    /// A client that always gets through.
    pub fn direct_client(&self) -> Client {
        self.client_for_url(&format!("http://{}", self.server.address))
    }

    pub fn client_for_url(&self, url: &str) -> Client {
        Client::builder().url(url).unwrap().token(Secret::new(&self.server.token)).build().unwrap()
    }

    pub async fn stop(&mut self) {
        self.server.stop_async().await;
    }

    /// On the same address, with what the last one wrote.
    pub async fn restart(&mut self) {
        self.server.restart_async(pools).await;
    }

    /// Every lease on `resource` that there ever was.
    pub async fn leases_on(&self, resource: &str) -> Vec<Lease> {
        let mut all = Vec::new();
        for state in [LeaseState::Active, LeaseState::Expired, LeaseState::Released] {
            let filter =
                LeaseFilter { resource: Some(resource.into()), state: Some(state), ..LeaseFilter::default() };
            all.extend(self.direct_client().list(&filter).await.unwrap().leases);
        }
        all
    }

    /// How many wait behind the holder of this lease.
    pub async fn wait_for_waiters(&self, lease: &str, count: usize) {
        let neighbour = self.direct_client();
        eventually(|| async {
            let waiters = neighbour.show(lease).await.unwrap().recall;
            waiters.map_or(0, |waiters| waiters.waiting) == count
        })
        .await;
    }
}

fn pools(settings: &mut Settings) {
    settings.pools.add("tuner", ["left", "right"]).unwrap();
}

/// A request for `resource`.
pub fn acquire_request(resource: &str, holder: &str, ttl_ms: u64) -> AcquireRequest {
    AcquireRequest::new(resource, holder, Duration::from_millis(ttl_ms))
}
