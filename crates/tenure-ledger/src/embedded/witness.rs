//! Remembers, outside of the data directory, how far a ledger had come: so that an older copy is recognised.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use super::directory_disk;
use crate::batch::ChainHash;
use crate::ledger::{Head, LedgerId, Seq};

/// How far a ledger had come when it was last written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Witness {
    /// Which ledger.
    pub ledger: LedgerId,
    /// In which epoch.
    pub epoch: u64,
    /// Where it ended.
    pub head: Head,
}

const LENGTH: usize = 16 + 8 + 8 + 32 + 4;

/// The file that holds a witness, named after its ledger and locked as long as the ledger is open: a copy of the data
/// directory beside the original is the same ledger, and finds the same file. It is written after each batch and not synced: what it says is always true, and
/// after a power cut it may only say less.
#[derive(Debug)]
pub(crate) struct WitnessFile(File);

impl WitnessFile {
    /// The witness of `ledger` among those in `folder`. `None`: somebody else has that ledger open.
    pub(crate) fn open(folder: &Path, ledger: LedgerId) -> io::Result<Option<WitnessFile>> {
        directory_disk::create_directory(folder)?;
        let path = folder.join(ledger.to_string());
        let mut options = OpenOptions::new();
        let file = options.create(true).truncate(false).read(true).write(true).mode(0o600).open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(WitnessFile(file))),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// What it says; nothing if it says nothing that can be believed.
    pub(crate) fn read(&self) -> io::Result<Option<Witness>> {
        let mut bytes = [0; LENGTH];
        match self.0.read_exact_at(&mut bytes, 0) {
            Ok(()) => Ok(Witness::decode(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn write(&self, witness: &Witness) -> io::Result<()> {
        self.0.write_all_at(&witness.encode(), 0)
    }
}

impl Witness {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(LENGTH);
        bytes.extend(self.ledger.0);
        bytes.extend(self.epoch.to_be_bytes());
        bytes.extend(self.head.seq.0.to_be_bytes());
        bytes.extend(self.head.hash.0);
        bytes.extend(crc32c::crc32c(&bytes).to_be_bytes());
        bytes
    }

    fn decode(bytes: &[u8; LENGTH]) -> Option<Witness> {
        let (content, sum) = bytes.split_at(LENGTH - 4);
        let (ledger, rest) = content.split_first_chunk::<16>()?;
        let (epoch, rest) = rest.split_first_chunk::<8>()?;
        let (seq, rest) = rest.split_first_chunk::<8>()?;
        let (hash, _) = rest.split_first_chunk::<32>()?;
        let witness = Witness {
            ledger: LedgerId(*ledger),
            epoch: u64::from_be_bytes(*epoch),
            head: Head { seq: Seq(u64::from_be_bytes(*seq)), hash: ChainHash(*hash) },
        };
        (crc32c::crc32c(content).to_be_bytes() == sum).then_some(witness)
    }
}
