//! What an agent says that it is doing.

/// What an agent says that it is doing. It decides nothing, but for one: who says that it restarts has a moment longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// It thinks about what to do.
    Planning,
    /// It asks for leases.
    Acquiring,
    /// It works.
    Executing,
    /// It waits until it can be sure of its leases.
    Paused,
    /// It looks whether all went well.
    Verifying,
    /// All went well.
    Completed,
    /// It gave up.
    Aborted,
    /// Its process goes, and comes back.
    DieRestart,
}

impl Phase {
    /// Every phase.
    pub const ALL: [Phase; 8] = [
        Self::Planning,
        Self::Acquiring,
        Self::Executing,
        Self::Paused,
        Self::Verifying,
        Self::Completed,
        Self::Aborted,
        Self::DieRestart,
    ];

    /// Whether the agent is done with everything, one way or the other.
    pub const fn is_last(self) -> bool {
        matches!(self, Self::Completed | Self::Aborted)
    }

    /// The phase as it is written for people and programs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Planning => "PLANNING",
            Self::Acquiring => "ACQUIRING",
            Self::Executing => "EXECUTING",
            Self::Paused => "PAUSED",
            Self::Verifying => "VERIFYING",
            Self::Completed => "COMPLETED",
            Self::Aborted => "ABORTED",
            Self::DieRestart => "DIE_RESTART",
        }
    }

    /// The phase with this name.
    pub fn parse(name: &str) -> Option<Phase> {
        Self::ALL.into_iter().find(|phase| phase.as_str() == name)
    }
}
