//! What a lease changes: the mutability matrix. It stands here and nowhere else.

/// Where a command comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// A WebSocket: the only one that can hold a lease.
    WebSocket,
    /// An HTTP request, which shows the lease's token.
    Rest,
    /// The knob on the device.
    Encoder,
    /// The device's serial port.
    Serial,
}

impl Source {
    /// All of them.
    pub const ALL: [Source; 4] = [Self::WebSocket, Self::Rest, Self::Encoder, Self::Serial];

    /// For people and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WebSocket => "ws",
            Self::Rest => "rest",
            Self::Encoder => "local.encoder",
            Self::Serial => "local.serial",
        }
    }
}

/// What a command does, as far as a lease is concerned. It is said of every command in [`crate::table`], never guessed
/// from a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Changes nothing.
    Reads,
    /// Changes the device's state, presets, effect, parameters, transport or settings.
    Mutates,
    /// Belongs to an external render stream: needs a lease, always.
    Streams,
    /// Permitted whatever the lease says: the lease's own commands, who speaks, and firmware.
    Exempt,
}

impl Class {
    /// All of them.
    pub const ALL: [Class; 4] = [Self::Reads, Self::Mutates, Self::Streams, Self::Exempt];

    /// For people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reads => "reads",
            Self::Mutates => "mutates",
            Self::Streams => "streams",
            Self::Exempt => "exempt",
        }
    }
}

/// What the lease is to whoever sent the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    /// There is no lease.
    Inactive,
    /// There is one, and it is the sender's.
    Owner,
    /// There is one, and it is another's.
    Other,
}

impl Standing {
    /// All of them.
    pub const ALL: [Standing; 3] = [Self::Inactive, Self::Owner, Self::Other];

    /// For people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Inactive => "lease inactive",
            Self::Owner => "lease active, owner",
            Self::Other => "lease active, non-owner",
        }
    }
}

/// Whether a command goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It does.
    Allow,
    /// It does not.
    Block,
}

use Class::{Exempt, Mutates, Reads, Streams};
use Source::{Encoder, Rest, Serial, WebSocket};
use Verdict::{Allow, Block};

/// The matrix: for each source and class what happens with no lease, with the sender's own, with another's.
///
/// Encoder and serial port have no way to hold a lease: under any lease they are blocked, also when the person who turns
/// the knob is the owner.
pub const MATRIX: [(Source, Class, [Verdict; 3]); 16] = [
    (WebSocket, Reads, [Allow, Allow, Allow]),
    (WebSocket, Mutates, [Allow, Allow, Block]),
    (WebSocket, Streams, [Block, Allow, Block]),
    (WebSocket, Exempt, [Allow, Allow, Allow]),
    (Rest, Reads, [Allow, Allow, Allow]),
    (Rest, Mutates, [Allow, Allow, Block]),
    (Rest, Streams, [Block, Block, Block]),
    (Rest, Exempt, [Allow, Allow, Allow]),
    (Encoder, Reads, [Allow, Allow, Allow]),
    (Encoder, Mutates, [Allow, Block, Block]),
    (Encoder, Streams, [Block, Block, Block]),
    (Encoder, Exempt, [Block, Block, Block]),
    (Serial, Reads, [Allow, Allow, Allow]),
    (Serial, Mutates, [Allow, Block, Block]),
    (Serial, Streams, [Block, Block, Block]),
    (Serial, Exempt, [Block, Block, Block]),
];

/// What the matrix says.
pub fn judge(source: Source, class: Class, standing: Standing) -> Verdict {
    let row = MATRIX.iter().find(|(of, on, _)| (*of, *on) == (source, class));
    let (_, _, verdicts) = row.expect("the matrix has a row for each source and class");
    match standing {
        Standing::Inactive => verdicts[0],
        Standing::Owner => verdicts[1],
        Standing::Other => verdicts[2],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_and_class_has_one_row() {
        for source in Source::ALL {
            for class in Class::ALL {
                let rows = MATRIX.iter().filter(|(of, on, _)| (*of, *on) == (source, class));
                assert_eq!(rows.count(), 1, "{source:?} {class:?}");
            }
        }
    }

    #[test]
    fn another_owner_is_never_overruled() {
        for source in Source::ALL {
            for class in [Mutates, Streams] {
                assert_eq!(judge(source, class, Standing::Other), Block, "{source:?} {class:?}");
            }
        }
    }
}
