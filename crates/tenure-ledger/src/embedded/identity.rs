//! Which ledger this is, and where it belongs: a copy must never be taken for the original.

use std::{fs, io};

use super::disk::Disk;
use crate::error::{Damage, OpenError};
use crate::ledger::{LedgerId, Seq};

const IDENTITY_FILE: &str = "identity";

/// The form of every ledger, until the first release.
const FORMAT_VERSION: u32 = 1;

/// The machine of a copy.
pub(crate) const NO_MACHINE: [u8; 16] = [0; 16];

/// What tells one ledger from another, and from its own copies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerIdentity {
    /// Made once, at random.
    pub ledger: LedgerId,
    /// Grows each time the ledger is restored from a copy.
    pub epoch: u64,
    /// The machine on which it may be written: a digest, so that the file tells nothing else of it.
    pub machine: [u8; 16],
    /// In which form it is written.
    pub version: u32,
}

impl LedgerIdentity {
    /// Whether it is a copy, or a restore that was not finished: it may be written nowhere.
    pub(crate) fn has_no_machine(&self) -> bool {
        self.machine == NO_MACHINE
    }

    /// A new ledger on this machine.
    pub(crate) fn new(machine: [u8; 16]) -> io::Result<LedgerIdentity> {
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(LedgerIdentity { ledger: LedgerId(id), epoch: 1, machine, version: FORMAT_VERSION })
    }

    /// The identity in a data directory, if there is one.
    pub fn read(disk: &dyn Disk) -> Result<Option<LedgerIdentity>, OpenError> {
        let Some(bytes) = disk.read(IDENTITY_FILE)? else { return Ok(None) };
        let text = String::from_utf8_lossy(&bytes);
        let form = text.lines().next().and_then(|line| line.strip_prefix("version ")?.parse().ok());
        match (form, LedgerIdentity::parse(&text)) {
            (_, Some(identity)) => Ok(Some(identity)),
            (Some(found), None) if found > FORMAT_VERSION => {
                Err(OpenError::NewerVersion { found, newest: FORMAT_VERSION })
            }
            _ => Err(OpenError::Damaged(Damage {
                file: disk.path(IDENTITY_FILE),
                offset: 0,
                after: Seq(0),
                reason: "the identity of the ledger is not as it was written",
            })),
        }
    }

    /// Writes it into a data directory.
    pub(crate) fn write(&self, disk: &dyn Disk) -> io::Result<()> {
        disk.replace(IDENTITY_FILE, self.text().as_bytes())
    }

    fn text(&self) -> String {
        let machine = LedgerId(self.machine);
        let fields = format!(
            "version {}\nledger {}\nepoch {}\nmachine {machine}\n",
            self.version, self.ledger, self.epoch
        );
        let sum = crc32c::crc32c(fields.as_bytes());
        format!("{fields}sum {sum:08x}\n")
    }

    fn parse(text: &str) -> Option<LedgerIdentity> {
        let mut lines = text.lines().map(|line| line.split_once(' '));
        let mut field =
            |name: &str| lines.next().flatten().filter(|(found, _)| *found == name).map(|(_, value)| value);
        let form = field("version")?.parse().ok().filter(|form| *form == FORMAT_VERSION)?;
        let ledger = LedgerId::parse(field("ledger")?)?;
        let epoch = field("epoch")?.parse().ok()?;
        let machine = LedgerId::parse(field("machine")?)?.0;
        let identity = LedgerIdentity { ledger, epoch, machine, version: form };
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
