//! Where the doctor stands: which tree, whose home, which program.

use std::path::{Path, PathBuf};

use tenure_gate::agent::Agent;
use tenure_gate::install::{Place, Scope};
use tenure_gate::paths::work_tree_of;

use super::canary::Canaries;
use crate::command::install::Surroundings;
use crate::failure::Failure;

pub struct Ground {
    /// The top of the working tree that we are in, if we are in one.
    pub root: Option<PathBuf>,
    /// Canaries for it. Nothing without a tree, or where git ignores such names.
    pub canaries: Option<Canaries>,
    surroundings: Surroundings,
}

impl Ground {
    pub fn find() -> Result<Self, Failure> {
        let surroundings = Surroundings::find()?;
        let folder = std::env::current_dir().ok();
        let root = folder.and_then(|folder| work_tree_of(&folder).ok().flatten()).map(|tree| tree.root);
        let canaries = root.as_deref().and_then(Canaries::new);
        Ok(Self { root, canaries, surroundings })
    }

    /// Where hooks of this scope are. Nothing outside of a tree, or where nobody is at home.
    pub fn place(&self, scope: Scope) -> Option<Place> {
        let root = if scope == Scope::User { self.home()?.to_owned() } else { self.root.clone()? };
        Some(self.surroundings.place(root, scope))
    }

    /// The nearest place that there is.
    pub fn nearest(&self) -> Option<Place> {
        self.place(Scope::Project).or_else(|| self.place(Scope::User))
    }

    /// The person's home, if there is one.
    pub fn home(&self) -> Option<&Path> {
        self.surroundings.person.home.as_deref()
    }

    /// Why calls cannot be watched on this system; nothing, if they can.
    pub fn unwatchable(&self) -> Option<&str> {
        self.surroundings.unwatchable.as_deref()
    }

    /// Why no canary is fired, where none is though a server answers.
    pub fn why_no_canary(&self) -> &'static str {
        match self.root {
            Some(_) => "it is not fired: git ignores whatever a canary could be called here",
            None => "it is fired only in a working tree of git",
        }
    }

    /// The folder that agents are asked about: the tree, else the home.
    pub fn folder(&self) -> &Path {
        self.root.as_deref().or(self.home()).unwrap_or(Path::new("/"))
    }
}

/// The scopes that an agent has, the one that counts most first.
pub const fn scopes(agent: Agent) -> &'static [Scope] {
    match agent {
        Agent::Claude => &[Scope::Local, Scope::Project, Scope::User],
        _ => &[Scope::Project, Scope::User],
    }
}

pub const fn name(scope: Scope) -> &'static str {
    match scope {
        Scope::Local => "local",
        Scope::Project => "project",
        Scope::User => "user",
    }
}

/// The command that puts hooks in place there.
pub fn install(agent: Agent, scope: Scope) -> String {
    match scope {
        Scope::Project => format!("tenure install {agent}"),
        scope => format!("tenure install {agent} --{}", name(scope)),
    }
}
