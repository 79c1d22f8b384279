//! Starts and stops everything in the right order.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenure_ledger::LedgerStore;
use tenure_registrar::runtime::MaintenanceOptions;
use thiserror::Error;
use tokio::net::{TcpListener, UnixListener};
use tokio::task::JoinHandle;

use crate::agents::AgentSettings;
use crate::app::{Apis, App, Secrets};
use crate::control::{ControlApi, ControlSettings, DeviceStoreError};
use crate::engine::{RegistrarError, RegistrarHandle, RegistrarShutdownError};
use crate::files::{self, FileSettings, FilesApi};
use crate::http::{self, HostNames};
use crate::intents::{IntentSecrets, IntentSettings, WorkerApi};
use crate::leases::resource_pools::ResourcePools;
use crate::net::local_socket::{LocalSocket, LocalSocketError, LocalSocketSettings};
use crate::net::tls::{ReloadableTls, TlsError, TlsFiles};
use crate::net::{self, ConnectionLimits, Listeners};
use crate::secret_file::SecretFileError;
use crate::tokens;
use crate::tokens::{AdminToken, LeaseTokenKey, TokenClockReading, TokenFileError, TokenStore};

/// What a server needs to know.
pub struct Settings {
    /// Where to listen on the network; port 0 is any that is free.
    pub listen: Option<SocketAddr>,
    /// The certificate for that. Without one, only this machine can be listened to.
    pub tls: Option<TlsFiles>,
    /// What else this server is called, beside its addresses and what its certificate says: what `Host` may say.
    pub hosts: Vec<String>,
    /// Where to listen for users of this machine.
    pub socket: Option<LocalSocketSettings>,
    /// How many connections there may be, and for how long.
    pub limits: ConnectionLimits,
    /// Where the secrets are.
    pub data: PathBuf,
    pub ledger: Arc<dyn LedgerStore>,
    /// What is done beside its writer, and when.
    pub maintenance: MaintenanceOptions,
    /// Names for any one of several resources.
    pub pools: ResourcePools,
    pub control: ControlSettings,
    /// Intents, and who may send them.
    pub intents: IntentSettings,
    /// Agents, and how long they may have something.
    pub agents: AgentSettings,
    /// Files, and how long somebody waits for one.
    pub files: FileSettings,
    /// What the keys of intents are made with; nothing is a secret of this process alone.
    pub intent_secrets: Option<IntentSecrets>,
    /// The admin token, where it was preset; else the one in the data directory counts.
    pub admin_token: Option<AdminToken>,
}

impl Settings {
    /// Any free port on this machine and no local socket, with the secrets in `data`.
    pub fn new(data: impl Into<PathBuf>, ledger: Arc<dyn LedgerStore>) -> Self {
        Self {
            listen: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
            tls: None,
            hosts: Vec::new(),
            socket: None,
            limits: ConnectionLimits::default(),
            data: data.into(),
            ledger,
            maintenance: MaintenanceOptions::default(),
            pools: ResourcePools::default(),
            control: ControlSettings::default(),
            intents: IntentSettings::default(),
            agents: AgentSettings::default(),
            files: FileSettings::default(),
            intent_secrets: None,
            admin_token: None,
        }
    }
}

/// Why a server does not start. Each says what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// Without TLS, tokens would go over the network in the clear.
    #[error(
        "{0} can be reached from other machines, and there is no TLS: tokens would go over the network in the clear; \
         configure `[tls] certificate` and `[tls] key`, or listen on a loopback address such as 127.0.0.1:7420"
    )]
    NotLoopback(SocketAddr),
    /// Neither on the network nor on the machine.
    #[error(
        "nobody could reach this server: it would listen neither on an address nor on a socket; leave out one of \
             --listen none and --socket none"
    )]
    Nowhere,
    /// The certificate or its key cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Socket(#[from] LocalSocketError),
    /// The address is taken, or not ours.
    #[error("cannot listen on {address}; stop what listens there, or choose another --listen")]
    Listen {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    /// The ledger does not open, or does not add up.
    #[error(transparent)]
    Registrar(#[from] RegistrarError),
    /// A file with a secret is not as it should be.
    #[error(transparent)]
    Secret(#[from] SecretFileError),
    /// What the device keeps cannot be read.
    #[error(transparent)]
    Device(#[from] DeviceStoreError),
    /// Nobody knows which tokens are good.
    #[error(transparent)]
    Tokens(#[from] TokenFileError),
}

/// Why a server did not end in good order. What was acknowledged is in the ledger all the same.
#[derive(Debug, Error)]
#[error("the ledger's writer did not end in good order")]
pub struct StopError(#[from] RegistrarShutdownError);

pub struct Server {
    app: Arc<App>,
    address: Option<SocketAddr>,
    tls: Option<Arc<ReloadableTls>>,
    socket: Option<LocalSocket>,
    socket_bind_failure: Option<LocalSocketError>,
    accepting: JoinHandle<()>,
}

impl Server {
    /// Starts. When this returns, requests are answered.
    pub async fn start(settings: Settings) -> Result<Self, StartError> {
        let Settings {
            listen, tls, hosts, socket: place, limits, data, ledger, maintenance: routine, ..
        } = settings;
        let (pools, control, admin_token) = (settings.pools, settings.control, settings.admin_token);
        let (intents, intent_secrets, agents) = (settings.intents, settings.intent_secrets, settings.agents);
        let file_settings = settings.files;
        if listen.is_none() && place.is_none() {
            return Err(StartError::Nowhere);
        }
        if let Some(address) = listen.filter(|address| !address.ip().is_loopback() && tls.is_none()) {
            return Err(StartError::NotLoopback(address));
        }
        let tls = tls.map(ReloadableTls::open).transpose()?.map(Arc::new);
        // First, because it changes nothing: a second server finds the address taken before it touches the ledger.
        let bound = match listen {
            Some(address) => Some(bind(address).await?),
            None => None,
        };
        let (network, address) = bound.unzip();
        let names = address.map(|address| HostNames::new(address, &hosts, tls.clone()));
        let users = place.as_ref().map(|place| place.users.clone()).unwrap_or_default();
        let open = move || {
            // The ledger first: with it comes the directory, and the lock under which the secrets are made.
            let registrar =
                RegistrarHandle::open(&data, &*ledger, routine, file_settings.limits(agents.limits()))?;
            let tokens = LeaseTokenKey::open(&data)?;
            let admin = admin_token.map_or_else(|| AdminToken::open(&data), Ok)?;
            let api_tokens = TokenStore::open(&data, TokenClockReading::read())?;
            let control = ControlApi::open(&control, &data, &registrar)?;
            let intent_secrets = intent_secrets.map_or_else(IntentSecrets::random, Ok)?;
            let secrets = Secrets { token_key: tokens, admin, api_tokens, intents: intent_secrets };
            let files = FilesApi::open(file_settings, &data);
            let apis = Apis { pools, control, intents, agents, files };
            Ok::<_, StartError>(App::new(registrar, secrets, names, users, apis))
        };
        let opened = tokio::task::spawn_blocking(open).await;
        let app = Arc::new(opened.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))?);
        // Before anybody is answered: whoever waits for what a revoked token held gets it first.
        tokens::finish_revoking(&app).await;
        app.control.start(&app.registrar).await;
        files::liveness::start(&app).await;
        files::audit::start(&app);
        tokio::spawn(files::idle_release::run(app.clone()));
        tokio::spawn(files::idle_shutdown::run(app.clone()));
        let (socket, local, no_socket) = listen_locally(place.as_ref(), network.is_some())?;
        let listeners = Listeners { network, tls: tls.clone(), local };
        let (metrics, stop) = (app.metrics.clone(), app.stop_signal());
        let serving = net::serve(listeners, http::router(app.clone()), limits, metrics, stop);
        let accepting = tokio::spawn(serving);
        Ok(Self { app, address, tls, socket, socket_bind_failure: no_socket, accepting })
    }

    /// Where it listens on the network, with the real port.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Where it listens on the network, as a client is told it: `http://…` or `https://…`.
    pub fn url(&self) -> Option<String> {
        let scheme = self.app.host_names.as_ref()?.scheme();
        Some(format!("{scheme}://{}", self.address?))
    }

    pub fn socket(&self) -> Option<&Path> {
        self.socket.as_ref().map(|socket| socket.path.as_path())
    }

    /// Why there is no local socket, though one was wished for.
    pub fn socket_bind_failure(&self) -> Option<&LocalSocketError> {
        self.socket_bind_failure.as_ref()
    }

    /// Reads the certificate and its key again. If they cannot be used, what was in use still is.
    pub fn reload_tls(&self) -> Result<(), TlsError> {
        self.tls.as_ref().map_or(Ok(()), |tls| tls.reload())
    }

    /// Whether an intent takes the lease of its target when it is accepted, from the next one on. Nothing else changes:
    /// what was accepted stays, and whoever waits goes on waiting.
    pub fn set_api_leases(&self, on: bool) {
        self.app.intents.set_api_leases(on);
    }

    /// Where a worker in this process asks.
    pub fn worker_api(&self) -> WorkerApi {
        WorkerApi::new(self.app.clone())
    }

    /// Waits until the server cannot answer any more, though nobody stopped it: the disk failed.
    /// [`Self::stop`] then says what happened.
    pub async fn wait_until_ended(&self) {
        self.app.registrar.wait_until_ended().await;
    }

    /// What its parts are tested with.
    #[cfg(test)]
    pub(crate) fn app(&self) -> &Arc<App> {
        &self.app
    }

    /// Waits until somebody of this machine wants the server to stop, or nobody needs it any more.
    pub async fn wait_for_stop_request(&self) {
        self.app.files.idle_shutdown.wait_for_request().await;
    }

    /// What went wrong without keeping anybody from being answered, for people: to be looked at.
    pub fn warnings(&self) -> Vec<String> {
        self.app.registrar.warnings().into_iter().chain(self.app.control.warnings()).collect()
    }

    /// Takes no more connections, answers what was asked, and closes the ledger, all within 10 s.
    pub async fn stop(self) -> Result<(), StopError> {
        self.app.stop();
        // Whoever looks for it now goes elsewhere.
        drop(self.socket);
        let _ = self.accepting.await;
        self.app.control.stop().await;
        let app = self.app;
        let stopped = tokio::task::spawn_blocking(move || app.registrar.stop()).await;
        Ok(stopped.unwrap_or(Err(RegistrarShutdownError::Panicked))?)
    }
}

async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let failed = |source| StartError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

type LocalListener = (Option<LocalSocket>, Option<UnixListener>, Option<LocalSocketError>);

/// Listens on the local socket. Where nobody chose it and there is another way in, it can be done without.
fn listen_locally(
    place: Option<&LocalSocketSettings>,
    is_on_network: bool,
) -> Result<LocalListener, LocalSocketError> {
    let Some(place) = place else { return Ok((None, None, None)) };
    match LocalSocket::listen(place) {
        Ok((socket, listener)) => Ok((Some(socket), Some(listener), None)),
        Err(error) if !place.is_explicit && is_on_network => Ok((None, None, Some(error))),
        Err(error) => Err(error),
    }
}
