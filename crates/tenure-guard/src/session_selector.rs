//! The agent's session for which a guard acts, if a flag or the environment names one.

use std::ffi::OsString;

/// The session that was named, by a flag or in the environment. Only sessions of the agent's own process can be meant: the
/// server looks at who is above.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionSelector {
    /// What the agent calls its session.
    pub session: Option<String>,
    pub subagent: Option<String>,
}

impl SessionSelector {
    /// What flags say, else the environment.
    pub fn new(session: Option<String>, subagent: Option<String>) -> Self {
        if session.is_some() {
            return Self { session, subagent };
        }
        let value = |name: &str| std::env::var_os(name)?.into_string().ok().filter(|text| !text.is_empty());
        let session = value("TENURE_SESSION");
        let subagent = session.as_ref().and_then(|_| value("TENURE_SUBAGENT"));
        Self { session, subagent }
    }

    /// For the command line of the keeper; the command follows.
    pub fn to_arguments(&self) -> [OsString; 2] {
        [&self.session, &self.subagent].map(|word| word.clone().unwrap_or_default().into())
    }

    /// The same, read again, and the command.
    pub fn split_arguments(words: &[OsString]) -> Option<(Self, &[OsString])> {
        let [session, subagent, command @ ..] = words else { return None };
        let word = |word: &OsString| word.to_str().filter(|word| !word.is_empty()).map(str::to_owned);
        Some((Self { session: word(session), subagent: word(subagent) }, command))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_selector_is_parsed_back_before_the_command() {
        let naming = SessionSelector { session: Some("s 1".into()), subagent: None };
        let words: Vec<OsString> =
            naming.to_arguments().into_iter().chain(["sh".into(), "-c".into()]).collect();
        let (again, command) = SessionSelector::split_arguments(&words).unwrap();
        assert_eq!((again, command), (naming, &["sh".into(), "-c".into()][..]));
        assert_eq!(SessionSelector::split_arguments(&words[..1]), None);
    }
}
