//! Which ledger this is, and where it belongs: a copy must never be taken for the original.

use std::{fs, io};

use super::Damage;
use super::disk::Disk;
use super::open_error::OpenError;
use crate::ledger::{LedgerId, Seq};

const FILE: &str = "identity";

/// The form of every ledger, until the first release.
const FORM: u32 = 1;

/// The machine of a copy.
pub(crate) const NOWHERE: [u8; 16] = [0; 16];

/// What tells one ledger from another, and from its own copies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Made once, at random.
    pub ledger: LedgerId,
    /// Grows each time the ledger is restored from a copy.
    pub epoch: u64,
    /// The machine on which it may be written: a digest, so that the file tells nothing else of it.
    pub machine: [u8; 16],
    /// In which form it is written.
    pub form: u32,
}

impl Identity {
    /// Whether it is a copy, or a restore that was not finished: it may be written nowhere.
    pub(crate) fn is_nowhere(&self) -> bool {
        self.machine == NOWHERE
    }

    /// A new ledger on this machine.
    pub(crate) fn new(machine: [u8; 16]) -> io::Result<Identity> {
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Identity { ledger: LedgerId(id), epoch: 1, machine, form: FORM })
    }

    /// The identity in a data directory, if there is one.
    pub fn read(disk: &dyn Disk) -> Result<Option<Identity>, OpenError> {
        let Some(bytes) = disk.read(FILE)? else { return Ok(None) };
        let text = String::from_utf8_lossy(&bytes);
        let form = text.lines().next().and_then(|line| line.strip_prefix("version ")?.parse().ok());
        match (form, Identity::parse(&text)) {
            (_, Some(identity)) => Ok(Some(identity)),
            (Some(found), None) if found > FORM => Err(OpenError::Newer { found, newest: FORM }),
            _ => Err(OpenError::Damaged(Damage {
                file: disk.path(FILE),
                offset: 0,
                after: Seq(0),
                reason: "the identity of the ledger is not as it was written",
            })),
        }
    }

    /// Writes it into a data directory.
    pub(crate) fn write(&self, disk: &dyn Disk) -> io::Result<()> {
        disk.replace(FILE, self.text().as_bytes())
    }

    fn text(&self) -> String {
        let machine = LedgerId(self.machine);
        let fields = format!(
            "version {}\nledger {}\nepoch {}\nmachine {machine}\n",
            self.form, self.ledger, self.epoch
        );
        let sum = crc32c::crc32c(fields.as_bytes());
        format!("{fields}sum {sum:08x}\n")
    }

    fn parse(text: &str) -> Option<Identity> {
        let mut lines = text.lines().map(|line| line.split_once(' '));
        let mut field =
            |name: &str| lines.next().flatten().filter(|(found, _)| *found == name).map(|(_, value)| value);
        let form = field("version")?.parse().ok().filter(|form| *form == FORM)?;
        let ledger = LedgerId::parse(field("ledger")?)?;
        let epoch = field("epoch")?.parse().ok()?;
        let machine = LedgerId::parse(field("machine")?)?.0;
        let identity = Identity { ledger, epoch, machine, form };
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
