//! `tenure mcp`.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use tenure_client::Client;
use tokio::signal::unix::{SignalKind, signal};

use crate::client::holder_of_process;
use crate::config::variable;
use crate::exit;
use crate::failure::Failure;
use crate::mcp::{CallerDefaults, HttpSettings, PathResolver, Tools, serve, serve_stdio};

/// Offers Tenure to coding agents, as tools of the Model Context Protocol (MCP).
///
/// An agent's program starts it and speaks to it over its standard streams; docs/guides/mcp.md has what goes into the
/// configuration of each. With --listen it serves any number of agents over HTTP, under /mcp.
///
/// The tools: declare (what I am about to touch: all of it is granted, or I wait, or I come back later), heartbeat,
/// release, report (what I do and what I touched), status (what is mine), who (who has it). They tell the agent what to do
/// next. Nothing is remembered here; whatever is decided is decided by the Tenure server.
///
/// The Tenure server is found as by every command: TENURE_URL and TENURE_TOKEN, else the local socket. Over HTTP each
/// caller's own token is passed on, and a request without one is refused.
///
/// It ends when its client closes standard input, or by SIGTERM or SIGINT. Exit codes: 0 it ended so; 64 the command line
/// does not fit together; 69 it cannot listen, or what speaks to it is no client; 78 the server cannot be found.
///
/// Example: claude mcp add tenure -- tenure mcp
#[derive(Debug, Args)]
pub struct Mcp {
    /// Serve over HTTP at this address, such as 127.0.0.1:7421, instead of standard input and output
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Who asks, if a call does not say it [default: TENURE_AGENT; else, over standard streams, the process that started
    /// this]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// The session, if a call does not say it [default: TENURE_SESSION, else mcp]
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// Name files below this folder from there on, so that agents in several copies of a project meet; else by their
    /// whole paths
    #[arg(long, value_name = "FOLDER", conflicts_with = "listen")]
    root: Option<PathBuf>,
    /// What else this server is called, if a proxy passes another name on; may be repeated
    #[arg(long, value_name = "NAME", requires = "listen")]
    host: Vec<String>,
    /// Listen at an address that other machines reach. Tokens go in the clear: put a proxy with TLS in front
    #[arg(long, requires = "listen")]
    remote: bool,
    /// Let callers in without a token, with the rights of whoever starts this: every process of this machine can then be an
    /// agent
    #[arg(long, requires = "listen", conflicts_with = "remote")]
    without_token: bool,
}

impl Mcp {
    /// Serves until it is told to stop, or nobody asks any more.
    pub fn run(self) -> Result<(), Failure> {
        let client = Client::from_environment()?;
        let door = self.http_settings(&client)?;
        let tools = Tools::new(client.clone(), self.defaults()?, self.path_resolver()?);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let cannot = |error| Failure::new(exit::UNAVAILABLE, "no agent can be served", &error);
        let runtime = runtime.map_err(cannot)?;
        let done = runtime.block_on(async {
            let shutdown = shutdown_signal().map_err(cannot)?;
            match &door {
                Some(door) => serve(tools, client, door, announce, shutdown).await.map_err(cannot),
                None => tokio::select! {
                    () = shutdown => Ok(()),
                    done = serve_stdio(tools) => done.map_err(|error| Failure::from_message(exit::UNAVAILABLE, &error.to_string())),
                },
            }
        });
        // Somebody may still be reading standard input, and cannot be told to stop.
        runtime.shutdown_background();
        done
    }

    /// Who may come in over HTTP, if anybody does.
    fn http_settings(&self, client: &Client) -> Result<Option<HttpSettings>, Failure> {
        let Some(listen) = self.listen else { return Ok(None) };
        if !listen.ip().is_loopback() && !self.remote {
            return Err(Failure::from_message(
                exit::USAGE,
                "other machines reach this address, and nothing would be encrypted; nothing was started",
            )
            .with_hint("Listen at 127.0.0.1, or put a proxy with TLS in front and say --remote."));
        }
        if !client.uses_token() && !self.without_token {
            return Err(Failure::from_message(
                exit::CONFIGURATION,
                "the Tenure server is a local socket, which takes no tokens: every caller would have your rights",
            )
            .with_hint("Name the server's address with TENURE_URL=http://…, or say --without-token if that is meant."));
        }
        Ok(Some(HttpSettings { listen, hosts: self.host.clone(), allows_anonymous: self.without_token }))
    }

    fn defaults(&self) -> Result<CallerDefaults, Failure> {
        let text = |name: &'static str| match variable(name).filter(|value| !value.is_empty()) {
            Some(value) => value
                .into_string()
                .map(Some)
                .map_err(|_| Failure::from(tenure_client::SettingsError::NotText(name))),
            None => Ok(None),
        };
        let agent = match &self.agent {
            Some(agent) => Some(agent.clone()),
            None => text("TENURE_AGENT")?.or_else(|| self.listen.is_none().then(default_agent_name)),
        };
        let session = match &self.session {
            Some(session) => Some(session.clone()),
            None => text("TENURE_SESSION")?,
        };
        Ok(CallerDefaults { agent, session })
    }

    fn path_resolver(&self) -> Result<PathResolver, Failure> {
        if self.listen.is_some() {
            return Ok(PathResolver::Remote);
        }
        let folder = std::env::current_dir();
        let folder =
            folder.map_err(|error| Failure::new(exit::UNAVAILABLE, "the current folder is gone", &error))?;
        // A name that was mistyped would keep agents apart that are to meet, and nobody would notice.
        if self.root.as_ref().is_some_and(|root| !folder.join(root).is_dir()) {
            return Err(Failure::from_message(exit::USAGE, "--root names no folder; nothing was started")
                .with_hint("Name the top folder of the project: what lies below is named from there on."));
        }
        Ok(PathResolver::local(&folder, self.root.as_deref()))
    }
}

/// A name for the agent whose program started this: the same as long as that program runs.
fn default_agent_name() -> String {
    let parent = rustix::process::getppid().map(|process| process.as_raw_nonzero().get());
    let parent = parent.and_then(|parent| u32::try_from(parent).ok());
    holder_of_process(parent.unwrap_or_else(std::process::id))
}

fn announce(address: SocketAddr) {
    // Who started us may read no further than this, or not at all.
    let mut output = io::stdout();
    let _ = writeln!(output, "listening on http://{address}/mcp").and_then(|()| output.flush());
}

fn shutdown_signal() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
