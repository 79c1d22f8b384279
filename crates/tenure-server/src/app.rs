//! What every route needs.

use std::net::SocketAddr;

use tokio::sync::watch;

use crate::clock::wall_ms;
use crate::registrar::Registrar;
use crate::tokens::{AdminToken, Now, TokenKey, TokenStore};

/// What every route needs.
pub(crate) struct App {
    pub(crate) registrar: Registrar,
    pub(crate) tokens: TokenKey,
    pub(crate) admin: AdminToken,
    /// The tokens that an admin made.
    pub(crate) given: TokenStore,
    /// Where we listen, with the real port.
    pub(crate) address: SocketAddr,
    stopping: watch::Sender<bool>,
}

impl App {
    pub(crate) fn new(
        registrar: Registrar,
        tokens: TokenKey,
        admin: AdminToken,
        given: TokenStore,
        address: SocketAddr,
    ) -> Self {
        Self { registrar, tokens, admin, given, address, stopping: watch::Sender::new(false) }
    }

    /// What the clocks say by which tokens end.
    pub(crate) fn now(&self) -> Now {
        Now { wall_ms: wall_ms(), tick: self.registrar.now() }
    }

    /// From now on `/readyz` sends callers elsewhere.
    pub(crate) fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Waits until the server is told to stop. What is open without end, a wait or a stream of events, ends then.
    pub(crate) async fn stopping(&self) {
        // An error means that the app is gone: the same.
        let _ = self.stopping.subscribe().wait_for(|stopping| *stopping).await;
    }

    /// Why requests will not be answered; nothing while they will.
    pub(crate) fn why_not_ready(&self) -> Option<&'static str> {
        if self.registrar.has_ended() {
            Some("the ledger can no longer be written; the server is ending and must be started again")
        } else if *self.stopping.borrow() {
            Some("the server is stopping")
        } else {
            None
        }
    }
}
