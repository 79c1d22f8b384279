//! What a worker's plan is told, and what it says.

use tenure_api::{IntentSessionLeases, IntentSessionStatus, IntentSessionView};

use crate::process_supervisor::CommandExit;

#[derive(Debug)]
pub enum WorkerInput {
    Changed(Vec<IntentSessionView>),
    /// A session is ours until then, or it is not.
    Taken(String, IntentSessionStatus, u64),
    /// A session cannot be taken, and asking again does not help.
    NotTaken(String),
    /// Its pipeline runs, as these processes.
    Started(String, String),
    /// Its pipeline could not be started.
    NotStarted(String, String),
    /// There was no time left to start it.
    TooLate(String),
    /// The server knows that it runs, or says where it is instead.
    Reported(String, IntentSessionStatus),
    /// Its pipeline is being ended, because its lease is almost over.
    Ending(String),
    /// Its pipeline and everybody whom that started are gone.
    Gone(String, CommandExit),
    /// The guard is ours until then, and each session as it says.
    Kept(u64, Vec<RenewalResult>),
    /// The server knows that it is over.
    Finished(String),
    LeadershipLost(String),
    /// The worker is told to end.
    Stop,
}

/// What became of the leases of one session.
#[derive(Debug, Clone)]
pub struct RenewalResult {
    pub session: String,
    /// Until when they are believed in; nothing: they are lost.
    pub until: Option<u64>,
    pub state: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerAction {
    /// Ask for a session with its leases.
    Take(String),
    /// Start a pipeline that may run until then.
    Start(Box<IntentSessionView>, IntentSessionLeases, u64),
    /// Tell the server which processes carry it out.
    Report(String, String),
    /// Its pipeline may run until then.
    Extend(String, u64),
    End(String),
    /// Tell the server that it is over: the reason, and more for people.
    Finish(String, &'static str, String),
    /// Renew the guard and these sessions.
    Keep(Vec<String>),
    /// End every pipeline, and do nothing else any more.
    Abandon(String),
}
