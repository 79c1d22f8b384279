//! `tenure hook`.

mod git;
mod permission;
mod requests;
mod verdict;

use std::ffi::{OsStr, OsString};
use std::io;
use std::io::{Read as _, Write as _};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook};
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use clap::Args;
use tenure_hooks::{HookEvent, HookPayload, HookResponse, HookVerdict, MAX_PAYLOAD_BYTES};
use tenure_host::coding_agent::CodingAgent;
use tenure_host::stderr::print_stderr;

/// With this code and something on standard error, every agent keeps an edit from happening.
const BLOCKED_EXIT_CODE: u8 = 2;

/// What agents and git call by themselves, once `tenure install` has put it in place. Nobody types it.
///
/// An agent (claude, codex, gemini, cursor, opencode) says on standard input what it is about to do, and is answered in the
/// form that it obeys. A file that somebody else is editing is waited for inside the hook: one retry after three minutes,
/// then a stop, and a report for the person (`tenure report list`). Where nobody serves, the server is started. Whatever
/// goes wrong is a denial.
///
/// For git (`tenure hook git NAME`) it says what is committed: leases end with it. It never adds, commits or stops
/// anything: its exit code is 0.
///
/// Example: tenure hook claude < payload.json
#[derive(Debug, Args)]
pub struct Hook {
    /// Which agent, or `git`
    #[arg(value_name = "AGENT|git")]
    caller: OsString,
    /// For git: which hook (pre-commit, post-commit, reference-transaction), and what git says to it
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl Hook {
    /// Answers.
    pub fn run(self) -> ExitCode {
        answer(&self.caller, &self.arguments)
    }
}

/// Runs a hook without looking at the rest of the command line: quick, and no mistake in it lets an edit through. Nothing,
/// if this is no hook, or somebody wants help.
pub fn run_hook_command(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    if arguments.nth(1)? != "hook" {
        return None;
    }
    let Some(caller) = arguments.next() else {
        return Some(deny_misconfigured("it is not said for which agent"));
    };
    if matches!(caller.to_str(), Some("--help" | "-h" | "help")) {
        return None;
    }
    Some(answer(&caller, &arguments.collect::<Vec<_>>()))
}

fn answer(caller: &OsStr, arguments: &[OsString]) -> ExitCode {
    if caller == "git" {
        return git::run(arguments);
    }
    match caller.to_string_lossy().parse::<CodingAgent>() {
        Ok(agent) if arguments.is_empty() => run(agent),
        Ok(_) => deny_misconfigured("there is more on its command line than the agent"),
        Err(error) => deny_misconfigured(&error),
    }
}

/// Nobody knows whom to answer. This stops the edit whoever it is.
fn deny_misconfigured(what: &str) -> ExitCode {
    print_stderr(&format!(
        "Nothing was changed: this hook of Tenure is not set up as it should be ({what}). Ask the person to run `tenure \
         install` again.\n"
    ));
    BLOCKED_EXIT_CODE.into()
}

/// How long an agent may take to say everything. Whoever waited on would be overtaken by the agent's own limit, and that lets
/// the edit through.
const PAYLOAD_TIMEOUT: Duration = Duration::from_secs(5);

/// What is read of a payload that is too large, so that the agent is not cut off in the middle of it.
const MAX_DRAINED_BYTES: u64 = 1 << 30;

/// Reads the payload, decides and answers.
pub fn run(agent: CodingAgent) -> ExitCode {
    set_hook(Box::new(report_panic));
    let answer = match read_with_timeout(PAYLOAD_TIMEOUT, || payload(io::stdin().lock())) {
        Ok(bytes) => respond(agent, &bytes, decide),
        Err(error) => deny_unknown_event(agent, &format!("what the agent says cannot be read: {error}")),
    };
    write_response(&answer)
}

/// The answer to a payload. Whatever `decide` does, an edit is never let through by a failure.
fn respond(
    agent: CodingAgent,
    bytes: &[u8],
    decide: impl FnOnce(CodingAgent, &HookPayload) -> HookVerdict,
) -> HookResponse {
    let payload_event = match catch_unwind(|| tenure_hooks::parse_payload(agent, bytes)) {
        Ok(Ok(payload)) => payload,
        Ok(Err(unheard)) => return tenure_hooks::reject_payload(agent, &unheard),
        Err(_) => return deny_unknown_event(agent, "there is a mistake in Tenure itself"),
    };
    let verdict = catch_unwind(AssertUnwindSafe(|| decide(agent, &payload_event)));
    let verdict = verdict.unwrap_or_else(|_| match payload_event.event {
        HookEvent::BeforeWrite { .. } | HookEvent::BeforeToolCall => {
            deny("there is a mistake in Tenure itself")
        }
        _ => HookVerdict::Acknowledge,
    });
    tenure_hooks::render_response(agent, Some(&payload_event), &verdict)
}

fn decide(agent: CodingAgent, payload: &HookPayload) -> HookVerdict {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match (&payload.event, runtime) {
        (HookEvent::BeforeWrite { paths, replaces_content: whole }, Ok(runtime)) => {
            runtime.block_on(permission::request_write(agent, payload, paths, *whole))
        }
        (HookEvent::BeforeToolCall, Ok(runtime)) => {
            runtime.block_on(permission::check_tool_call(agent, payload))
        }
        (HookEvent::BeforeWrite { .. } | HookEvent::BeforeToolCall, Err(error)) => {
            deny(&format!("the system gives no means to connect: {error}"))
        }
        (_, Ok(runtime)) => {
            runtime.block_on(requests::send_event(agent, payload));
            HookVerdict::Acknowledge
        }
        (_, Err(_)) => HookVerdict::Acknowledge,
    }
}

/// The edit does not happen, for a reason that is nobody's lease.
pub fn deny(why: &str) -> HookVerdict {
    HookVerdict::Deny {
        reason: format!(
            "Nothing was changed: Tenure could not find out whether another agent is editing this ({why}). Do not go around \
             this with the shell or a copy. Try again, and if it is denied again, ask the person."
        ),
        stop: false,
    }
}

/// The answer when not even the event is known: it stops whatever it is.
fn deny_unknown_event(agent: CodingAgent, why: &str) -> HookResponse {
    tenure_hooks::render_response(agent, None, &deny(why))
}

/// What the agent says. One byte more than is ever understood shows that it is too much.
fn payload(mut input: impl io::Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let max_bytes = u64::try_from(MAX_PAYLOAD_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    if input.by_ref().take(max_bytes).read_to_end(&mut bytes)? > MAX_PAYLOAD_BYTES {
        io::copy(&mut input.take(MAX_DRAINED_BYTES), &mut io::sink())?;
    }
    Ok(bytes)
}

/// What `read` reads, or an error if that takes too long. Whoever still reads then ends with the process.
fn read_with_timeout<T: Send + 'static>(
    limit: Duration,
    read: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (sender, receiver) = channel();
    std::thread::Builder::new().spawn(move || drop(sender.send(read())))?;
    receiver.recv_timeout(limit).unwrap_or_else(|error| match error {
        RecvTimeoutError::Timeout => {
            Err(io::Error::other(format!("it has no end after {} s", limit.as_secs())))
        }
        RecvTimeoutError::Disconnected => Err(io::Error::other("there is a mistake in Tenure itself")),
    })
}

fn write_response(answer: &HookResponse) -> ExitCode {
    if !answer.stderr.is_empty() {
        print_stderr(&format!("{}\n", answer.stderr));
    }
    let mut output = io::stdout().lock();
    match output.write_all(answer.stdout.as_bytes()).and_then(|()| output.flush()) {
        Ok(()) => answer.code.into(),
        Err(error) => {
            print_stderr(&format!("Nothing was changed: Tenure's answer cannot be written ({error}).\n"));
            BLOCKED_EXIT_CODE.into()
        }
    }
}

/// Where the mistake is, and nothing of what was said: that may hold secrets.
fn report_panic(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map(|place| format!(" at {}:{}", place.file(), place.line()));
    print_stderr(&format!("tenure: a mistake in Tenure itself{}\n", place.unwrap_or_default()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload_of(name: &str) -> Vec<u8> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tenure-hooks/tests/fixtures/hooks");
        std::fs::read(format!("{folder}/{name}.json")).unwrap()
    }

    // S4-15
    #[test]
    fn panic_is_a_denial_in_each_agents_format() {
        for (agent, name, denial) in [
            (CodingAgent::Claude, "claude-PreToolUse-Edit", r#""permissionDecision":"deny""#),
            (CodingAgent::Codex, "codex-PreToolUse-apply_patch", r#""permissionDecision":"deny""#),
            (CodingAgent::Gemini, "gemini-BeforeTool-replace", r#""decision":"deny""#),
        ] {
            let answer = respond(agent, &payload_of(name), |_, _| panic!("on purpose"));
            assert!(answer.stdout.contains(denial), "{agent}: {answer:?}");
        }
    }

    #[test]
    fn panic_during_a_notification_blocks_nothing() {
        let answer =
            respond(CodingAgent::Claude, &payload_of("claude-PostToolUse-Edit"), |_, _| panic!("on purpose"));
        assert_eq!((answer.stdout.as_str(), answer.code), ("", 0));
    }

    #[test]
    fn payload_without_end_times_out() {
        let (input, _open) = io::pipe().unwrap();
        let read = read_with_timeout(Duration::from_millis(50), || payload(input));
        assert!(read.unwrap_err().to_string().contains("no end"));
        let (input, mut agent) = io::pipe().unwrap();
        agent.write_all(b"{}").unwrap();
        drop(agent);
        assert_eq!(read_with_timeout(PAYLOAD_TIMEOUT, || payload(input)).unwrap(), b"{}");
    }

    #[test]
    fn unreadable_payload_blocks_the_edit() {
        for agent in CodingAgent::ALL {
            let answer = deny_unknown_event(agent, "no reason");
            let is_denied = answer.code == BLOCKED_EXIT_CODE && !answer.stderr.is_empty();
            assert!(is_denied || answer.stdout.contains("deny"), "{agent}: {answer:?}");
        }
    }
}
