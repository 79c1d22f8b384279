//! Checkpoints as files: the newest, and the one before in case that is damaged.

use std::io;

use super::disk::Disk;
use crate::checkpoint::{Checkpoint, CheckpointHeader};
use crate::error::Damage;
use crate::ledger::{Head, LedgerId, Seq};

const UNFINISHED: &str = "checkpoint.new";

/// How many are kept. What was pruned is in each of them.
pub(crate) const MAX_CHECKPOINTS: usize = 2;

/// What is written at once, so that a crash may come in between anywhere.
const CHUNK_SIZE: usize = 1 << 20;

/// What checkpoints there are.
#[derive(Debug, Default)]
pub(crate) struct CheckpointScan {
    /// The newest that is whole.
    pub(crate) newest: Option<Checkpoint>,
    /// Where those are that can be believed, oldest first, the newest among them.
    pub(crate) heads: Vec<Head>,
    /// What cannot be believed.
    pub(crate) damaged: Vec<Damage>,
}

/// The file of the checkpoint after event `seq`.
pub(crate) fn file_name(seq: Seq) -> String {
    format!("checkpoint-{:016}", seq.0)
}

/// The checkpoints on a disk without events after `until`. Only the newest that is whole is read whole.
pub(crate) fn scan(disk: &dyn Disk, ledger: LedgerId, until: Seq) -> io::Result<CheckpointScan> {
    let mut found = CheckpointScan::default();
    for seq in list(disk)?.into_iter().rev().filter(|seq| *seq <= until) {
        let (file, path) = (file_name(seq), disk.path(&file_name(seq)));
        let read = if found.newest.is_none() {
            let read = Checkpoint::read(disk.read(&file)?.unwrap_or_default());
            read.map(|checkpoint| (checkpoint.header, Some(checkpoint)))
        } else {
            let bytes = disk.read_at(&file, 0, CheckpointHeader::BYTES)?.unwrap_or_default();
            CheckpointHeader::parse(&bytes).map(|head| (head, None))
        };
        let read = read.and_then(|(head, checkpoint)| match head {
            head if head.head.seq != seq => Err("the checkpoint stands under another number"),
            head if head.ledger != ledger => Err("the checkpoint belongs to another ledger"),
            head => Ok((head, checkpoint)),
        });
        match read {
            Ok((head, checkpoint)) => {
                found.newest = found.newest.or(checkpoint);
                found.heads.insert(0, head.head);
            }
            Err(reason) => found.damaged.push(Damage { file: path, offset: 0, after: seq, reason }),
        }
    }
    Ok(found)
}

/// Writes a checkpoint so that it is there whole or not at all.
pub(crate) fn write(disk: &dyn Disk, seq: Seq, bytes: &[u8]) -> io::Result<()> {
    let written = write_file(disk, seq, bytes);
    if written.is_err() {
        // What it took is needed for something else.
        let _ = disk.remove(UNFINISHED);
    }
    written
}

fn write_file(disk: &dyn Disk, seq: Seq, bytes: &[u8]) -> io::Result<()> {
    let file = disk.create(UNFINISHED)?;
    let mut offset = 0;
    for part in bytes.chunks(CHUNK_SIZE) {
        file.write_at(part, offset)?;
        offset += part.len() as u64;
    }
    file.sync()?;
    drop(file);
    disk.rename(UNFINISHED, &file_name(seq))?;
    disk.sync()
}

/// After which events there are checkpoints, oldest first.
pub(crate) fn list(disk: &dyn Disk) -> io::Result<Vec<Seq>> {
    let number = |file: &String| {
        let seq = Seq(file.strip_prefix("checkpoint-")?.parse().ok()?);
        (file_name(seq) == *file).then_some(seq)
    };
    let mut numbers: Vec<Seq> = disk.list()?.iter().filter_map(number).collect();
    numbers.sort_unstable();
    Ok(numbers)
}
