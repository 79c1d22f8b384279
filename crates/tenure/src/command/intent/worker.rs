//! `tenure worker`.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use tenure_client::{Client, Secret};
use tenure_worker::{ServerHandle, Settings, WorkerExit, run_worker};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::config::{LedgerLocation, variable};
use crate::exit;
use crate::failure::Failure;

/// Carries out the sessions of a server, in a process of its own, until it gets SIGTERM or SIGINT.
///
/// It takes each session with its leases, runs the command in `[intents.pipeline]` of the configuration file for it,
/// renews the leases, and gives them back when the command and all that it started are gone. There is one worker at a
/// time: another waits until the first is gone. A server that is to leave its sessions to this one has
/// `[intents] worker = false`.
///
/// It first ends what a worker before it has left behind on this machine, and then prints `worker ready`. The server is
/// found as by every command: TENURE_URL and TENURE_TOKEN, else the local socket.
///
/// Exit codes: 0 told to stop; 76 the guard was lost, so that another may be the worker, and every command was ended; 77
/// denied; 78 there is nothing to start.
///
/// Example: tenure worker --server https://tenure.example:7420
#[derive(Debug, Args)]
pub struct Worker {
    /// The server, in place of TENURE_URL: http://…, https://… or unix:PATH
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    #[command(flatten)]
    location: LedgerLocation,
}

impl Worker {
    /// Works until it is told to stop.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let configuration = self.location.configuration(None)?;
        let worker = configuration.worker.ok_or_else(|| {
            Failure::from_message(
                exit::CONFIGURATION,
                "there is nothing to start: the configuration has no `intents.pipeline.command`",
            )
        })?;
        let client = match &self.server {
            Some(url) => client_for_url(url)?,
            None => Client::from_environment()?,
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let cannot = |error| Failure::new(exit::UNAVAILABLE, "the worker cannot work", &error);
        runtime.map_err(cannot)?.block_on(run_until_signalled(client, worker.settings))
    }
}

async fn run_until_signalled(client: Client, settings: Settings) -> Result<ExitCode, Failure> {
    let cannot = |error| Failure::new(exit::UNAVAILABLE, "the worker cannot work", &error);
    let mut terminate = signal(SignalKind::terminate()).map_err(cannot)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot)?;
    let (stop, stop_signal) = watch::channel(false);
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        let _ = stop.send(true);
        // Else that it is gone would say so too; it lives as long as the process does.
        std::future::pending::<()>().await;
    });
    let ready = || {
        // Who started us may read no further than this, or not at all.
        let mut output = io::stdout();
        let _ = output.write_all(b"worker ready\n").and_then(|()| output.flush());
    };
    match run_worker(ServerHandle::Remote(client), Arc::new(settings), stop_signal, ready).await {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(WorkerExit::LeadershipLost(why)) => {
            let what = format!("the guard was lost, and every pipeline was ended: {why}");
            Err(Failure::from_message(exit::LOST, &what)
                .with_hint("Another worker may go on. Start this one again, and it waits for its turn."))
        }
        Err(WorkerExit::Rejected(problem)) => Err(tenure_client::Error::Problem(problem).into()),
        Err(WorkerExit::System(error)) => Err(cannot(error)),
    }
}

/// A server that was named, spoken to as the environment says.
fn client_for_url(url: &str) -> Result<Client, Failure> {
    let mut builder = Client::builder().url(url)?;
    let set = |name| variable(name).filter(|value| !value.is_empty());
    if let Some(token) = set("TENURE_TOKEN") {
        let token = token.into_string().map_err(|_| tenure_client::SettingsError::NotText("TENURE_TOKEN"))?;
        builder = builder.token(Secret::new(token.trim()));
    }
    if let Some(authority) = set("TENURE_CA") {
        builder = builder.certificate_authority(authority);
    }
    Ok(builder.build()?)
}
