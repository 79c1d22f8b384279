//! `tenure session`.

mod view;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Map, Value};
use tenure_api::{IntentRequest, IntentSessionList, IntentSessionView};
use tenure_client::Client;

use crate::client::with_client;
use crate::exit;
use crate::failure::Failure;
use crate::output::Format;

/// Starts, stops and shows sessions: what somebody wants to be shown, and what became of it.
///
/// Whoever wants a channel or a recording says so, and is told a session at once. The one worker takes it, with its leases,
/// and runs its pipeline; docs/guides/intents.md shows how. All of this needs the scope `v3:write`.
#[derive(Debug, Args)]
pub struct SessionArguments {
    #[command(subcommand)]
    command: SessionCommand,
}

#[derive(Debug, Subcommand)]
enum SessionCommand {
    Start(Start),
    Stop(Stop),
    Show(Show),
    List(List),
}

impl SessionArguments {
    /// Runs the command to its end.
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            SessionCommand::Start(start) => start.run(),
            SessionCommand::Stop(stop) => stop.run(),
            SessionCommand::Show(show) => show.run(),
            SessionCommand::List(list) => list.run(),
        }
    }
}

/// Says what is wanted, and prints the session that it became.
///
/// The same wanted twice is one session, for as long as that goes on. Whether it can be had is decided later, by the worker:
/// `--wait` waits for that. Exit code with `--wait` 0: it runs, or came to a good end. 1: it is over otherwise, and the
/// answer says why.
///
/// Example: tenure session start --service 1:0:19:283D:3FB:1:C00000:0:0:0: --profile hd --wait
#[derive(Debug, Args)]
pub struct Start {
    #[command(flatten)]
    target: SessionTarget,
    /// Of a recording: from where, in milliseconds
    #[arg(long, value_name = "MILLISECONDS", conflicts_with = "service")]
    start_ms: Option<u64>,
    /// How it is to be shown
    #[arg(long, value_name = "PROFILE")]
    profile: String,
    /// Something more for the pipeline; can be repeated. Other parameters are another session
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parse_parameter)]
    parameters: Vec<(String, String)>,
    /// By which you find it again in logs [default: the server makes one]
    #[arg(long, value_name = "TEXT")]
    correlation_id: Option<String>,
    /// Wait until it runs or is over
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct SessionTarget {
    /// Which channel
    #[arg(long, value_name = "REFERENCE")]
    service: Option<String>,
    /// Which recording
    #[arg(long, value_name = "ID")]
    recording: Option<String>,
}

impl Start {
    /// Asks for it, and waits for what becomes of it if that is wanted.
    pub fn run(self) -> Result<(), Failure> {
        let (wait, format) = (self.wait, self.format);
        let request = self.request();
        let (accepted, session) = with_client(async |client| {
            let accepted = client.submit_intent(&request).await?;
            let session = match wait {
                true => Some(wait_until(&client, &accepted.session_id, SessionGoal::Decided).await?),
                false => None,
            };
            Ok((accepted, session))
        })?;
        match &session {
            Some(session) => format.print(session, view::fields)?,
            None => format.print(&accepted, view::accepted_intent_table)?,
        }
        session.map_or(Ok(()), |session| fail_unless_completed(&session))
    }

    fn request(self) -> IntentRequest {
        let parameters = self.parameters.into_iter().map(|(name, value)| (name, Value::from(value)));
        let parameters: Map<String, Value> = parameters.collect();
        IntentRequest {
            service_ref: self.target.service,
            recording_id: self.target.recording,
            profile_id: Some(self.profile),
            start_ms: self.start_ms,
            params: (!parameters.is_empty()).then_some(parameters),
            correlation_id: self.correlation_id,
            ..IntentRequest::default()
        }
    }
}

fn parse_parameter(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("a parameter is NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Asks for a session's end, and prints where it is.
///
/// Its worker ends the pipeline, sees it gone, and gives back its leases; `--wait` waits for that. What is over stays as it
/// is. Exit code 1: there is no such session.
///
/// Example: tenure session stop SESSION --wait
#[derive(Debug, Args)]
pub struct Stop {
    /// The session's id
    #[arg(value_name = "SESSION")]
    id: String,
    /// Wait until it is over
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    format: Format,
}

impl Stop {
    /// Asks for its end.
    pub fn run(self) -> Result<(), Failure> {
        let (accepted, session) = with_client(async |client| {
            let accepted = client.stop_intent_session(&self.id).await?;
            let session = match self.wait {
                true => Some(wait_until(&client, &self.id, SessionGoal::Ended).await?),
                false => None,
            };
            Ok((accepted, session))
        })?;
        match &session {
            Some(session) => self.format.print(session, view::fields)?,
            None => self.format.print(&accepted, view::accepted_intent_table)?,
        }
        Ok(())
    }
}

/// Shows the sessions that go on, and those that ended last; the newest first.
///
/// Ended ones are remembered for a while only; `tenure log` shows all that happened.
///
/// Example: tenure session list --state running
#[derive(Debug, Args)]
pub struct List {
    /// Only those in this state
    #[arg(long, value_enum)]
    state: Option<StateFilter>,
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum StateFilter {
    /// No worker has taken it
    New,
    /// Its leases are held, its pipeline is about to start
    Starting,
    /// Its pipeline runs
    Running,
    /// Somebody asked for its end
    Stopping,
    /// It is over
    Ended,
}

impl List {
    /// Reads the list and prints it.
    pub fn run(self) -> Result<(), Failure> {
        let state = self.state.map(|state| match state {
            StateFilter::New => "NEW",
            StateFilter::Starting => "STARTING",
            StateFilter::Running => "RUNNING",
            StateFilter::Stopping => "STOPPING",
            StateFilter::Ended => "ENDED",
        });
        let sessions = with_client(async |client| Ok(client.intent_sessions(state).await?))?;
        self.format
            .print_table(&IntentSessionList { sessions }, "No sessions.\n", |all| view::table(&all.sessions))
    }
}

/// Shows everything about one session, also if it ended not long ago.
///
/// Exit code with `--wait` 0: it runs, or came to a good end. 1: it is over otherwise. Without `--wait` 0, wherever it is.
///
/// Example: tenure session show SESSION --wait
#[derive(Debug, Args)]
pub struct Show {
    /// The session's id
    #[arg(value_name = "SESSION")]
    id: String,
    /// Wait until it runs or is over
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    format: Format,
}

impl Show {
    /// Asks for it and prints it.
    pub fn run(self) -> Result<(), Failure> {
        let session = with_client(async |client| match self.wait {
            true => wait_until(&client, &self.id, SessionGoal::Decided).await,
            false => Ok(client.intent_session(&self.id).await?),
        })?;
        self.format.print(&session, view::fields)?;
        if self.wait { fail_unless_completed(&session) } else { Ok(()) }
    }
}

/// How long one question waits for a change. The next one goes on where it ended.
const LONG_POLL_MS: u64 = 30_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionGoal {
    /// It runs, or it is over.
    Decided,
    Ended,
}

impl SessionGoal {
    fn is_reached(self, session: &IntentSessionView) -> bool {
        session.state == "ENDED" || self == SessionGoal::Decided && session.state == "RUNNING"
    }
}

/// Waits until the session has come so far. It is told each change, and does not look again and again.
pub async fn wait_until(client: &Client, id: &str, goal: SessionGoal) -> Result<IntentSessionView, Failure> {
    let mut session = client.intent_session(id).await?;
    while !goal.is_reached(&session) {
        session = client.intent_session_after(id, session.revision, LONG_POLL_MS).await?;
    }
    Ok(session)
}

/// Whether what was wanted is shown: the exit code says it, and what was printed says why.
pub fn fail_unless_completed(session: &IntentSessionView) -> Result<(), Failure> {
    let is_good = session.state != "ENDED" || session.outcome.as_deref() == Some("COMPLETED");
    if is_good { Ok(()) } else { Err(Failure::silent(exit::NO)) }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;

    use super::*;

    #[derive(Parser)]
    struct TestArguments {
        #[command(flatten)]
        start: Start,
    }

    fn request(line: &str) -> Result<Value, String> {
        let line = TestArguments::try_parse_from(line.split(' ')).map_err(|error| error.to_string())?;
        Ok(serde_json::to_value(line.start.request()).unwrap())
    }

    #[test]
    fn start_arguments_become_an_intent_request() {
        assert_eq!(
            request("start --service 1:0:19 --profile hd"),
            Ok(json!({ "serviceRef": "1:0:19", "profileID": "hd" }))
        );
        assert_eq!(
            request(
                "start --recording film --start-ms 10500 --profile hd --param subtitles=de --param audio=a=b --correlation-id x"
            ),
            Ok(json!({
                "recordingID": "film", "startMs": 10_500, "profileID": "hd", "correlationId": "x",
                "params": { "subtitles": "de", "audio": "a=b" },
            }))
        );
    }

    #[test]
    fn incomplete_start_arguments_are_rejected_without_a_request() {
        for (line, says) in [
            ("start --profile hd", "--service <REFERENCE>|--recording <ID>"),
            ("start --service a --recording b --profile hd", "cannot be used with"),
            ("start --service a", "--profile <PROFILE>"),
            ("start --service a --start-ms 5 --profile hd", "cannot be used with"),
            ("start --service a --profile hd --param x", "a parameter is NAME=VALUE"),
        ] {
            let error = request(line).unwrap_err();
            assert!(error.contains(says), "{line}: {error}");
        }
    }
}
