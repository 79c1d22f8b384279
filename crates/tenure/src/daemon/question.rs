//! Asks the server of this machine about files. Where nobody listens, it is started first.

use std::time::Duration;

use tenure_api::{FileAsk, FileNews, FileVerdict, Files};
use tenure_client::{Client, Error};
use tokio::time::timeout;

use super::{Local, start};

/// What to do where no server can be had.
pub const BY_HAND: &str = "tenure serve --listen none";
/// What to do where there is one that does not answer.
pub const LOOK: &str = "tenure doctor";

pub struct Questions {
    local: Local,
    client: Client,
    patience: Duration,
}

#[derive(Debug)]
pub enum Unanswered {
    NoServer {
        why: String,
        fix: String,
    },
    /// The server says itself what is wrong.
    Refused(String),
}

impl Questions {
    /// Finds the server of this machine. Each answer may take so long, with all that has to be done for it.
    pub fn new(patience: Duration) -> Result<Self, Unanswered> {
        let found = Local::find().and_then(|local| local.client().map(|client| (local, client)));
        let (local, client) = found.map_err(|error| no_server(&error, BY_HAND))?;
        Ok(Self { local, client, patience })
    }

    pub fn local(&self) -> &Local {
        &self.local
    }

    /// Whether these files may be changed.
    pub async fn acquire(&self, ask: &FileAsk) -> Result<FileVerdict, Unanswered> {
        self.ask(|| self.client.acquire_files(ask)).await
    }

    /// What anybody has in this folder.
    pub async fn files_below(&self, folder: &str) -> Result<Files, Unanswered> {
        self.ask(|| self.client.files_below(folder)).await
    }

    pub async fn tell(&self, news: &FileNews) -> Result<(), Unanswered> {
        self.ask(|| self.client.tell_files(news)).await
    }

    /// Asks, and once more after a server was started where there may be none.
    async fn ask<T, F>(&self, request: impl Fn() -> F) -> Result<T, Unanswered>
    where
        F: Future<Output = Result<T, Error>>,
    {
        self.in_time(async {
            match request().await {
                Err(error) if may_be_gone(&error) => {
                    self.start().await?;
                    request().await.map_err(unanswered)
                }
                other => other.map_err(unanswered),
            }
        })
        .await
    }

    async fn start(&self) -> Result<(), Unanswered> {
        start(&self.local).await.map_err(|error| no_server(&error, &error.fix()))
    }

    /// All of it together, also the start of a server and a second try: whoever waits can do nothing else meanwhile.
    async fn in_time<T>(&self, asked: impl Future<Output = Result<T, Unanswered>>) -> Result<T, Unanswered> {
        timeout(self.patience, asked).await.unwrap_or_else(|_| {
            let seconds = self.patience.as_secs();
            Err(no_server(&format!("it has said nothing for {seconds} s, so it may be stopped"), LOOK))
        })
    }
}

/// Whether there may be no server any more, or it ended in the middle: to ask once more does no harm. A socket that is not
/// for us is no reason to start another server.
pub fn may_be_gone(error: &Error) -> bool {
    match error {
        Error::Unreachable { source, .. } => source.kind() != std::io::ErrorKind::PermissionDenied,
        Error::Unknown { .. } => true,
        _ => false,
    }
}

fn unanswered(error: Error) -> Unanswered {
    match error {
        Error::Problem(problem) => Unanswered::Refused(problem.detail),
        Error::Unreachable { source, .. } => no_server(&source, BY_HAND),
        error => no_server(&error, BY_HAND),
    }
}

fn no_server(why: &dyn std::fmt::Display, fix: &str) -> Unanswered {
    Unanswered::NoServer { why: why.to_string(), fix: fix.to_owned() }
}
