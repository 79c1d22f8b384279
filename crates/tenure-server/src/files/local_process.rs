//! Which process asks. The system says it, so that nobody can be somebody else.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use tenure_api::Code;
use tenure_core::kernel::ProcessId;
use tenure_gate::process;

use crate::app::App;
use crate::http::accept::Peer;
use crate::http::response::HttpError;

/// A process of this machine that asks over the local socket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LocalProcess {
    pub(super) pid: u32,
}

impl<S: Send + Sync> FromRequestParts<S> for LocalProcess {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, HttpError> {
        match parts.extensions.get::<Peer>() {
            Some(Peer::Local { pid: Some(pid), .. }) => Ok(Self { pid: *pid }),
            _ => Err(HttpError::new(
                Code::LocalOnly,
                "files are for processes of the machine that they are on; ask over the local socket, without TENURE_URL",
            )),
        }
    }
}

impl LocalProcess {
    /// Refuses what only a person may do to whoever is, or was started by, a coding agent that is known here. Else an agent
    /// that was denied would open the gate by itself.
    pub(crate) fn require_human(self, app: &App) -> Result<(), HttpError> {
        let agents: Vec<ProcessId> = app
            .registrar
            .read(|state| state.file_sessions().filter_map(|session| session.process.id()).collect());
        if agents.is_empty() {
            return Ok(());
        }
        // Who cannot be looked at is not taken for a person: an agent could send its question and be gone.
        let own = process::of(self.pid).map_err(|_| unseen())?;
        let line: Vec<ProcessId> = std::iter::once(own).chain(process::ancestors(self.pid)).collect();
        let is_agent = line.iter().any(|process| agents.iter().any(|agent| agent.is_same(process)));
        if !is_agent {
            return Ok(());
        }
        Err(HttpError::new(
            Code::AgentForbidden,
            "this was asked by a process of a coding agent; only a person may give files away, release them by force, let a \
             blocked session go on, or stop the server: run the command in a terminal of your own",
        ))
    }
}

fn unseen() -> HttpError {
    HttpError::new(
        Code::AgentForbidden,
        "the process that asked has ended, or is in a pid namespace that cannot be seen from here, so nobody knows whether a \
         coding agent started it; only a person may do this: run the command in a terminal of your own, on this machine",
    )
}
