//! The client: cheap to copy, and everything goes through it.

use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::background::Background;
use crate::connection::{Call, Exchange};
use crate::error::Error;

/// Speaks to one server. Copies share their connections.
#[derive(Clone)]
pub struct Client {
    exchange: Arc<Exchange>,
    background: Background,
}

impl Client {
    pub(crate) fn of(exchange: Arc<Exchange>) -> Self {
        Self { exchange, background: Background::default() }
    }

    /// Where the server is, for messages. No secret is in it.
    pub fn address(&self) -> String {
        self.exchange.address()
    }

    /// Waits until nothing goes on in the background any more: releases of guards that were dropped, and withdrawals
    /// of waits that were cancelled. A program that ends without it leaves those leases to their expiry.
    ///
    /// It waits for guards that are still held, too: give them back first. While the server is away, it takes as long
    /// as the releases are tried, which is some seconds.
    pub async fn settle(&self) {
        self.background.settle().await;
    }

    pub(crate) fn background(&self) -> &Background {
        &self.background
    }

    pub(crate) fn exchange(&self) -> &Exchange {
        &self.exchange
    }

    pub(crate) async fn ask<T: DeserializeOwned>(&self, call: &Call) -> Result<T, Error> {
        let answer = self.exchange.ask(call).await?;
        answer.read(|| self.address())
    }
}
