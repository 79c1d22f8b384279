//! The server of this machine, as a guard asks it about files.

use std::pin::Pin;
use std::time::Duration;

use tenure_api::{FileAcquireRequest, FileEventReport, FileVerdict, FilesOverview};

#[derive(Debug)]
pub enum RequestError {
    NoServer {
        why: String,
        fix: String,
    },
    /// The server says itself what is wrong.
    Rejected(String),
}

pub type FilesResponse<'a, T> = Pin<Box<dyn Future<Output = Result<T, RequestError>> + Send + 'a>>;

/// The requests of a guard. Where no server listens, each starts one first: how is known to the program alone.
pub trait FilesApi: Send + Sync {
    fn acquire<'a>(&'a self, request: &'a FileAcquireRequest) -> FilesResponse<'a, FileVerdict>;
    fn files_below<'a>(&'a self, folder: &'a str) -> FilesResponse<'a, FilesOverview>;
    fn send_event<'a>(&'a self, event: &'a FileEventReport) -> FilesResponse<'a, ()>;
    fn start_server(&self) -> FilesResponse<'_, ()>;
}

/// Finds the server of this machine; each answer may take so long.
pub type ConnectFilesApi = fn(Duration) -> Result<Box<dyn FilesApi>, RequestError>;
