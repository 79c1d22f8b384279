//! What a lease changes: the mutability matrix. It stands here and nowhere else.

tenure_core::text_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum CommandSource {
        /// A WebSocket: the only one that can hold a lease.
        WebSocket = "ws",
        /// An HTTP request, which shows the lease's token.
        Rest = "rest",
        Encoder = "local.encoder",
        Serial = "local.serial",
    }
}

tenure_core::text_enum! {
    /// What a command does, as far as a lease is concerned. It is said of every command in [`crate::table`], never guessed
    /// from a name.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum CommandClass {
        Reads = "reads",
        /// Changes the device's state, presets, effect, parameters, transport or settings.
        Mutates = "mutates",
        /// Belongs to an external render stream: needs a lease, always.
        Streams = "streams",
        /// Permitted whatever the lease says: the lease's own commands, who speaks, and firmware.
        Exempt = "exempt",
    }
}

tenure_core::text_enum! {
    /// What the lease is to whoever sent the command.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum OwnershipStatus {
        Inactive = "lease inactive",
        /// There is one, and it is the sender's.
        Owner = "lease active, owner",
        /// There is one, and it is another's.
        Other = "lease active, non-owner",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PermissionVerdict {
    Allow,
    Block,
}

use CommandClass::{Exempt, Mutates, Reads, Streams};
use CommandSource::{Encoder, Rest, Serial, WebSocket};
use PermissionVerdict::{Allow, Block};

/// The matrix: for each source and class what happens with no lease, with the sender's own, with another's.
///
/// Encoder and serial port have no way to hold a lease: under any lease they are blocked, also when the person who turns
/// the knob is the owner.
pub const MATRIX: [(CommandSource, CommandClass, [PermissionVerdict; 3]); 16] = [
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

pub fn evaluate(source: CommandSource, class: CommandClass, standing: OwnershipStatus) -> PermissionVerdict {
    let row = MATRIX.iter().find(|(of, on, _)| (*of, *on) == (source, class));
    let (_, _, verdicts) = row.expect("the matrix has a row for each source and class");
    match standing {
        OwnershipStatus::Inactive => verdicts[0],
        OwnershipStatus::Owner => verdicts[1],
        OwnershipStatus::Other => verdicts[2],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_and_class_has_one_row() {
        for source in CommandSource::ALL {
            for class in CommandClass::ALL {
                let matching = MATRIX.iter().filter(|(of, on, _)| (*of, *on) == (source, class));
                assert_eq!(matching.count(), 1, "{source:?} {class:?}");
            }
        }
    }

    #[test]
    fn commands_that_change_the_device_are_blocked_while_another_client_holds_the_lease() {
        for source in CommandSource::ALL {
            for class in [Mutates, Streams] {
                assert_eq!(evaluate(source, class, OwnershipStatus::Other), Block, "{source:?} {class:?}");
            }
        }
    }
}
