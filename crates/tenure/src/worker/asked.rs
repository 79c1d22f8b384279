//! Whom the worker asks: the server that it is part of, or one elsewhere. Both answer alike.

use tenure_api::{
    AskChanges, Changes, Code, FinishSession, Guarded, KeepSessions, KeptSessions, LeaveGuard, Problem,
    SessionNow, SessionRuns, TakeGuard, TakeSession, WipeSessions, WipedSessions,
};
use tenure_client::{Client, Error};
use tenure_server::Office;

/// Who is asked.
#[derive(Clone)]
pub enum Asked {
    /// This very process.
    Here(Office),
    /// A server.
    There(Client),
}

/// Why there is no answer. The variants differ by what the worker does next.
#[derive(Debug)]
pub enum Trouble {
    /// Nobody answers, or not now: ask again.
    Passing(String),
    /// The guard is somebody else's, or nobody's: end everything.
    GuardLost(String),
    /// Somebody has it.
    Held(Box<Problem>),
    /// Asking again would lead to the same.
    Refused(Box<Problem>),
}

/// One method for each request: its name here and in the office, and in the client.
macro_rules! requests {
    ($($(#[$documentation:meta])* $name:ident = $remote:ident($request:ty) -> $answer:ty;)*) => {
        impl Asked {
            $($(#[$documentation])*
            pub async fn $name(&self, request: &$request) -> Result<$answer, Trouble> {
                match self {
                    Self::Here(office) => office.$name(request).await.map_err(of_problem),
                    Self::There(client) => client.$remote(request).await.map_err(of_error),
                }
            })*
        }
    };
}

requests! {
    /// Be the one worker, or stay it.
    guard = worker_guard(TakeGuard) -> Guarded;
    /// Which sessions changed.
    changes = worker_changes(AskChanges) -> Changes;
    /// A session with its leases.
    take = worker_take(TakeSession) -> SessionNow;
    /// Its pipeline runs.
    running = worker_running(SessionRuns) -> SessionNow;
    /// Its pipeline is gone.
    finish = worker_finish(FinishSession) -> SessionNow;
    /// The worker lives, and so do these sessions.
    keep = worker_keep(KeepSessions) -> KeptSessions;
    /// The processes of these sessions were seen gone.
    wipe = worker_wipe(WipeSessions) -> WipedSessions;
    /// The worker ends.
    leave = worker_leave(LeaveGuard) -> ();
}

impl Trouble {
    /// For people.
    pub fn text(&self) -> String {
        match self {
            Self::Passing(text) | Self::GuardLost(text) => text.clone(),
            Self::Held(problem) | Self::Refused(problem) => {
                format!("{} ({})", problem.detail, problem.code.as_str())
            }
        }
    }
}

fn of_error(error: Error) -> Trouble {
    match error {
        Error::Problem(problem) => of_problem(problem),
        other => Trouble::Passing(other.to_string()),
    }
}

fn of_problem(problem: Box<Problem>) -> Trouble {
    match problem.code {
        Code::GuardLost => Trouble::GuardLost(problem.detail),
        Code::Held => Trouble::Held(problem),
        code if code.is_retryable() => {
            Trouble::Passing(format!("{} ({})", problem.detail, problem.code.as_str()))
        }
        _ => Trouble::Refused(problem),
    }
}
