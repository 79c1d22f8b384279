//! The server of this machine: whether it answers, and whether it denies.

use std::path::Path;
use std::time::Duration;

use tenure_api::{FileAcquireRequest, FileCaller, FileVerdictKind, FilesOverview};
use tenure_client::Client;
use tenure_guard::RequestError;
use tenure_host::coding_agent::CodingAgent;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::canary::{Canaries, CanaryHolder, new_session_name};
use super::check::Check;
use super::fake_agent::{self, FakeAgent};
use crate::autostart::{AutostartClient, LocalServer, START_COMMAND, is_listening, start};

/// How long an answer may take.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);
/// How often is looked whether sessions are gone, and how long between two looks.
const MAX_POLLS: usize = 100;
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// What the server does where somebody wants what another one has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnforcementMode {
    Deny,
    /// It says so, and no more.
    Warn,
}

/// The server, asked from a thread that may wait.
pub struct ServerProbe {
    runtime: Runtime,
    client: Client,
}

impl ServerProbe {
    /// Finds it, or starts it. What is said about it, and it itself if it answers.
    pub fn connect_or_start() -> (Check, Option<Self>) {
        match Self::find() {
            Ok((server, detail)) => (Check::ok("server", detail), Some(server)),
            Err((why, fix)) => {
                let what = format!("no server answers, so hooks and the gate refuse every change: {why}");
                (Check::gap("server", what, fix), None)
            }
        }
    }

    fn find() -> Result<(Self, String), (String, String)> {
        let with_start_command =
            |error: &dyn std::fmt::Display| (error.to_string(), START_COMMAND.to_owned());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| with_start_command(&error))?;
        let local = LocalServer::find().map_err(|error| with_start_command(&error))?;
        let client = local.client().map_err(|error| with_start_command(&error))?;
        let was_there = is_listening(&local.socket);
        if !was_there {
            let started = runtime.block_on(start(&local));
            started.map_err(|error| (error.to_string(), error.suggested_command()))?;
        }
        let server = Self { runtime, client };
        server.files().map_err(|error| with_start_command(&error))?;
        let how = if was_there { "answers" } else { "was started and answers" };
        Ok((server, format!("{how} on {}", local.socket.display())))
    }

    pub fn files(&self) -> Result<FilesOverview, String> {
        self.block_on_with_timeout(self.client.files())
    }

    /// The session that has this file, if one has.
    pub fn file_owner(&self, path: &Path) -> Result<Option<String>, String> {
        let path = path.to_str().ok_or("the path of the working tree is not UTF-8")?;
        let found = self.block_on_with_timeout(self.client.file(path))?;
        Ok(found.file.map(|file| file.owner.session))
    }

    /// Whether somebody who wants what another one has is denied it. Two sessions of our own want one canary.
    pub fn check_mode(&self, canaries: &Canaries) -> (Check, EnforcementMode) {
        let name = "server.mode";
        match self.try_mode(canaries) {
            Ok(EnforcementMode::Deny) => (Check::ok(name, "a second owner is denied"), EnforcementMode::Deny),
            Ok(EnforcementMode::Warn) => {
                let what = "the server only warns: agents are told that somebody else edits a file, and may change it all the \
                            same";
                let fix = "set `mode = \"deny\"` in [files] of the configuration, and `tenure stop`";
                (Check::gap(name, what, fix), EnforcementMode::Warn)
            }
            Err(why) => {
                let what = format!("it cannot be seen whether it denies: {why}");
                (Check::gap(name, what, "tenure files"), EnforcementMode::Deny)
            }
        }
    }

    fn try_mode(&self, canaries: &Canaries) -> Result<EnforcementMode, String> {
        let path = canaries.next();
        let _holder = CanaryHolder::acquire(canaries, &path)?;
        let second = FakeAgent::start(CodingAgent::Claude).map_err(|error| error.to_string())?;
        let text = path.to_str().ok_or("the path of the working tree is not UTF-8")?.to_owned();
        // Asked as a guard asks, which waits for nothing.
        let ask = FileAcquireRequest {
            speaker: FileCaller {
                agent: "guard".to_owned(),
                session: new_session_name(),
                ..FileCaller::default()
            },
            cwd: "/".to_owned(),
            paths: vec![text],
            entries: Vec::new(),
            whole: false,
            process: Some(second.pid()),
            orphan: false,
            named: true,
        };
        let questions = AutostartClient::new(RESPONSE_TIMEOUT).map_err(why)?;
        let verdict = self.runtime.block_on(questions.acquire(&ask)).map_err(why)?;
        match (verdict.verdict, verdict.held.is_empty()) {
            (FileVerdictKind::Wait | FileVerdictKind::Blocked, _) => Ok(EnforcementMode::Deny),
            (FileVerdictKind::Granted, false) => Ok(EnforcementMode::Warn),
            (FileVerdictKind::Granted | FileVerdictKind::Stale, _) => {
                Err("it gave one file to two sessions without a word".to_owned())
            }
        }
    }

    /// Waits until no session of ours is known any more. They end with their processes, which is seen at once.
    pub fn wait_until_sessions_end(&self) {
        for _ in 0..MAX_POLLS {
            match self.files() {
                Ok(files)
                    if files.sessions.iter().any(|session| fake_agent::is_fake_agent(session.owner.pid)) => {}
                _ => return,
            }
            // Made inside of the runtime: outside there is no clock for it.
            self.runtime.block_on(async { tokio::time::sleep(POLL_INTERVAL).await });
        }
    }

    fn block_on_with_timeout<T>(
        &self,
        request: impl Future<Output = Result<T, tenure_client::Error>>,
    ) -> Result<T, String> {
        let answer = self.runtime.block_on(async { timeout(RESPONSE_TIMEOUT, request).await });
        let answer = answer.map_err(|_| format!("no answer within {} s", RESPONSE_TIMEOUT.as_secs()))?;
        answer.map_err(|error| error.to_string())
    }
}

fn why(unanswered: RequestError) -> String {
    match unanswered {
        RequestError::NoServer { why, .. } => why,
        RequestError::Rejected(detail) => detail,
    }
}
