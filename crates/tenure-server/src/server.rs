//! Starts and stops everything in the right order.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tenure_ledger::embedded::Options;
use tenure_registrar::shell::Routine;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::app::App;
use crate::clock::wall_ms;
use crate::http;
use crate::registrar::{Registrar, RegistrarEnd, RegistrarError};
use crate::secret_file::SecretFileError;
use crate::tokens::{AdminToken, Now, TokenFileError, TokenKey, TokenStore};

/// What a server needs to know.
pub struct Settings {
    /// Where to listen; port 0 is any that is free.
    pub listen: SocketAddr,
    /// Where the ledger and the secrets are.
    pub data: PathBuf,
    /// How the ledger is kept.
    pub ledger: Options,
    /// What is done beside its writer, and when.
    pub routine: Routine,
    /// The admin token, where it was preset; else the one in the data directory counts.
    pub admin_token: Option<AdminToken>,
}

impl Settings {
    /// Any free port on this machine, with the ledger in `data`.
    pub fn new(data: impl Into<PathBuf>) -> Self {
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let (ledger, routine) = (Options::default(), Routine::default());
        Self { listen, data: data.into(), ledger, routine, admin_token: None }
    }
}

/// Why a server does not start. Each says what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// Without TLS, tokens would go over the network in the clear.
    #[error(
        "{0} can be reached from other machines, and this version has no TLS: tokens would go over the network in \
         the clear; listen on a loopback address such as 127.0.0.1:7420, behind a proxy that has TLS if others \
         must reach it"
    )]
    NotLoopback(SocketAddr),
    /// The address is taken, or not ours.
    #[error("cannot listen on {address}; stop what listens there, or choose another --listen")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The ledger does not open, or does not add up.
    #[error(transparent)]
    Registrar(#[from] RegistrarError),
    /// A file with a secret is not as it should be.
    #[error(transparent)]
    Secret(#[from] SecretFileError),
    /// Nobody knows which tokens are good.
    #[error(transparent)]
    Tokens(#[from] TokenFileError),
}

/// Why a server did not end in good order. What was acknowledged is in the ledger all the same.
#[derive(Debug, Error)]
#[error("the ledger's writer did not end in good order")]
pub struct StopError(#[from] RegistrarEnd);

/// A running server.
pub struct Server {
    app: Arc<App>,
    stop: oneshot::Sender<()>,
    accepting: JoinHandle<()>,
}

impl Server {
    /// Starts. When this returns, requests are answered.
    pub async fn start(settings: Settings) -> Result<Self, StartError> {
        let Settings { listen, data, ledger, routine, admin_token } = settings;
        if !listen.ip().is_loopback() {
            return Err(StartError::NotLoopback(listen));
        }
        // First, because it changes nothing: a second server finds the address taken before it touches the ledger.
        let failed = |source| StartError::Listen { address: listen, source };
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let open = move || {
            // The ledger first: with it comes the directory, and the lock under which the secrets are made.
            let registrar = Registrar::open(&data, ledger, routine)?;
            let tokens = TokenKey::open(&data)?;
            let admin = admin_token.map_or_else(|| AdminToken::open(&data), Ok)?;
            let now = Now { wall_ms: wall_ms(), tick: registrar.now() };
            let given = TokenStore::open(&data, now)?;
            Ok::<_, StartError>(App::new(registrar, tokens, admin, given, address))
        };
        let opened = tokio::task::spawn_blocking(open).await;
        let app = Arc::new(opened.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))?);
        let (stop, stopped) = oneshot::channel();
        let router = http::router(app.clone());
        let accepting = tokio::spawn(http::accept::serve(listener, router, stopped));
        Ok(Self { app, stop, accepting })
    }

    /// Where it listens, with the real port.
    pub fn address(&self) -> SocketAddr {
        self.app.address
    }

    /// Waits until the server cannot answer any more, though nobody stopped it: the disk failed.
    /// [`Self::stop`] then says what happened.
    pub async fn ended(&self) {
        self.app.registrar.ended().await;
    }

    /// What went wrong without keeping anybody from being answered, for people: to be looked at.
    pub fn troubles(&self) -> Vec<String> {
        self.app.registrar.troubles()
    }

    /// Takes no more connections, answers what was asked, and closes the ledger, all within 10 s.
    pub async fn stop(self) -> Result<(), StopError> {
        self.app.stop();
        let _ = self.stop.send(());
        let _ = self.accepting.await;
        let app = self.app;
        let stopped = tokio::task::spawn_blocking(move || app.registrar.stop()).await;
        Ok(stopped.unwrap_or(Err(RegistrarEnd::Panicked))?)
    }
}
