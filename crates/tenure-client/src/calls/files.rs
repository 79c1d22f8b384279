//! What hooks of coding agents ask about files, and what people do.

use serde_json::Value;
use tenure_api::{
    Blame, BlockerReport, BlockerReports, CommitNote, FileAsk, FileCommit, FileForce, FileGive, FileNews,
    FileStaged, FileVerdict, FileView, Files, OneFile,
};

use crate::client::Client;
use crate::connection::{Call, Query, Repeat};
use crate::error::Error;

const FILES: &str = "/v1/files";
const REPORTS: &str = "/v1/files/reports";

impl Client {
    /// Whether an agent may change these files. The same asked again at its time is the one retry.
    pub async fn acquire_files(&self, ask: &FileAsk) -> Result<FileVerdict, Error> {
        self.ask(&Call::post("/v1/files/acquire".into(), ask, Repeat::Harmless).for_a_list()).await
    }

    /// Says what was heard from an agent.
    pub async fn tell_files(&self, news: &FileNews) -> Result<(), Error> {
        let call = Call::post("/v1/files/events".into(), news, Repeat::Harmless).for_a_list();
        self.ask::<Value>(&call).await.map(drop)
    }

    /// Says what was committed.
    pub async fn commit_files(&self, commit: &FileCommit) -> Result<CommitNote, Error> {
        self.ask(&Call::post("/v1/files/commit".into(), commit, Repeat::Harmless).for_a_list()).await
    }

    /// Whether somebody else has what is about to be committed.
    pub async fn staged_files(&self, staged: &FileStaged) -> Result<CommitNote, Error> {
        self.ask(&Call::post("/v1/files/staged".into(), staged, Repeat::Harmless).for_a_list()).await
    }

    /// Everything that somebody has, and everybody who lives.
    pub async fn files(&self) -> Result<Files, Error> {
        self.ask(&Call::get(FILES.into()).for_a_list()).await
    }

    /// What somebody has in this folder, by its real path; who lives is not said.
    pub async fn files_below(&self, folder: &str) -> Result<Files, Error> {
        let query = Query::path(FILES, &[]).with("below", Some(folder)).into_text();
        self.ask(&Call::get(query).for_a_list()).await
    }

    /// Who has a file, if anybody has.
    pub async fn file(&self, path: &str) -> Result<OneFile, Error> {
        let query = Query::path(FILES, &["one"]).with("path", Some(path)).into_text();
        self.ask(&Call::get(query).for_a_list()).await
    }

    /// Which session wrote which line of a file.
    pub async fn blame(&self, path: &str) -> Result<Blame, Error> {
        let query = Query::path(FILES, &["blame"]).with("path", Some(path)).into_text();
        self.ask(&Call::get(query).for_a_list()).await
    }

    /// Hands a file to a session. For people.
    pub async fn give_file(&self, give: &FileGive) -> Result<FileView, Error> {
        self.ask(&Call::post("/v1/files/give".into(), give, Repeat::Harmless)).await
    }

    /// Takes a file from whoever has it. For people. Says who had it.
    pub async fn force_release_file(&self, force: &FileForce) -> Result<FileView, Error> {
        self.ask(&Call::post("/v1/files/force-release".into(), force, Repeat::Never)).await
    }

    /// Every report that is remembered, the oldest first.
    pub async fn blocker_reports(&self) -> Result<Vec<BlockerReport>, Error> {
        let answer = self.ask::<BlockerReports>(&Call::get(REPORTS.into()).for_a_list()).await;
        answer.map(|answer| answer.reports)
    }

    /// One report.
    pub async fn blocker_report(&self, id: &str) -> Result<BlockerReport, Error> {
        self.ask(&Call::get(Query::path(REPORTS, &[id]).into_text())).await
    }

    /// Lets a blocked session go on: it gets its file, if that is free. For people.
    pub async fn resume_report(&self, id: &str) -> Result<BlockerReport, Error> {
        let path = Query::path(REPORTS, &[id, "resume"]).into_text();
        self.ask(&Call::post(path, &Value::Object(Default::default()), Repeat::Harmless)).await
    }

    /// Stops the server. For people of this machine.
    pub async fn stop_server(&self) -> Result<(), Error> {
        let call = Call::post("/v1/stop".into(), &Value::Object(Default::default()), Repeat::Never);
        self.ask::<Value>(&call).await.map(drop)
    }
}
