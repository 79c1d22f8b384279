//! What the worker asks while it works. Each request is asked until it is answered, and the plan is told the answer.

use std::sync::Arc;
use std::time::Duration;

use tenure_api::{AskChanges, Code, FinishSession, KeepSessions, SessionNow, SessionRuns, TakeSession};
use tenure_client::believed_until;
use tenure_core::kernel::Span;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{sleep, timeout};

use super::asked::{Asked, Trouble};
use super::insist::insist;
use super::settings::Settings;
use super::steps::{Act, Input, Kept};
use crate::message::tell;
use crate::watched::clock::now;

/// How long the server may wait for something to happen before it answers.
const WAIT_MS: u64 = 20_000;
/// Between two attempts at what was refused, though it should not be.
const PAUSE: Duration = Duration::from_secs(1);
/// How long a server has at least to renew leases, before it is asked again.
const LEAST_PATIENCE_MS: u64 = 500;
/// The most that people are told about the end of a session: characters.
const MOST_DETAIL: usize = 300;

/// Whom to ask, and whom to tell.
#[derive(Clone)]
pub struct Requests {
    asked: Asked,
    settings: Arc<Settings>,
    guard: u64,
    tell: UnboundedSender<Input>,
}

impl Requests {
    pub fn new(asked: Asked, settings: Arc<Settings>, guard: u64, tell: UnboundedSender<Input>) -> Self {
        Self { asked, settings, guard, tell }
    }

    pub fn asked(&self) -> &Asked {
        &self.asked
    }

    pub fn guard(&self) -> u64 {
        self.guard
    }

    /// Listens to what changes, from then on.
    pub async fn listen(self, mut since: u64) {
        loop {
            let request = AskChanges { guard: self.guard, since, wait_ms: Some(WAIT_MS) };
            match insist!("listening to sessions", self.asked.changes(&request).await) {
                Ok(changes) => {
                    since = changes.revision;
                    self.say(Input::Changed(changes.sessions));
                }
                Err(Trouble::GuardLost(why)) => return self.say(Input::GuardLost(why)),
                Err(trouble) => {
                    refused("to say which sessions changed", &trouble);
                    sleep(PAUSE).await;
                }
            }
        }
    }

    /// Asks what the plan says, and tells it what was answered.
    pub async fn make(self, act: Act) {
        let answer = match act {
            Act::Take(session) => self.take(session).await,
            Act::Report(session, process) => self.report(session, process).await,
            Act::Finish(session, reason, detail) => self.finish(session, reason, &detail).await,
            Act::Keep(sessions) => self.keep(sessions).await,
            Act::Start(..) | Act::Extend(..) | Act::End(_) | Act::GiveUp(_) => return,
        };
        self.say(answer);
    }

    async fn take(&self, session: String) -> Input {
        let request = TakeSession {
            guard: self.guard,
            session_id: session.clone(),
            tuners: self.settings.tuners,
            ttl_ms: self.settings.ttl_ms,
        };
        let mut sent;
        let answer = insist!("taking a session", {
            sent = now();
            self.asked.take(&request).await
        });
        match answer {
            Ok(answer) => {
                let valid_for = answer.taken.as_ref().map_or(0, |taken| taken.remaining_ms);
                Input::Taken(session, answer, believed_until(sent, Span::from_millis(valid_for)))
            }
            Err(Trouble::GuardLost(why)) => Input::GuardLost(why),
            Err(trouble) => {
                refused(&format!("the worker the session {session}"), &trouble);
                Input::NotTaken(session)
            }
        }
    }

    async fn report(&self, session: String, process: String) -> Input {
        let request = SessionRuns { guard: self.guard, session_id: session.clone(), process };
        match insist!("reporting a pipeline", self.asked.running(&request).await) {
            Ok(answer) => Input::Reported(session, answer),
            Err(Trouble::GuardLost(why)) => Input::GuardLost(why),
            // A session that the server does not know, or does not let run, is over.
            Err(trouble) => {
                refused(&format!("that session {session} runs"), &trouble);
                let (state, reason, outcome, taken) = ("ENDED".to_owned(), None, None, None);
                Input::Reported(session, SessionNow { state, reason, outcome, taken })
            }
        }
    }

    async fn finish(&self, session: String, reason: &str, detail: &str) -> Input {
        let detail: String = detail.chars().filter(|letter| !letter.is_control()).take(MOST_DETAIL).collect();
        let request = FinishSession {
            guard: self.guard,
            session_id: session.clone(),
            reason: reason.to_owned(),
            detail: Some(detail).filter(|detail| !detail.is_empty()),
        };
        match insist!("finishing a session", self.asked.finish(&request).await) {
            Ok(_) => {}
            Err(Trouble::GuardLost(why)) => return Input::GuardLost(why),
            Err(trouble) => refused(&format!("to finish session {session}"), &trouble),
        }
        Input::Finished(session)
    }

    /// Asked until the guard is lost, even where it is refused: nothing else can be done.
    async fn keep(&self, sessions: Vec<String>) -> Input {
        let Settings { ttl_ms, renew_every_ms, .. } = *self.settings;
        let request = KeepSessions { guard: self.guard, ttl_ms, sessions };
        let patience = Duration::from_millis(renew_every_ms.max(LEAST_PATIENCE_MS));
        let mut sent;
        loop {
            let answer = insist!("renewing leases", {
                sent = now();
                let late = |_| Err(Trouble::Passing("the server took too long".to_owned()));
                timeout(patience, self.asked.keep(&request)).await.unwrap_or_else(late)
            });
            let kept = match answer {
                Ok(kept) => kept,
                Err(Trouble::GuardLost(why)) => return Input::GuardLost(why),
                Err(trouble) => {
                    refused("to renew leases", &trouble);
                    sleep(PAUSE).await;
                    continue;
                }
            };
            let until = |remaining_ms| believed_until(sent, Span::from_millis(remaining_ms));
            let sessions = kept.sessions.into_iter().map(|kept| Kept {
                until: kept.held.then(|| until(kept.remaining_ms)),
                session: kept.session_id,
                state: kept.state,
            });
            return Input::Kept(until(kept.remaining_ms), sessions.collect());
        }
    }

    fn say(&self, input: Input) {
        // Nobody hears it: then nobody works any more.
        let _ = self.tell.send(input);
    }
}

/// Says that the server refused something. That a session is not known any more is no news.
fn refused(what: &str, trouble: &Trouble) {
    let is_unknown = matches!(trouble, Trouble::Refused(problem) if problem.code == Code::NotFound);
    if !is_unknown {
        tell(&format!("tenure: the server refuses {what}: {}\n", trouble.text()));
    }
}
