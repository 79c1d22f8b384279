//! Which ledger this is, and where it belongs: a copy must never be taken for the original.

use std::path::Path;
use std::{fs, io};

use super::directory;
use crate::ledger_id::LedgerId;

const FILE: &str = "identity";

/// What tells one ledger from another, and from its own copies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Made once, at random.
    pub ledger: LedgerId,
    /// Grows each time the ledger is restored from a copy.
    pub epoch: u64,
    /// The machine on which it may be written: a digest, so that the file tells nothing else of it.
    pub machine: [u8; 16],
}

impl Identity {
    /// A new ledger on this machine.
    pub(crate) fn new(machine: [u8; 16]) -> io::Result<Identity> {
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Identity { ledger: LedgerId(id), epoch: 1, machine })
    }

    /// The identity in a data directory, if there is one.
    pub fn read(directory: &Path) -> io::Result<Option<Identity>> {
        match fs::read_to_string(directory.join(FILE)) {
            Ok(text) => match Identity::parse(&text) {
                Some(identity) => Ok(Some(identity)),
                None => Err(io::Error::new(io::ErrorKind::InvalidData, "the file `identity` cannot be read")),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes it into a data directory.
    pub(crate) fn write(&self, directory: &Path) -> io::Result<()> {
        directory::replace(directory, FILE, self.text().as_bytes())
    }

    fn text(&self) -> String {
        let machine = LedgerId(self.machine);
        let fields = format!("version 1\nledger {}\nepoch {}\nmachine {machine}\n", self.ledger, self.epoch);
        let sum = crc32c::crc32c(fields.as_bytes());
        format!("{fields}sum {sum:08x}\n")
    }

    fn parse(text: &str) -> Option<Identity> {
        let mut lines = text.lines().map(|line| line.split_once(' '));
        let mut field =
            |name: &str| lines.next().flatten().filter(|(found, _)| *found == name).map(|(_, value)| value);
        if field("version") != Some("1") {
            return None;
        }
        let ledger = LedgerId::parse(field("ledger")?)?;
        let epoch = field("epoch")?.parse().ok()?;
        let machine = LedgerId::parse(field("machine")?)?.0;
        let identity = Identity { ledger, epoch, machine };
        // Only the exact form that is written counts, so that a flipped bit is noticed.
        (identity.text() == text).then_some(identity)
    }
}

/// This machine, as a digest of its machine id.
pub(crate) fn this_machine() -> [u8; 16] {
    let id =
        fs::read("/etc/machine-id").or_else(|_| fs::read("/var/lib/dbus/machine-id")).unwrap_or_default();
    let mut hasher = blake3::Hasher::new_derive_key("tenure ledger machine v1");
    hasher.update(&id);
    let mut digest = [0; 16];
    digest.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    digest
}
