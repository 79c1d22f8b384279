//! Requests about files, of hooks and of users.

use serde_json::Value;
use tenure_api::{
    Blame, BlockerReport, BlockerReportList, CommitReport, CommitResult, FileAcquireRequest, FileEventReport,
    FileForceReleaseRequest, FileGiveRequest, FileStatus, FileVerdict, FileView, FilesOverview,
    StagedFilesRequest,
};

use crate::client::Client;
use crate::error::Error;
use crate::http::{ApiRequest, Idempotency, PathAndQuery};

const FILES: &str = "/v1/files";
const REPORTS: &str = "/v1/files/reports";

impl Client {
    /// Whether an agent may change these files. The same asked again at its time is the one retry.
    pub async fn acquire_files(&self, request: &FileAcquireRequest) -> Result<FileVerdict, Error> {
        self.send(
            &ApiRequest::post("/v1/files/acquire".into(), request, Idempotency::Idempotent).with_list_limit(),
        )
        .await
    }

    /// Says what was heard from an agent.
    pub async fn report_file_event(&self, event: &FileEventReport) -> Result<(), Error> {
        let call =
            ApiRequest::post("/v1/files/events".into(), event, Idempotency::Idempotent).with_list_limit();
        self.send::<Value>(&call).await.map(drop)
    }

    /// Says what was committed.
    pub async fn report_commit(&self, commit: &CommitReport) -> Result<CommitResult, Error> {
        self.send(
            &ApiRequest::post("/v1/files/commit".into(), commit, Idempotency::Idempotent).with_list_limit(),
        )
        .await
    }

    /// Whether somebody else has what is about to be committed.
    pub async fn check_staged_files(&self, staged: &StagedFilesRequest) -> Result<CommitResult, Error> {
        self.send(
            &ApiRequest::post("/v1/files/staged".into(), staged, Idempotency::Idempotent).with_list_limit(),
        )
        .await
    }

    /// Everything that somebody has, and everybody who lives.
    pub async fn files(&self) -> Result<FilesOverview, Error> {
        self.send(&ApiRequest::get(FILES.into()).with_list_limit()).await
    }

    /// What somebody has in this folder, by its real path; who lives is not said.
    pub async fn files_below(&self, folder: &str) -> Result<FilesOverview, Error> {
        let query = PathAndQuery::path(FILES, &[]).with("below", Some(folder)).into_text();
        self.send(&ApiRequest::get(query).with_list_limit()).await
    }

    /// Who has a file, if anybody has.
    pub async fn file(&self, path: &str) -> Result<FileStatus, Error> {
        let query = PathAndQuery::path(FILES, &["one"]).with("path", Some(path)).into_text();
        self.send(&ApiRequest::get(query).with_list_limit()).await
    }

    /// Which session wrote which line of a file.
    pub async fn blame(&self, path: &str) -> Result<Blame, Error> {
        let query = PathAndQuery::path(FILES, &["blame"]).with("path", Some(path)).into_text();
        self.send(&ApiRequest::get(query).with_list_limit()).await
    }

    /// Hands a file to a session. For people.
    pub async fn give_file(&self, request: &FileGiveRequest) -> Result<FileView, Error> {
        self.send(&ApiRequest::post("/v1/files/give".into(), request, Idempotency::Idempotent)).await
    }

    /// Takes a file from whoever has it. For people. Says who had it.
    pub async fn force_release_file(&self, request: &FileForceReleaseRequest) -> Result<FileView, Error> {
        self.send(&ApiRequest::post("/v1/files/force-release".into(), request, Idempotency::NonIdempotent))
            .await
    }

    /// Every report that is remembered, the oldest first.
    pub async fn blocker_reports(&self) -> Result<Vec<BlockerReport>, Error> {
        let answer = self.send::<BlockerReportList>(&ApiRequest::get(REPORTS.into()).with_list_limit()).await;
        answer.map(|answer| answer.reports)
    }

    /// One report.
    pub async fn blocker_report(&self, id: &str) -> Result<BlockerReport, Error> {
        self.send(&ApiRequest::get(PathAndQuery::path(REPORTS, &[id]).into_text())).await
    }

    /// Lets a blocked session go on: it gets its file, if that is free. For people.
    pub async fn resume_blocked_session(&self, id: &str) -> Result<BlockerReport, Error> {
        let path = PathAndQuery::path(REPORTS, &[id, "resume"]).into_text();
        self.send(&ApiRequest::post(path, &Value::Object(Default::default()), Idempotency::Idempotent)).await
    }

    /// Stops the server. For people of this machine.
    pub async fn stop_server(&self) -> Result<(), Error> {
        let call = ApiRequest::post(
            "/v1/stop".into(),
            &Value::Object(Default::default()),
            Idempotency::NonIdempotent,
        );
        self.send::<Value>(&call).await.map(drop)
    }
}
