//! Hears what an agent says, and answers. Every failure on the way is a denial.

use std::io::{self, Read as _, Write as _};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook};
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use tenure_gate::agent::Agent;
use tenure_gate::hooks::{self, Answer, Event, Heard, MOST_BYTES, Verdict};

use super::{BLOCKED, permission, tell};
use crate::message;

/// How long an agent may take to say everything. Whoever waited on would be overtaken by the agent's own limit, and that lets
/// the edit through.
const LONGEST_PAYLOAD: Duration = Duration::from_secs(5);

/// What is read of a payload that is too large, so that the agent is not cut off in the middle of it.
const MOST_DRAINED: u64 = 1 << 30;

/// Reads the payload, decides and answers.
pub fn run(agent: Agent) -> ExitCode {
    set_hook(Box::new(own_mistake));
    let answer = match within(LONGEST_PAYLOAD, || payload(io::stdin().lock())) {
        Ok(bytes) => respond(agent, &bytes, decide),
        Err(error) => blind(agent, &format!("what the agent says cannot be read: {error}")),
    };
    say(&answer)
}

/// The answer to a payload. Whatever `decide` does, an edit is never let through by a failure.
fn respond(agent: Agent, bytes: &[u8], decide: impl FnOnce(Agent, &Heard) -> Verdict) -> Answer {
    let heard = match catch_unwind(|| hooks::read(agent, bytes)) {
        Ok(Ok(heard)) => heard,
        Ok(Err(unheard)) => return hooks::refuse(agent, &unheard),
        Err(_) => return blind(agent, "there is a mistake in Tenure itself"),
    };
    let verdict = catch_unwind(AssertUnwindSafe(|| decide(agent, &heard)));
    let verdict = verdict.unwrap_or_else(|_| match heard.event {
        Event::Writing { .. } | Event::Calling => denial("there is a mistake in Tenure itself"),
        _ => Verdict::Noted,
    });
    hooks::answer(agent, Some(&heard), &verdict)
}

fn decide(agent: Agent, heard: &Heard) -> Verdict {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match (&heard.event, runtime) {
        (Event::Writing { paths, whole }, Ok(runtime)) => {
            runtime.block_on(permission::ask(agent, heard, paths, *whole))
        }
        (Event::Calling, Ok(runtime)) => runtime.block_on(permission::call(agent, heard)),
        (Event::Writing { .. } | Event::Calling, Err(error)) => {
            denial(&format!("the system gives no means to connect: {error}"))
        }
        (_, Ok(runtime)) => {
            runtime.block_on(tell::tell(agent, heard));
            Verdict::Noted
        }
        (_, Err(_)) => Verdict::Noted,
    }
}

/// The edit does not happen, for a reason that is nobody's lease.
pub fn denial(why: &str) -> Verdict {
    Verdict::Deny {
        reason: format!(
            "Nothing was changed: Tenure could not find out whether another agent is editing this ({why}). Do not go around \
             this with the shell or a copy. Try again, and if it is denied again, ask the person."
        ),
        stop: false,
    }
}

/// The answer when not even the event is known: it stops whatever it is.
fn blind(agent: Agent, why: &str) -> Answer {
    hooks::answer(agent, None, &denial(why))
}

/// What the agent says. One byte more than is ever understood shows that it is too much.
fn payload(mut input: impl io::Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = u64::try_from(MOST_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    if input.by_ref().take(most).read_to_end(&mut bytes)? > MOST_BYTES {
        io::copy(&mut input.take(MOST_DRAINED), &mut io::sink())?;
    }
    Ok(bytes)
}

/// What `read` reads, or an error if that takes too long. Whoever still reads then ends with the process.
fn within<T: Send + 'static>(
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

fn say(answer: &Answer) -> ExitCode {
    if !answer.stderr.is_empty() {
        message::tell(&format!("{}\n", answer.stderr));
    }
    let mut output = io::stdout().lock();
    match output.write_all(answer.stdout.as_bytes()).and_then(|()| output.flush()) {
        Ok(()) => answer.code.into(),
        Err(error) => {
            message::tell(&format!("Nothing was changed: Tenure's answer cannot be written ({error}).\n"));
            BLOCKED.into()
        }
    }
}

/// Where the mistake is, and nothing of what was said: that may hold secrets.
fn own_mistake(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map(|place| format!(" at {}:{}", place.file(), place.line()));
    message::tell(&format!("tenure: a mistake in Tenure itself{}\n", place.unwrap_or_default()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload_of(name: &str) -> Vec<u8> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tenure-gate/tests/fixtures/hooks");
        std::fs::read(format!("{folder}/{name}.json")).unwrap()
    }

    // S4-15
    #[test]
    fn panic_is_a_denial_in_each_agents_format() {
        for (agent, name, denial) in [
            (Agent::Claude, "claude-PreToolUse-Edit", r#""permissionDecision":"deny""#),
            (Agent::Codex, "codex-PreToolUse-apply_patch", r#""permissionDecision":"deny""#),
            (Agent::Gemini, "gemini-BeforeTool-replace", r#""decision":"deny""#),
        ] {
            let answer = respond(agent, &payload_of(name), |_, _| panic!("on purpose"));
            assert!(answer.stdout.contains(denial), "{agent}: {answer:?}");
        }
    }

    #[test]
    fn panic_during_a_notification_blocks_nothing() {
        let answer =
            respond(Agent::Claude, &payload_of("claude-PostToolUse-Edit"), |_, _| panic!("on purpose"));
        assert_eq!((answer.stdout.as_str(), answer.code), ("", 0));
    }

    #[test]
    fn payload_without_end_times_out() {
        let (input, _open) = io::pipe().unwrap();
        let read = within(Duration::from_millis(50), || payload(input));
        assert!(read.unwrap_err().to_string().contains("no end"));
        let (input, mut agent) = io::pipe().unwrap();
        agent.write_all(b"{}").unwrap();
        drop(agent);
        assert_eq!(within(LONGEST_PAYLOAD, || payload(input)).unwrap(), b"{}");
    }

    #[test]
    fn unreadable_payload_blocks_the_edit() {
        for agent in Agent::ALL {
            let answer = blind(agent, "no reason");
            let is_denied = answer.code == BLOCKED && !answer.stderr.is_empty();
            assert!(is_denied || answer.stdout.contains("deny"), "{agent}: {answer:?}");
        }
    }
}
