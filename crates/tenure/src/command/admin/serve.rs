//! `tenure serve`.

use std::ffi::OsString;
use std::io;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tenure_host::stderr::{print_error, print_stderr};
use tenure_ledger::OpenError;
use tenure_registrar::runtime::ServiceError;
use tenure_server::{AdminToken, RegistrarError, Server, Settings, StartError};
use tenure_worker::EmbeddedWorker;
use tokio::signal::unix::{Signal, SignalKind, signal};
use zeroize::Zeroizing;

use crate::autostart::write;
use crate::client::with_local_client;
use crate::config::{
    Configuration, LedgerLocation, ListenAddress, NO_SECRET, NetworkSettings, WorkerConfiguration,
    intent_secrets, variable,
};
use crate::exit;
use crate::failure::Failure;
use crate::output::write_text;

/// Runs the lease authority until it gets SIGTERM or SIGINT.
///
/// When it is ready, it prints `listening on http://ADDRESS`, then where the local socket is. Every option can also
/// be given in the environment (`TENURE_LISTEN`) or in the configuration file (`listen = "127.0.0.1:7420"`). The first
/// start writes the token for requests to `admin.token` in the data directory; `TENURE_ADMIN_TOKEN` presets another.
/// SIGHUP reads the certificate of `[tls]` and `[intents] api_leases` again. `XG2G_IDEM_SECRET` or `TENURE_IDEM_SECRET` is what
/// the keys of intents are made with.
/// SIGHUP reads the certificate of `[tls]` again. With a command in `[intents.pipeline]` it also carries out sessions,
/// unless `[intents] worker = false` leaves that to `tenure worker`.
#[derive(Debug, Args)]
pub struct Serve {
    /// Where to listen: a loopback address, or any with `[tls]`, or none [default: 127.0.0.1:7420]
    #[arg(long, value_name = "ADDRESS|none")]
    listen: Option<ListenAddress>,
    /// The socket for users of this machine [default: tenure/tenure.sock in the XDG runtime directory]
    #[arg(long, value_name = "PATH|none")]
    socket: Option<PathBuf>,
    /// A device to put the control lease in front of, in place of the built-in one: http://HOST or http://HOST:PORT
    #[arg(long, value_name = "URL")]
    device: Option<OsString>,
    #[command(flatten)]
    location: LedgerLocation,
}

impl Serve {
    /// Serves until it is told to stop.
    pub fn run(self) -> ExitCode {
        let place = self.location.clone();
        let (settings, worker) = match self.settings() {
            Ok(settings) => settings,
            Err(code) => return code,
        };
        let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return cannot_serve(&error),
        };
        runtime.block_on(serve(settings, worker, &place))
    }

    fn settings(self) -> Result<(Settings, Option<WorkerConfiguration>), ExitCode> {
        let listen = self.listen.map(|listen| ("listen", listen.to_string().into()));
        let socket = self.socket.map(|socket| ("socket", socket.into_os_string()));
        let device = self.device.map(|device| ("control.device", device));
        let flags = listen.into_iter().chain(socket).chain(device);
        let configuration = self.location.configuration(flags).map_err(Failure::report)?;
        let Configuration {
            network: reach,
            data,
            ledger,
            routine,
            pools,
            control,
            intents,
            agents,
            files,
            worker,
        } = configuration;
        let NetworkSettings { listen, socket, tls, hosts, limits } = reach;
        let admin_token = preset_token()?;
        let intent_secrets = intent_secrets(variable).map_err(|error| {
            print_error("the secret of intents cannot be used", &error);
            ExitCode::from(exit::CONFIGURATION)
        })?;
        let settings = Settings {
            listen,
            socket,
            tls,
            hosts,
            limits,
            data,
            ledger: Arc::new(ledger),
            maintenance: routine,
            pools,
            control,
            intents,
            agents,
            files,
            intent_secrets,
            admin_token,
        };
        Ok((settings, worker))
    }
}

async fn serve(settings: Settings, worker: Option<WorkerConfiguration>, place: &LedgerLocation) -> ExitCode {
    // Before anything is begun that would have to be ended in good order.
    let signals = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()].map(signal);
    let [Ok(mut terminate), Ok(mut interrupt), Ok(mut hangup)] = signals else {
        return cannot_serve(&io::Error::other("the system takes no handler for signals"));
    };
    let has_secret = settings.intent_secrets.is_some();
    let data = settings.data.clone();
    let server = match Server::start(settings).await {
        Ok(server) => server,
        Err(error @ (StartError::NotLoopback(_) | StartError::Nowhere | StartError::Tls(_))) => {
            print_error("will not serve", &error);
            return exit::CONFIGURATION.into();
        }
        Err(error) => {
            let code = cannot_serve(&error);
            if is_damaged(&error) {
                print_stderr(
                    "Nothing was changed. Look at the disk; `tenure verify` says what can be read. To go on from a copy: \
                     `tenure ledger restored`.\n",
                );
            }
            return code;
        }
    };
    if let Some(socket) = server.socket().filter(|_| !place.has_data_directory()) {
        // Who looks in the usual place finds it without.
        let _ = write(&data, socket);
    }
    print_addresses(&server);
    if !has_secret {
        print_stderr(NO_SECRET);
    }
    let worker = worker
        .filter(|worker| worker.is_in_server)
        .map(|worker| EmbeddedWorker::start(&server, worker.settings));
    let was_signalled = tokio::select! {
        () = shutdown_signal(&mut terminate, &mut interrupt) => true,
        () = server.wait_for_stop_request() => true,
        () = server.wait_until_ended() => false,
        () = report_background_health(&server) => false,
        () = reload_on_hangup(&server, place, &mut hangup) => false,
    };
    if let Some(worker) = worker {
        worker.stop().await;
    }
    match server.stop().await {
        Ok(()) if was_signalled => ExitCode::SUCCESS,
        Ok(()) => exit::DISK.into(),
        Err(error) => {
            print_error("stopped, because the ledger could not be written", &error);
            print_stderr(
                "What was acknowledged is in the ledger. Look at the disk, then start again: the start reads what \
                  it holds.\n",
            );
            exit::DISK.into()
        }
    }
}

/// Says where the server can be reached: on standard output, and what is missing on standard error.
fn print_addresses(server: &Server) {
    let socket = server.socket().map(|path| path.display());
    let text = match (server.url(), socket) {
        (Some(url), Some(path)) => format!("listening on {url}\nlocal socket at {path}\n"),
        (Some(url), None) => format!("listening on {url}\n"),
        (None, Some(path)) => format!("listening on unix:{path}\n"),
        (None, None) => String::new(),
    };
    // Who started us may read no further than this, or not at all.
    let mut output = io::stdout();
    let _ = output.write_all(text.as_bytes()).and_then(|()| output.flush());
    if let Some(error) = server.socket_bind_failure() {
        print_error("there is no local socket", error);
    }
}

/// Reads the certificate, and whether the API takes leases, again whenever somebody says so with SIGHUP.
async fn reload_on_hangup(server: &Server, place: &LedgerLocation, hangup: &mut Signal) {
    while hangup.recv().await.is_some() {
        match server.reload_tls() {
            Ok(()) => print_stderr("tenure: the certificate was read again\n"),
            Err(error) => print_error("the certificate stays as it was", &error),
        }
        match place.read_api_leases_from_file() {
            Ok(Some(on)) => {
                server.set_api_leases(on);
                print_stderr(&format!(
                    "tenure: `[intents] api_leases` was read again: it is {on} from the next intent on\n"
                ));
            }
            Ok(None) => print_stderr(
                "tenure: the configuration file says nothing about `[intents] api_leases`: it stays\n",
            ),
            Err(error) => print_error("`[intents] api_leases` stays as it was", &error),
        }
    }
    std::future::pending().await
}

/// Says on standard error what goes wrong without keeping anybody from being answered, and when it is over.
async fn report_background_health(server: &Server) {
    let mut known = Vec::new();
    loop {
        let found = server.warnings();
        for problem in found.iter().filter(|problem| !known.contains(*problem)) {
            print_stderr(&format!("tenure: {problem}\n"));
        }
        for problem in known.iter().filter(|problem| !found.contains(*problem)) {
            print_stderr(&format!("tenure: no longer: {problem}\n"));
        }
        known = found;
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
}

async fn shutdown_signal(terminate: &mut Signal, interrupt: &mut Signal) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

/// Whether the ledger's bytes are not what was written.
fn is_damaged(error: &StartError) -> bool {
    let StartError::Registrar(RegistrarError::Service(ServiceError::Open(error))) = error else {
        return false;
    };
    matches!(error, OpenError::Damaged(_))
}

fn cannot_serve(error: &dyn std::error::Error) -> ExitCode {
    print_error("cannot serve", error);
    exit::UNAVAILABLE.into()
}

/// The token in `TENURE_ADMIN_TOKEN`. `TENURE_TOKEN` is the clients', and never read here.
fn preset_token() -> Result<Option<AdminToken>, ExitCode> {
    let Some(token) = variable("TENURE_ADMIN_TOKEN") else { return Ok(None) };
    let token = Zeroizing::new(token.into_string().unwrap_or_default());
    AdminToken::from_configuration(&token).map(Some).map_err(|error| {
        print_error("TENURE_ADMIN_TOKEN cannot be used", &error);
        exit::CONFIGURATION.into()
    })
}

/// Stops the server of this machine in good order, as SIGTERM does.
///
/// Leases stay in the ledger, and the next hook of an agent starts the server again; until then no agent can change a file.
/// Only for people: it is refused to whatever an agent started.
///
/// Example: tenure stop
#[derive(Debug, Args)]
pub struct Stop {}

impl Stop {
    /// Tells it.
    pub fn run(self) -> Result<(), Failure> {
        with_local_client(async |client| client.stop_server().await)?;
        write_text("The server stops.\n")?;
        Ok(())
    }
}
