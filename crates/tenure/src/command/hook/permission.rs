//! Asks whether an agent may change files, and waits for the one retry where somebody else has them.

use std::path::PathBuf;
use std::time::Duration;

use tenure_api::{Code, FileAcquireRequest, FileEventKind, FileVerdict, FileVerdictKind};
use tenure_client::{Error, boot_microseconds as now};
use tenure_gate::coding_agent::CodingAgent;
use tenure_gate::hooks::messages;
use tenure_gate::hooks::{HookPayload, HookVerdict, HookWaitPolicy, is_shell_tool_call};
use tenure_gate::interception_coverage::guard_command;
use tokio::time::timeout;

use super::agent::deny;
use super::agent_shell::{self, AgentShell};
use super::requests::{file_event, file_request};
use super::retry_wait::{RetryWait, WakeReason, deny_on_signal};
use super::verdict;
use crate::daemon::{
    AutostartClient, DIAGNOSE_COMMAND, LocalServer, RequestError, START_COMMAND, is_server_gone, start,
};
use crate::terminal_message::print_stderr;

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
    let shell =
        if is_shell_tool_call(agent, payload) { agent_shell::detect(agent) } else { AgentShell::Guarded };
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
