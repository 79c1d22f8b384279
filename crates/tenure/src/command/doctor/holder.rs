//! Somebody who has a canary: a session of ours that nobody else is.

use std::path::{Path, PathBuf};

use tenure_gate::agent::Agent;

use super::answer::{allows, words};
use super::canary::{Canaries, session};
use super::payload;
use super::stand_in::StandIn;

/// It has one file until it is told that its session is over, or ends.
pub struct Holder {
    stand_in: StandIn,
    root: PathBuf,
    pub session: String,
}

impl Holder {
    /// Takes this file, through our own hook.
    pub fn take(canaries: &Canaries, path: &Path) -> Result<Self, String> {
        let stand_in = StandIn::start(Agent::Claude).map_err(|error| error.to_string())?;
        let mut holder = Self { stand_in, root: canaries.root().to_owned(), session: session() };
        let ask = payload::writing(Agent::Claude, &holder.session, &holder.root, path);
        holder.hook(&ask.to_string())?;
        Ok(holder)
    }

    pub fn end(mut self) -> Result<(), String> {
        let ending = payload::ending(Agent::Claude, &self.session, &self.root);
        self.hook(&ending.to_string())
    }

    fn hook(&mut self, said: &str) -> Result<(), String> {
        let answer = self.stand_in.run("/proc/self/exe", &["hook", "claude"], said)?;
        if allows(Agent::Claude, &answer) { Ok(()) } else { Err(words(&answer)) }
    }
}
