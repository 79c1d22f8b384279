//! What a worker needs to know.

use std::path::PathBuf;

use tenure_api::IntentSessionView;
use tenure_core::kernel::TickDuration;
use thiserror::Error;

use crate::process_supervisor::TerminationMargins;

/// How sessions are carried out on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How many tuners there are, numbered from 0.
    pub tuners: u32,
    /// How long the leases of sessions last, and the guard.
    pub ttl_ms: u64,
    pub renew_every_ms: u64,
    /// How long a pipeline has between SIGTERM and SIGKILL.
    pub stop_grace_ms: u64,
    pub logs: PathBuf,
    pub logs_kept: usize,
    pub command: CommandTemplate,
    /// What carries out a session of a recording, if that is another one.
    pub recording_command: Option<CommandTemplate>,
}

impl Settings {
    /// How many tuners there may be.
    pub const MAX_TUNERS: u32 = 64;

    /// How much time the end of a pipeline takes.
    pub fn margins(&self) -> TerminationMargins {
        TerminationMargins::for_lease(
            TickDuration::from_millis(self.ttl_ms),
            Some(TickDuration::from_millis(self.stop_grace_ms)),
        )
    }
}

/// What a name in braces stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Placeholder {
    Service,
    Recording,
    Target,
    Profile,
    Slot,
    Start,
    Session,
}

const NAMES: [(&str, Placeholder); 7] = [
    ("service", Placeholder::Service),
    ("recording", Placeholder::Recording),
    ("target", Placeholder::Target),
    ("profile", Placeholder::Profile),
    ("slot", Placeholder::Slot),
    ("start", Placeholder::Start),
    ("session", Placeholder::Session),
];

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Placeholder(Placeholder),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandTemplate(Vec<Vec<Piece>>);

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CommandTemplateError {
    /// Not a list. It is not repeated: there may be a password in it.
    #[error(
        "is not a program with its arguments, as a list of strings such as [\"ffmpeg\", \"-i\", \"{{service}}\"]"
    )]
    NotAList,
    #[error("names no program; write a list such as [\"ffmpeg\", \"-i\", \"{{service}}\"]")]
    Empty,
    /// A name that stands for nothing.
    #[error("has {{{name}}}, which stands for nothing; there are {}", known())]
    Unknown { name: String },
    #[error("has a brace that belongs to no name; write {{{{ for {{ and }}}} for }}")]
    Brace,
}

impl CommandTemplate {
    /// Reads the program and its arguments. `{{` is one brace.
    pub fn parse(arguments: &[String]) -> Result<Self, CommandTemplateError> {
        if arguments.first().is_none_or(String::is_empty) {
            return Err(CommandTemplateError::Empty);
        }
        arguments.iter().map(|argument| pieces(argument)).collect::<Result<_, _>>().map(Self)
    }

    /// The command of one session. Each argument stays one, whatever is put into it; what the session does not have is
    /// empty.
    pub fn fill(&self, session: &IntentSessionView, slot: Option<u32>) -> Vec<String> {
        let fill = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Placeholder(placeholder) => placeholder.value(session, slot),
        };
        self.0.iter().map(|argument| argument.iter().map(fill).collect()).collect()
    }
}

impl Placeholder {
    fn value(self, session: &IntentSessionView, slot: Option<u32>) -> String {
        let IntentSessionView { service_ref: service, recording_id: recording, .. } = session;
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        match self {
            Self::Service => text(service),
            Self::Recording => text(recording),
            Self::Target => service.as_ref().or(recording.as_ref()).cloned().unwrap_or_default(),
            Self::Profile => session.profile_id.clone(),
            Self::Slot => slot.map(|slot| slot.to_string()).unwrap_or_default(),
            Self::Start => session.start_ms.unwrap_or(0).to_string(),
            Self::Session => session.session_id.clone(),
        }
    }
}

fn pieces(argument: &str) -> Result<Vec<Piece>, CommandTemplateError> {
    let (mut pieces, mut text, mut rest) = (Vec::new(), String::new(), argument);
    while let Some(at) = rest.find(['{', '}']) {
        let (before, found) = rest.split_at(at);
        text.push_str(before);
        if let Some(behind) = found.strip_prefix("{{").or_else(|| found.strip_prefix("}}")) {
            text.push_str(&found[..1]);
            rest = behind;
            continue;
        }
        let named = found.strip_prefix('{').and_then(|named| named.split_once('}'));
        let (name, behind) = named.ok_or(CommandTemplateError::Brace)?;
        let known = NAMES.iter().find(|(known, _)| *known == name);
        let (_, placeholder) =
            known.ok_or_else(|| CommandTemplateError::Unknown { name: name.to_owned() })?;
        pieces.push(Piece::Text(std::mem::take(&mut text)));
        pieces.push(Piece::Placeholder(*placeholder));
        rest = behind;
    }
    text.push_str(rest);
    pieces.push(Piece::Text(text));
    Ok(pieces)
}

fn known() -> String {
    NAMES.map(|(name, _)| format!("{{{name}}}")).join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::testing::sample_session;
    use super::*;

    fn template(arguments: &[&str]) -> Result<CommandTemplate, CommandTemplateError> {
        CommandTemplate::parse(&arguments.iter().map(|argument| (*argument).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn filled_argument_is_not_split() {
        let mut session = sample_session("s1", "NEW");
        session.service_ref = Some("1:0:19 'a' $(b); *".to_owned());
        let filled =
            template(&["run", "{service}", "http://box/{service}?{slot}", "{{{profile}}}", "{start}"]);
        let filled = filled.unwrap().fill(&session, Some(3));
        let url = "http://box/1:0:19 'a' $(b); *?3";
        assert_eq!(filled, ["run", "1:0:19 'a' $(b); *", url, "{hd}", "0"]);
    }

    #[test]
    fn missing_value_is_an_empty_argument() {
        let mut session = sample_session("s1", "NEW");
        (session.service_ref, session.recording_id) = (None, Some("film".to_owned()));
        session.start_ms = Some(61_500);
        let names = ["x", "{service}", "{recording}", "{target}", "{slot}", "{start}", "{session}"];
        let filled = template(&names).unwrap().fill(&session, None);
        assert_eq!(filled, ["x", "", "film", "film", "", "61500", "s1"]);
    }

    #[test]
    fn unknown_placeholder_is_rejected() {
        let unknown = template(&["a", "{sevice}"]).unwrap_err();
        assert_eq!(unknown, CommandTemplateError::Unknown { name: "sevice".to_owned() });
        assert!(unknown.to_string().contains("{sevice}") && unknown.to_string().contains("{service} {rec"));
        for brace in ["{", "}", "a}b", "{service", "{{{"] {
            assert_eq!(template(&["a", brace]), Err(CommandTemplateError::Brace), "{brace}");
        }
        assert_eq!(template(&[]), Err(CommandTemplateError::Empty));
        assert_eq!(template(&["", "a"]), Err(CommandTemplateError::Empty));
    }
}
