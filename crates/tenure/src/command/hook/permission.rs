//! Asks whether an agent may change files, and waits for the one retry where somebody else has them.

use std::path::PathBuf;
use std::time::Duration;

use tenure_api::{Code, FileAsk, FileEventKind, FileVerdict, VerdictKind};
use tenure_client::{Error, boot_microseconds as now};
use tenure_gate::agent::Agent;
use tenure_gate::coverage::guarded;
use tenure_gate::hooks::wording;
use tenure_gate::hooks::{Heard, Patience, Verdict, runs_a_command};
use tokio::time::timeout;

use super::agent::denial;
use super::shells::{self, Shell};
use super::speaker::{news, wish};
use super::waiting::{Wait, Woken, unless_told};
use super::words;
use crate::daemon::{BY_HAND, LOOK, Local, Questions, Unanswered, may_be_gone, start};
use crate::message::tell;

/// How long an answer may take. Twice that and the start of a server, after the payload and [`LONGEST_WAIT`], stay below the
/// 240 s that hooks are given.
const PATIENCE: Duration = Duration::from_secs(12);
/// The longest that a hook waits in all, in microseconds. A second file of the call may be due later than the first.
const LONGEST_WAIT: u64 = 200_000_000;

pub async fn ask(agent: Agent, heard: &Heard, paths: &[PathBuf], whole: bool) -> Verdict {
    unless_told(asked(agent, heard, paths, whole)).await
}

async fn asked(agent: Agent, heard: &Heard, paths: &[PathBuf], whole: bool) -> Verdict {
    let Ok(wish) = wish(agent, heard, paths, whole) else {
        return denial("a path or the working folder is not UTF-8");
    };
    let asking = match Asking::new(agent, wish) {
        Ok(asking) => asking,
        Err(verdict) => return verdict,
    };
    // A command that has a patch in it does more than the patch.
    if runs_a_command(agent, heard)
        && let denied @ Verdict::Deny { .. } = told_of(agent, heard).await
    {
        return denied;
    }
    match asking.once().await {
        Ok(verdict) if verdict.verdict != VerdictKind::Wait => words::settled(&verdict, &asking.wish),
        Ok(verdict) if heard.patience == Patience::Brief => words::come_back(&verdict, &asking.wish),
        Ok(verdict) => asking.wait(verdict).await,
        Err(verdict) => verdict,
    }
}

/// Whether a tool may run that names no file which it changes. It may; but while nobody can be asked, what it does to files
/// would be seen by nobody.
pub async fn call(agent: Agent, heard: &Heard) -> Verdict {
    unless_told(told_of(agent, heard)).await
}

async fn told_of(agent: Agent, heard: &Heard) -> Verdict {
    let shell = if runs_a_command(agent, heard) { shells::of(agent) } else { Shell::Asks };
    if let Shell::Gone(shell) = shell {
        let reason = wording::shell_is_gone(&shell.to_string_lossy(), agent.as_str());
        return Verdict::Deny { reason, stop: false };
    }
    let Ok(mut news) = news(agent, heard) else { return Verdict::Noted };
    if shell == Shell::DoesNotAsk {
        news.event = FileEventKind::Unguarded;
    }
    let found = Local::find().and_then(|local| local.client().map(|client| (local, client)));
    let (local, client) = match found {
        Ok(found) => found,
        Err(error) => return nobody_answers(&error.to_string(), BY_HAND),
    };
    let mut told = timeout(PATIENCE, client.tell_files(&news)).await;
    if matches!(&told, Ok(Err(error)) if may_be_gone(error)) {
        if let Err(error) = start(&local).await {
            return nobody_answers(&error.to_string(), &error.fix());
        }
        told = timeout(PATIENCE, client.tell_files(&news)).await;
    }
    match told {
        Ok(Err(Error::Problem(problem))) if problem.code == Code::Unguarded => {
            Verdict::Deny { reason: wording::unguarded(guarded(agent)), stop: false }
        }
        Ok(Err(error @ Error::Unreachable { .. })) => nobody_answers(&error.to_string(), BY_HAND),
        Err(_) => nobody_answers("it says nothing, so it may be stopped", LOOK),
        _ => Verdict::Noted,
    }
}

/// One call of a tool that is about to change files.
struct Asking {
    agent: Agent,
    wish: FileAsk,
    questions: Questions,
    begun: u64,
}

impl Asking {
    fn new(agent: Agent, wish: FileAsk) -> Result<Self, Verdict> {
        let questions = Questions::new(PATIENCE).map_err(unanswered)?;
        Ok(Self { agent, wish, questions, begun: now() })
    }

    async fn once(&self) -> Result<FileVerdict, Verdict> {
        self.questions.acquire(&self.wish).await.map_err(unanswered)
    }

    /// Waits until the one retry is due, and makes it. It is not woken earlier: a file that becomes free meanwhile is
    /// anybody's.
    async fn wait(&self, mut verdict: FileVerdict) -> Verdict {
        let wait = Wait::begin(self.agent);
        loop {
            // Never at once: two attempts without a pause would be a loop.
            let left = verdict.retry_in_ms.unwrap_or(0).max(1);
            let at = now().saturating_add(left.saturating_mul(1_000));
            if at.saturating_sub(self.begun) > LONGEST_WAIT {
                return words::come_back(&verdict, &self.wish);
            }
            tell(&words::heartbeat(&verdict, &self.wish));
            match wait.until(at).await {
                Woken::Due => {}
                Woken::AgentEnded => return denial("the agent ended while its hook waited"),
                Woken::NoClock => return denial("the system gives no means to wait"),
            }
            match self.once().await {
                Ok(answer) if answer.verdict == VerdictKind::Wait => verdict = answer,
                Ok(answer) => return words::settled(&answer, &self.wish),
                Err(denied) => return denied,
            }
        }
    }
}

fn unanswered(unanswered: Unanswered) -> Verdict {
    match unanswered {
        Unanswered::NoServer { why, fix } => nobody_answers(&why, &fix),
        Unanswered::Refused(detail) => denial(&detail),
    }
}

fn nobody_answers(problem: &str, fix: &str) -> Verdict {
    Verdict::Deny { reason: wording::no_daemon(problem, fix), stop: false }
}
