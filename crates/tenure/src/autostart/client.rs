//! Client for the files API of this machine's server. If no server is listening, it starts one first.

use std::time::Duration;

use tenure_api::{FileAcquireRequest, FileEventReport, FileVerdict, FilesOverview};
use tenure_client::{Client, Error};
use tenure_guard::{FilesApi, FilesResponse, RequestError};
use tokio::time::timeout;

use super::{LocalServer, start};

/// What to do where no server can be had.
pub const START_COMMAND: &str = "tenure serve --listen none";
/// What to do where there is one that does not answer.
pub const DIAGNOSE_COMMAND: &str = "tenure doctor";

pub struct AutostartClient {
    server: LocalServer,
    client: Client,
    timeout: Duration,
}

impl AutostartClient {
    /// Finds the server of this machine. Each answer may take so long, with all that has to be done for it.
    pub fn new(patience: Duration) -> Result<Self, RequestError> {
        let found = LocalServer::find().and_then(|local| local.client().map(|client| (local, client)));
        let (local, client) = found.map_err(|error| no_server(&error, START_COMMAND))?;
        Ok(Self { server: local, client, timeout: patience })
    }

    /// Whether these files may be changed.
    pub async fn acquire(&self, ask: &FileAcquireRequest) -> Result<FileVerdict, RequestError> {
        self.request_or_start(|| self.client.acquire_files(ask)).await
    }

    /// What anybody has in this folder.
    pub async fn files_below(&self, folder: &str) -> Result<FilesOverview, RequestError> {
        self.request_or_start(|| self.client.files_below(folder)).await
    }

    pub async fn send_event(&self, news: &FileEventReport) -> Result<(), RequestError> {
        self.request_or_start(|| self.client.report_file_event(news)).await
    }

    /// Asks, and once more after a server was started where there may be none.
    async fn request_or_start<T, F>(&self, request: impl Fn() -> F) -> Result<T, RequestError>
    where
        F: Future<Output = Result<T, Error>>,
    {
        self.with_timeout(async {
            match request().await {
                Err(error) if is_server_gone(&error) => {
                    self.start().await?;
                    request().await.map_err(unanswered)
                }
                other => other.map_err(unanswered),
            }
        })
        .await
    }

    async fn start(&self) -> Result<(), RequestError> {
        start(&self.server).await.map_err(|error| no_server(&error, &error.suggested_command()))
    }

    /// All of it together, also the start of a server and a second try: whoever waits can do nothing else meanwhile.
    async fn with_timeout<T>(
        &self,
        work: impl Future<Output = Result<T, RequestError>>,
    ) -> Result<T, RequestError> {
        timeout(self.timeout, work).await.unwrap_or_else(|_| {
            let seconds = self.timeout.as_secs();
            Err(no_server(
                &format!("it has said nothing for {seconds} s, so it may be stopped"),
                DIAGNOSE_COMMAND,
            ))
        })
    }
}

/// The server of this machine, for a guard.
pub fn connect(timeout: Duration) -> Result<Box<dyn FilesApi>, RequestError> {
    Ok(Box::new(AutostartClient::new(timeout)?))
}

impl FilesApi for AutostartClient {
    fn acquire<'a>(&'a self, request: &'a FileAcquireRequest) -> FilesResponse<'a, FileVerdict> {
        Box::pin(self.acquire(request))
    }

    fn files_below<'a>(&'a self, folder: &'a str) -> FilesResponse<'a, FilesOverview> {
        Box::pin(self.files_below(folder))
    }

    fn send_event<'a>(&'a self, event: &'a FileEventReport) -> FilesResponse<'a, ()> {
        Box::pin(self.send_event(event))
    }

    fn start_server(&self) -> FilesResponse<'_, ()> {
        Box::pin(self.start())
    }
}

/// Whether there may be no server any more, or it ended in the middle: to ask once more does no harm. A socket that is not
/// for us is no reason to start another server.
pub fn is_server_gone(error: &Error) -> bool {
    match error {
        Error::Unreachable { source, .. } => source.kind() != std::io::ErrorKind::PermissionDenied,
        Error::OutcomeUnknown { .. } => true,
        _ => false,
    }
}

fn unanswered(error: Error) -> RequestError {
    match error {
        Error::Problem(problem) => RequestError::Rejected(problem.detail),
        Error::Unreachable { source, .. } => no_server(&source, START_COMMAND),
        error => no_server(&error, START_COMMAND),
    }
}

fn no_server(why: &dyn std::fmt::Display, fix: &str) -> RequestError {
    RequestError::NoServer { why: why.to_string(), fix: fix.to_owned() }
}
