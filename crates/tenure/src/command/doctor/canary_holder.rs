//! Somebody who has a canary: a session of ours that nobody else is.

use std::path::{Path, PathBuf};

use tenure_gate::coding_agent::CodingAgent;

use super::canary::{Canaries, new_session_name};
use super::canary_payload;
use super::fake_agent::FakeAgent;
use super::hook_response::{describe_response, is_allowed};

/// It has one file until it is told that its session is over, or ends.
pub struct CanaryHolder {
    fake_agent: FakeAgent,
    root: PathBuf,
    pub session: String,
}

impl CanaryHolder {
    /// Takes this file, through our own hook.
    pub fn acquire(canaries: &Canaries, path: &Path) -> Result<Self, String> {
        let stand_in = FakeAgent::start(CodingAgent::Claude).map_err(|error| error.to_string())?;
        let mut holder =
            Self { fake_agent: stand_in, root: canaries.root().to_owned(), session: new_session_name() };
        let ask = canary_payload::write_payload(CodingAgent::Claude, &holder.session, &holder.root, path);
        holder.hook(&ask.to_string())?;
        Ok(holder)
    }

    pub fn end_session(mut self) -> Result<(), String> {
        let ending = canary_payload::session_end_payload(CodingAgent::Claude, &self.session, &self.root);
        self.hook(&ending.to_string())
    }

    fn hook(&mut self, payload: &str) -> Result<(), String> {
        let answer = self.fake_agent.run("/proc/self/exe", &["hook", "claude"], payload)?;
        if is_allowed(CodingAgent::Claude, &answer) { Ok(()) } else { Err(describe_response(&answer)) }
    }
}
