//! Asks the server of this machine about files. Where nobody listens, it is started first.

use std::time::Duration;

use tenure_api::{FileAsk, FileNews, FileVerdict, Files};
use tenure_client::{Client, Error};
use tokio::time::timeout;

use super::{Local, start};

/// What to do where no server can be had.
pub const BY_HAND: &str = "tenure serve --listen none";

/// Whoever asks.
pub struct Questions {
    local: Local,
    client: Client,
    patience: Duration,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Unanswered {
    /// Nobody can be asked.
    NoServer {
        /// What is wrong.
        why: String,
        /// The one command that helps.
        fix: String,
    },
    /// The server says itself what is wrong.
    Refused(String),
}

impl Questions {
    /// Finds the server of this machine. Each answer may take so long.
    pub fn new(patience: Duration) -> Result<Self, Unanswered> {
        let found = Local::find().and_then(|local| local.client().map(|client| (local, client)));
        let (local, client) = found.map_err(|error| no_server(&error, BY_HAND))?;
        Ok(Self { local, client, patience })
    }

    /// Where it is looked for.
    pub fn local(&self) -> &Local {
        &self.local
    }

    /// Whether these files may be changed.
    pub async fn acquire(&self, ask: &FileAsk) -> Result<FileVerdict, Unanswered> {
        match self.try_once(ask).await {
            Err(error) if may_be_gone(&error) => {
                start(&self.local).await.map_err(|error| no_server(&error, &error.fix()))?;
                self.try_once(ask).await
            }
            other => other,
        }
        .map_err(unanswered)
    }

    /// Everything that anybody has.
    pub async fn files(&self) -> Result<Files, Unanswered> {
        let ask = async || {
            let asked = timeout(self.patience, self.client.files()).await;
            asked.unwrap_or_else(|_| Err(self.late()))
        };
        match ask().await {
            Err(error) if may_be_gone(&error) => {
                start(&self.local).await.map_err(|error| no_server(&error, &error.fix()))?;
                ask().await
            }
            other => other,
        }
        .map_err(unanswered)
    }

    /// Says something.
    pub async fn tell(&self, news: &FileNews) -> Result<(), Unanswered> {
        match timeout(self.patience, self.client.tell_files(news)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(Error::Problem(problem))) => return Err(Unanswered::Refused(problem.detail)),
            Ok(Err(_)) | Err(_) => {}
        }
        start(&self.local).await.map_err(|error| no_server(&error, &error.fix()))?;
        let told = timeout(self.patience, self.client.tell_files(news)).await;
        told.is_ok_and(|told| told.is_ok()).then_some(()).ok_or_else(|| no_server(&"nobody answers", BY_HAND))
    }

    async fn try_once(&self, ask: &FileAsk) -> Result<FileVerdict, Error> {
        let asked = timeout(self.patience, self.client.acquire_files(ask)).await;
        asked.unwrap_or_else(|_| Err(self.late()))
    }

    fn late(&self) -> Error {
        let source = format!("no answer within {} s", self.patience.as_secs()).into();
        Error::Unknown { address: self.client.address(), source }
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
