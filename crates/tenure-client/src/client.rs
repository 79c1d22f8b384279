//! The client: cheap to copy, and everything goes through it.

use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::http::{ApiRequest, HttpTransport};
use crate::task_tracker::TaskTracker;

/// Speaks to one server. Copies share their connections.
#[derive(Clone)]
pub struct Client {
    transport: Arc<HttpTransport>,
    tasks: TaskTracker,
}

impl Client {
    pub(crate) fn from_transport(transport: Arc<HttpTransport>) -> Self {
        Self { transport, tasks: TaskTracker::default() }
    }

    /// Where the server is, for messages. No secret is in it.
    pub fn address(&self) -> String {
        self.transport.address()
    }

    /// Waits until nothing goes on in the background any more: releases of guards that were dropped, and withdrawals
    /// of waits that were cancelled. A program that ends without it leaves those leases to their expiry.
    ///
    /// It waits for guards that are still held, too: give them back first. While the server is away, it takes as long
    /// as the releases are tried, which is some seconds.
    pub async fn drain(&self) {
        self.tasks.wait().await;
    }

    pub(crate) fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    pub(crate) fn transport(&self) -> &HttpTransport {
        &self.transport
    }

    pub(crate) async fn send<T: DeserializeOwned>(&self, call: &ApiRequest) -> Result<T, Error> {
        let answer = self.transport.send(call).await?;
        answer.read(|| self.address())
    }
}
