//! The server of this machine: whether it answers, and whether it denies.

use std::path::Path;
use std::time::Duration;

use tenure_api::{FileAsk, FileSpeaker, Files, VerdictKind};
use tenure_client::Client;
use tenure_gate::agent::Agent;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::canary::{Canaries, session};
use super::check::Check;
use super::holder::Holder;
use super::stand_in::{self, StandIn};
use crate::daemon::{BY_HAND, Local, Questions, Unanswered, listens, start};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often is looked whether sessions are gone, and how long between two looks.
const LOOKS: usize = 100;
const PAUSE: Duration = Duration::from_millis(20);

/// What the server does where somebody wants what another one has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Denies,
    /// It says so, and no more.
    Warns,
}

/// The server, asked from a thread that may wait.
pub struct Server {
    runtime: Runtime,
    client: Client,
}

impl Server {
    /// Finds it, or starts it. What is said about it, and it itself if it answers.
    pub fn reach() -> (Check, Option<Self>) {
        match Self::find() {
            Ok((server, detail)) => (Check::ok("server", detail), Some(server)),
            Err((why, fix)) => {
                let what = format!("no server answers, so hooks and the gate refuse every change: {why}");
                (Check::gap("server", what, fix), None)
            }
        }
    }

    fn find() -> Result<(Self, String), (String, String)> {
        let by_hand = |error: &dyn std::fmt::Display| (error.to_string(), BY_HAND.to_owned());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| by_hand(&error))?;
        let local = Local::find().map_err(|error| by_hand(&error))?;
        let client = local.client().map_err(|error| by_hand(&error))?;
        let was_there = listens(&local.socket);
        if !was_there {
            let started = runtime.block_on(start(&local));
            started.map_err(|error| (error.to_string(), error.fix()))?;
        }
        let server = Self { runtime, client };
        server.files().map_err(|error| by_hand(&error))?;
        let how = if was_there { "answers" } else { "was started and answers" };
        Ok((server, format!("{how} on {}", local.socket.display())))
    }

    pub fn files(&self) -> Result<Files, String> {
        self.within(self.client.files())
    }

    /// The session that has this file, if one has.
    pub fn owner(&self, path: &Path) -> Result<Option<String>, String> {
        let path = path.to_str().ok_or("the path of the working tree is not UTF-8")?;
        let found = self.within(self.client.file(path))?;
        Ok(found.file.map(|file| file.owner.session))
    }

    /// Whether somebody who wants what another one has is denied it. Two sessions of our own want one canary.
    pub fn mode(&self, canaries: &Canaries) -> (Check, Mode) {
        let name = "server.mode";
        match self.try_mode(canaries) {
            Ok(Mode::Denies) => (Check::ok(name, "a second owner is denied"), Mode::Denies),
            Ok(Mode::Warns) => {
                let what = "the server only warns: agents are told that somebody else edits a file, and may change it all the \
                            same";
                let fix = "set `mode = \"deny\"` in [files] of the configuration, and `tenure stop`";
                (Check::gap(name, what, fix), Mode::Warns)
            }
            Err(why) => {
                let what = format!("it cannot be seen whether it denies: {why}");
                (Check::gap(name, what, "tenure files"), Mode::Denies)
            }
        }
    }

    fn try_mode(&self, canaries: &Canaries) -> Result<Mode, String> {
        let path = canaries.next();
        let _holder = Holder::take(canaries, &path)?;
        let second = StandIn::start(Agent::Claude).map_err(|error| error.to_string())?;
        let text = path.to_str().ok_or("the path of the working tree is not UTF-8")?.to_owned();
        // Asked as a guard asks, which waits for nothing.
        let ask = FileAsk {
            speaker: FileSpeaker {
                agent: "guard".to_owned(),
                session: session(),
                subagent: None,
                parent: None,
                task: None,
            },
            cwd: "/".to_owned(),
            paths: vec![text],
            entries: Vec::new(),
            whole: false,
            process: Some(second.pid()),
            orphan: false,
            named: true,
        };
        let questions = Questions::new(PATIENCE).map_err(why)?;
        let verdict = self.runtime.block_on(questions.acquire(&ask)).map_err(why)?;
        match (verdict.verdict, verdict.held.is_empty()) {
            (VerdictKind::Wait | VerdictKind::Blocked, _) => Ok(Mode::Denies),
            (VerdictKind::Granted, false) => Ok(Mode::Warns),
            (VerdictKind::Granted | VerdictKind::Stale, _) => {
                Err("it gave one file to two sessions without a word".to_owned())
            }
        }
    }

    /// Waits until no session of ours is known any more. They end with their processes, which is seen at once.
    pub fn settle(&self) {
        for _ in 0..LOOKS {
            match self.files() {
                Ok(files) if files.sessions.iter().any(|session| stand_in::has_played(session.owner.pid)) => {
                }
                _ => return,
            }
            // Made inside of the runtime: outside there is no clock for it.
            self.runtime.block_on(async { tokio::time::sleep(PAUSE).await });
        }
    }

    fn within<T>(
        &self,
        question: impl Future<Output = Result<T, tenure_client::Error>>,
    ) -> Result<T, String> {
        let answer = self.runtime.block_on(async { timeout(PATIENCE, question).await });
        let answer = answer.map_err(|_| format!("no answer within {} s", PATIENCE.as_secs()))?;
        answer.map_err(|error| error.to_string())
    }
}

fn why(unanswered: Unanswered) -> String {
    match unanswered {
        Unanswered::NoServer { why, .. } => why,
        Unanswered::Refused(detail) => detail,
    }
}
