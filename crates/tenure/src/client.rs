//! The server that client commands talk to.

use std::fs::File;
use std::io::Read as _;

use tenure_api::{Code, Problem};
use tenure_client::{Client, Error, SettingsError};

use crate::autostart::LocalServer;
use crate::exit;
use crate::failure::Failure;

/// Finds the server as the environment says, and lets `work` talk to it.
///
/// One thread does for a command that asks one question.
pub fn with_client<T>(work: impl AsyncFnOnce(Client) -> Result<T, Failure>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime
        .map_err(|error| Failure::new(exit::UNAVAILABLE, "the system gives no means to connect", &error))?;
    let client = Client::from_environment()?;
    runtime.block_on(work(client))
}

/// The same with the server of this machine alone, over its socket: files are those of this machine, so an address or a
/// token in the environment says nothing about them.
pub fn with_local_client<T>(work: impl AsyncFnOnce(Client) -> Result<T, Error>) -> Result<T, Failure> {
    let cannot = |error: &dyn std::error::Error| {
        Failure::new(exit::UNAVAILABLE, "the system gives no means to connect", error)
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| cannot(&error))?;
    let local = LocalServer::find()
        .map_err(|error| Failure::from_message(exit::CONFIGURATION, &error.to_string()))?;
    let client =
        local.client().map_err(|error| Failure::from_message(exit::CONFIGURATION, &error.to_string()))?;
    runtime.block_on(work(client)).map_err(|error| match error {
        Error::Unreachable { source, .. } => {
            let what =
                format!("no Tenure server answers on this machine, at {}: {source}", local.socket.display());
            Failure::from_message(exit::UNAVAILABLE, &what)
                .with_hint("The first hook of an agent starts one; so does `tenure serve`.")
        }
        error => error.into(),
    })
}

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Self {
        Self::new(exit::CONFIGURATION, "the server cannot be found", &error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match &error {
            Error::Problem(problem) => of_problem(problem),
            Error::OutcomeUnknown { .. } => Self::from_message(exit::UNAVAILABLE, &error.to_string())
                .with_hint("`tenure list` shows what has happened."),
            // It says itself where it was looked for and what to do.
            _ => Self::from_message(exit::UNAVAILABLE, &error.to_string()),
        }
    }
}

fn of_problem(problem: &Problem) -> Failure {
    let failure = Failure::from_message(
        code_of(problem.code),
        &format!("{} ({})", problem.detail, problem.code.as_str()),
    );
    match problem.code {
        Code::Held => match &problem.resource {
            Some(resource) => failure.with_hint(&format!("`tenure explain {resource}` says more.")),
            None => failure,
        },
        Code::Unauthorized => failure.with_hint("The token for requests belongs into TENURE_TOKEN."),
        Code::Forbidden => failure.with_hint("`tenure token list` shows what each token may do."),
        _ => failure,
    }
}

/// With which code a command ends that the server refused.
fn code_of(code: Code) -> u8 {
    match code {
        Code::Held | Code::LeaseBusy | Code::Deadlock | Code::QueueFull | Code::QuotaExceeded => exit::HELD,
        Code::Expired => exit::LOST,
        Code::Unauthorized
        | Code::TokenInvalid
        | Code::Forbidden
        | Code::HolderTaken
        | Code::LanOnly
        | Code::LocalOnly
        | Code::AgentForbidden
        | Code::Unguarded
        | Code::ForeignHost
        | Code::ForeignOrigin => exit::DENIED,
        Code::Invalid | Code::TtlOutOfRange | Code::KeyReused | Code::TooLarge => exit::USAGE,
        Code::NotFound | Code::Compacted => exit::NO,
        _ => exit::UNAVAILABLE,
    }
}

/// A name for whoever runs this command: `user@host:process`.
pub fn default_holder() -> String {
    holder_of_process(std::process::id())
}

/// The same for another process of the same user.
pub fn holder_of_process(process: u32) -> String {
    let user = ["USER", "LOGNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    let user = user.filter(|user| !user.is_empty());
    let user = user.unwrap_or_else(|| rustix::process::getuid().as_raw().to_string());
    holder_of(&user, &host(), process)
}

fn host() -> String {
    let mut name = String::new();
    // A machine without a name is nobody's mistake.
    let _ = File::open("/proc/sys/kernel/hostname").and_then(|file| file.take(256).read_to_string(&mut name));
    name.trim_end().to_owned()
}

/// Names have at most 128 bytes, and hold nothing that cannot be seen.
fn holder_of(user: &str, host: &str, process: u32) -> String {
    let clean = |text: &str, max: usize| -> String {
        let visible = text.chars().filter(|letter| letter.is_ascii_graphic());
        visible.take(max).collect()
    };
    format!("{}@{}:{process}", clean(user, 40), clean(host, 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_holder_fits_the_length_limit() {
        assert_eq!(holder_of("ann", "build-3", 42), "ann@build-3:42");
        assert!(holder_of(&"u".repeat(500), &"h".repeat(500), u32::MAX).len() <= 128);
        assert_eq!(holder_of("a b\n", "ü", 1), "ab@:1");
    }

    #[test]
    fn error_codes_map_to_exit_codes() {
        for (code, number) in [
            (Code::Held, 75),
            (Code::LeaseBusy, 75),
            (Code::LanOnly, 77),
            (Code::AgentForbidden, 77),
            (Code::Expired, 76),
            (Code::Unauthorized, 77),
            (Code::Forbidden, 77),
            (Code::TtlOutOfRange, 64),
            (Code::NotFound, 1),
            (Code::Busy, 69),
        ] {
            assert_eq!(code_of(code), number, "{code:?}");
        }
    }
}
