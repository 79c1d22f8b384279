//! Acquires files for an agent, and waits for the one retry if another session holds them.

use std::path::PathBuf;
use std::time::Duration;

use tenure_api::{Code, FileAcquireRequest, FileEventKind, FileVerdict, FileVerdictKind};
use tenure_client::{Error, boot_microseconds as now};
use tenure_guard::RequestError;
use tenure_hooks::interception_coverage::guard_command;
use tenure_hooks::{
    HookPayload, HookVerdict, HookWaitPolicy, inherited_shell_variable, is_shell_tool_call, messages,
};
use tenure_host::coding_agent::CodingAgent;
use tenure_host::process::{AsyncExitWatch, ancestor_agent};
use tenure_host::stderr::print_stderr;
use tenure_worker::process_supervisor::Timer;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::timeout;

use super::requests::{file_event, file_request};
use super::{deny, verdict};
use crate::autostart::{
    AutostartClient, DIAGNOSE_COMMAND, LocalServer, START_COMMAND, is_server_gone, start,
};
use crate::config::variable;

/// How long an answer may take. Twice that and the start of a server, after the payload and [`MAX_WAIT_MICROSECONDS`], stay below the
/// 240 s that hooks are given.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(12);
/// The longest that a hook waits in all, in microseconds. A second file of the call may be due later than the first.
const MAX_WAIT_MICROSECONDS: u64 = 200_000_000;

pub async fn request_write(
    agent: CodingAgent,
    payload_event: &HookPayload,
    paths: &[PathBuf],
    whole: bool,
) -> HookVerdict {
    deny_on_signal(decide_write(agent, payload_event, paths, whole)).await
}

async fn decide_write(
    agent: CodingAgent,
    payload: &HookPayload,
    paths: &[PathBuf],
    whole: bool,
) -> HookVerdict {
    let Ok(request) = file_request(agent, payload, paths, whole) else {
        return deny("a path or the working folder is not UTF-8");
    };
    let asking = match PermissionRequest::new(agent, request) {
        Ok(asking) => asking,
        Err(verdict) => return verdict,
    };
    // A command that has a patch in it does more than the patch.
    if is_shell_tool_call(agent, payload)
        && let denied @ HookVerdict::Deny { .. } = report_tool_call(agent, payload).await
    {
        return denied;
    }
    match asking.once().await {
        Ok(verdict) if verdict.verdict != FileVerdictKind::Wait => {
            verdict::final_verdict(&verdict, &asking.request)
        }
        Ok(verdict) if payload.wait_policy == HookWaitPolicy::DenyImmediately => {
            verdict::deny_until_retry(&verdict, &asking.request)
        }
        Ok(verdict) => asking.wait(verdict).await,
        Err(verdict) => verdict,
    }
}

/// Whether a tool may run that names no file which it changes. It may; but while nobody can be asked, what it does to files
/// would be seen by nobody.
pub async fn check_tool_call(agent: CodingAgent, payload: &HookPayload) -> HookVerdict {
    deny_on_signal(report_tool_call(agent, payload)).await
}

async fn report_tool_call(agent: CodingAgent, payload: &HookPayload) -> HookVerdict {
    let shell = if is_shell_tool_call(agent, payload) { detect(agent) } else { AgentShell::Guarded };
    if let AgentShell::Missing(shell) = shell {
        let reason = messages::shell_missing_message(&shell.to_string_lossy(), agent.as_str());
        return HookVerdict::Deny { reason, stop: false };
    }
    let Ok(mut news) = file_event(agent, payload) else { return HookVerdict::Acknowledge };
    if shell == AgentShell::Unguarded {
        news.event = FileEventKind::Unguarded;
    }
    let found = LocalServer::find().and_then(|local| local.client().map(|client| (local, client)));
    let (local, client) = match found {
        Ok(found) => found,
        Err(error) => return deny_without_server(&error.to_string(), START_COMMAND),
    };
    let mut response = timeout(RESPONSE_TIMEOUT, client.report_file_event(&news)).await;
    if matches!(&response, Ok(Err(error)) if is_server_gone(error)) {
        if let Err(error) = start(&local).await {
            return deny_without_server(&error.to_string(), &error.suggested_command());
        }
        response = timeout(RESPONSE_TIMEOUT, client.report_file_event(&news)).await;
    }
    match response {
        Ok(Err(Error::Problem(problem))) if problem.code == Code::Unguarded => HookVerdict::Deny {
            reason: messages::shell_not_intercepted_message(guard_command(agent)),
            stop: false,
        },
        Ok(Err(error @ Error::Unreachable { .. })) => deny_without_server(&error.to_string(), START_COMMAND),
        Err(_) => deny_without_server("it says nothing, so it may be stopped", DIAGNOSE_COMMAND),
        _ => HookVerdict::Acknowledge,
    }
}

/// One call of a tool that is about to change files.
struct PermissionRequest {
    agent: CodingAgent,
    request: FileAcquireRequest,
    client: AutostartClient,
    started_at: u64,
}

impl PermissionRequest {
    fn new(agent: CodingAgent, request: FileAcquireRequest) -> Result<Self, HookVerdict> {
        let client = AutostartClient::new(RESPONSE_TIMEOUT).map_err(deny_unavailable)?;
        Ok(Self { agent, request, client, started_at: now() })
    }

    async fn once(&self) -> Result<FileVerdict, HookVerdict> {
        self.client.acquire(&self.request).await.map_err(deny_unavailable)
    }

    /// Waits until the one retry is due, and makes it. It is not woken earlier: a file that becomes free meanwhile is
    /// anybody's.
    async fn wait(&self, mut verdict: FileVerdict) -> HookVerdict {
        let wait = RetryWait::start(self.agent);
        loop {
            // Never at once: two attempts without a pause would be a loop.
            let remaining_ms = verdict.retry_in_ms.unwrap_or(0).max(1);
            let at = now().saturating_add(remaining_ms.saturating_mul(1_000));
            if at.saturating_sub(self.started_at) > MAX_WAIT_MICROSECONDS {
                return verdict::deny_until_retry(&verdict, &self.request);
            }
            print_stderr(&verdict::contention_notice(&verdict, &self.request));
            match wait.wait_until(at).await {
                WakeReason::Due => {}
                WakeReason::AgentEnded => return deny("the agent ended while its hook waited"),
                WakeReason::NoClock => return deny("the system gives no means to wait"),
            }
            match self.once().await {
                Ok(answer) if answer.verdict == FileVerdictKind::Wait => verdict = answer,
                Ok(answer) => return verdict::final_verdict(&answer, &self.request),
                Err(denied) => return denied,
            }
        }
    }
}

fn deny_unavailable(unanswered: RequestError) -> HookVerdict {
    match unanswered {
        RequestError::NoServer { why, fix } => deny_without_server(&why, &fix),
        RequestError::Rejected(detail) => deny(&detail),
    }
}

fn deny_without_server(problem: &str, fix: &str) -> HookVerdict {
    HookVerdict::Deny { reason: messages::server_unavailable_message(problem, fix), stop: false }
}

/// What `asking` leads to, or a denial if somebody wants the hook to end before that: a hook that just ended, unanswered,
/// would let the edit happen. It may be the agent, or a person with Ctrl-C.
pub async fn deny_on_signal(asking: impl Future<Output = HookVerdict>) -> HookVerdict {
    let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup(), SignalKind::quit()];
    let [mut terminate, mut interrupt, mut hangup, mut quit] = kinds.map(|kind| signal(kind).ok());
    tokio::select! {
        biased;
        verdict = asking => verdict,
        () = receive(&mut terminate) => deny(SIGNAL_DENIAL),
        () = receive(&mut interrupt) => deny(SIGNAL_DENIAL),
        () = receive(&mut hangup) => deny(SIGNAL_DENIAL),
        () = receive(&mut quit) => deny(SIGNAL_DENIAL),
    }
}

const SIGNAL_DENIAL: &str = "the hook was told to end before there was an answer";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WakeReason {
    Due,
    /// The agent's process is gone. A hook outlives an agent that is killed, and must not take files for it.
    AgentEnded,
    /// Nobody can say when it is time.
    NoClock,
}

pub struct RetryWait {
    agent: AsyncExitWatch,
}

impl RetryWait {
    /// Begins to watch the agent above this process.
    pub fn start(agent: CodingAgent) -> Self {
        let above = ancestor_agent(std::process::id(), Some(agent)).ok();
        Self { agent: AsyncExitWatch::new(above.as_ref().map(|above| &above.process)) }
    }

    /// Waits until the local clock says `at`.
    pub async fn wait_until(&self, at: u64) -> WakeReason {
        let Ok(timer) = Timer::new() else { return WakeReason::NoClock };
        tokio::select! {
            () = self.agent.wait() => WakeReason::AgentEnded,
            () = timer.wait_until(Some(at)) => WakeReason::Due,
        }
    }
}

async fn receive(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentShell {
    Guarded,
    /// It does not, and only the audit sees what the command changes.
    Unguarded,
    /// It would, but it is not there: the agent takes another one without a word.
    Missing(PathBuf),
}

/// The shell of this agent, by what we inherited from it.
pub fn detect(agent: CodingAgent) -> AgentShell {
    if tenure_guard::is_guarded() {
        return AgentShell::Guarded;
    }
    let named = inherited_shell_variable(agent).and_then(variable).map(PathBuf::from);
    match named.filter(|shell| tenure_guard::is_tenure_bash(shell)) {
        Some(shell) if shell.exists() => AgentShell::Guarded,
        Some(shell) => AgentShell::Missing(shell),
        None => AgentShell::Unguarded,
    }
}
