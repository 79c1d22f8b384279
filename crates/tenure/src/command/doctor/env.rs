//! Where the doctor stands: which tree, whose home, which program.

use std::path::{Path, PathBuf};

use tenure_gate::coding_agent::CodingAgent;
use tenure_gate::install::{InstallContext, InstallScope};
use tenure_gate::paths::work_tree_of;

use super::canary::Canaries;
use crate::command::install::InstallEnvironment;
use crate::failure::Failure;

pub struct DoctorEnvironment {
    /// The top of the working tree that we are in, if we are in one.
    pub root: Option<PathBuf>,
    /// Canaries for it. Nothing without a tree, or where git ignores such names.
    pub canaries: Option<Canaries>,
    environment: InstallEnvironment,
}

impl DoctorEnvironment {
    pub fn detect() -> Result<Self, Failure> {
        let surroundings = InstallEnvironment::detect()?;
        let folder = std::env::current_dir().ok();
        let root = folder.and_then(|folder| work_tree_of(&folder).ok().flatten()).map(|tree| tree.root);
        let canaries = root.as_deref().and_then(Canaries::new);
        Ok(Self { root, canaries, environment: surroundings })
    }

    /// Where hooks of this scope are. Nothing outside of a tree, or where nobody is at home.
    pub fn install_location(&self, scope: InstallScope) -> Option<InstallContext> {
        let root = if scope == InstallScope::User { self.home()?.to_owned() } else { self.root.clone()? };
        Some(self.environment.location(root, scope))
    }

    /// The nearest place that there is.
    pub fn nearest_install_location(&self) -> Option<InstallContext> {
        self.install_location(InstallScope::Project).or_else(|| self.install_location(InstallScope::User))
    }

    /// The person's home, if there is one.
    pub fn home(&self) -> Option<&Path> {
        self.environment.person.home.as_deref()
    }

    /// Why calls cannot be watched on this system; nothing, if they can.
    pub fn seccomp_unavailable_reason(&self) -> Option<&str> {
        self.environment.unwatchable.as_deref()
    }

    /// Why no canary is fired, where none is though a server answers.
    pub fn canary_unavailable_reason(&self) -> &'static str {
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
pub const fn scopes(agent: CodingAgent) -> &'static [InstallScope] {
    match agent {
        CodingAgent::Claude => &[InstallScope::Local, InstallScope::Project, InstallScope::User],
        _ => &[InstallScope::Project, InstallScope::User],
    }
}

pub const fn scope_name(scope: InstallScope) -> &'static str {
    match scope {
        InstallScope::Local => "local",
        InstallScope::Project => "project",
        InstallScope::User => "user",
    }
}

/// The command that puts hooks in place there.
pub fn install_command(agent: CodingAgent, scope: InstallScope) -> String {
    match scope {
        InstallScope::Project => format!("tenure install {agent}"),
        scope => format!("tenure install {agent} --{}", scope_name(scope)),
    }
}
