//! `tenure serve`.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use tenure_ledger::embedded::OpenError;
use tenure_registrar::shell::ServiceError;
use tenure_server::{AdminToken, RegistrarError, Server, Settings, StartError};
use tokio::signal::unix::{Signal, SignalKind, signal};
use zeroize::Zeroizing;

use crate::configuration::{Configuration, Place, variable};
use crate::exit;
use crate::failure::Failure;
use crate::message::{complain, tell};

/// Runs the lease authority until it gets SIGTERM or SIGINT.
///
/// When it is ready, it prints one line: `listening on http://ADDRESS`. Every option can also be given in the
/// environment (`TENURE_LISTEN`) or in the configuration file (`listen = "127.0.0.1:7420"`). The first start writes
/// the token for requests to `admin.token` in the data directory; `TENURE_ADMIN_TOKEN` presets another.
#[derive(Debug, Args)]
pub struct Serve {
    /// Where to listen: a loopback address [default: 127.0.0.1:7420]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    #[command(flatten)]
    place: Place,
}

impl Serve {
    /// Serves until it is told to stop.
    pub fn run(self) -> ExitCode {
        let settings = match self.settings() {
            Ok(settings) => settings,
            Err(code) => return code,
        };
        let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return cannot_serve(&error),
        };
        runtime.block_on(serve(settings))
    }

    fn settings(self) -> Result<Settings, ExitCode> {
        let configuration = self.place.configuration(self.listen).map_err(Failure::report)?;
        let Configuration { listen, data, ledger, routine } = configuration;
        let admin_token = preset_token()?;
        let settings = Settings::new(data);
        Ok(Settings { listen, ledger, routine, admin_token, ..settings })
    }
}

async fn serve(settings: Settings) -> ExitCode {
    // Before anything is begun that would have to be ended in good order.
    let signals = [SignalKind::terminate(), SignalKind::interrupt()].map(signal);
    let [Ok(mut terminate), Ok(mut interrupt)] = signals else {
        return cannot_serve(&io::Error::other("the system takes no handler for signals"));
    };
    let server = match Server::start(settings).await {
        Ok(server) => server,
        Err(error @ StartError::NotLoopback(_)) => {
            complain("will not serve", &error);
            return exit::CONFIGURATION.into();
        }
        Err(error) => {
            let code = cannot_serve(&error);
            if is_damaged(&error) {
                tell(
                    "Nothing was changed. Look at the disk; `tenure verify` says what can be read. To go on from a copy: \
                     `tenure ledger restored`.\n",
                );
            }
            return code;
        }
    };
    // Who started us may read no further than this, or not at all.
    let mut output = io::stdout();
    let _ = writeln!(output, "listening on http://{}", server.address()).and_then(|()| output.flush());
    let was_told = tokio::select! {
        () = told(&mut terminate, &mut interrupt) => true,
        () = server.ended() => false,
        () = tell_troubles(&server) => false,
    };
    match server.stop().await {
        Ok(()) if was_told => ExitCode::SUCCESS,
        Ok(()) => exit::DISK.into(),
        Err(error) => {
            complain("stopped, because the ledger could not be written", &error);
            tell(
                "What was acknowledged is in the ledger. Look at the disk, then start again: the start reads what \
                  it holds.\n",
            );
            exit::DISK.into()
        }
    }
}

/// Says on standard error what goes wrong without keeping anybody from being answered, and when it is over.
async fn tell_troubles(server: &Server) {
    let mut known = Vec::new();
    loop {
        let found = server.troubles();
        for trouble in found.iter().filter(|trouble| !known.contains(*trouble)) {
            tell(&format!("tenure: {trouble}\n"));
        }
        for trouble in known.iter().filter(|trouble| !found.contains(*trouble)) {
            tell(&format!("tenure: no longer: {trouble}\n"));
        }
        known = found;
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
}

async fn told(terminate: &mut Signal, interrupt: &mut Signal) {
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
    complain("cannot serve", error);
    exit::UNAVAILABLE.into()
}

/// The token in `TENURE_ADMIN_TOKEN`. `TENURE_TOKEN` is the clients', and never read here.
fn preset_token() -> Result<Option<AdminToken>, ExitCode> {
    let Some(token) = variable("TENURE_ADMIN_TOKEN") else { return Ok(None) };
    let token = Zeroizing::new(token.into_string().unwrap_or_default());
    AdminToken::preset(&token).map(Some).map_err(|error| {
        complain("TENURE_ADMIN_TOKEN cannot be used", &error);
        exit::CONFIGURATION.into()
    })
}
