//! A ledger as whoever does not write it reads it: without the lock, without a repair, beside a writer if need be.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::Damage;
use super::checkpoints;
use super::directory::Directory;
use super::disk::Disk;
use super::identity::Identity;
use super::open_error::OpenError;
use super::opening::segment_numbers;
use super::segment::Segment;
use super::verify::Report;
use super::walk::Walk;
use crate::batch::Batch;
use crate::checkpoint::Checkpoint;
use crate::ledger::{Head, Seq};

/// How often what a writer may be changing is read again, and how long is waited in between.
const TRIES: usize = 10;
const PAUSE: Duration = Duration::from_millis(20);

/// A ledger that is only read.
pub struct Archive {
    disk: Directory,
    identity: Identity,
    /// Where the checkpoints are, oldest first.
    checkpoints: Vec<Head>,
    oldest: Option<Checkpoint>,
    segments: Vec<u64>,
    is_patient: bool,
}

/// The ledger in `directory` as its own file names it. There need be nothing else of it.
pub fn identity(directory: &Path) -> Result<Identity, OpenError> {
    identity_on(&Directory::at(directory))
}

fn identity_on(disk: &dyn Disk) -> Result<Identity, OpenError> {
    match Identity::read(disk)? {
        Some(identity) => Ok(identity),
        None if segment_numbers(disk).unwrap_or_default().is_empty() => {
            Err(OpenError::NoLedger(disk.path("")))
        }
        None => Err(OpenError::NoIdentity(disk.path(""))),
    }
}

impl Archive {
    /// Looks at the ledger in `directory`, and checks every checkpoint whole, with its signature.
    pub fn open(directory: &Path) -> Result<Archive, OpenError> {
        let disk = Directory::at(directory);
        let identity = identity_on(&disk)?;
        for _ in 0..TRIES {
            let numbers = checkpoints::numbers(&disk)?;
            // Before the segments: those that are listed later hold what a checkpoint says.
            let (checkpoints, oldest) = check_checkpoints(&disk, &identity, &numbers)?;
            let segments = segment_numbers(&disk)?;
            // Only behind a new checkpoint can segments have gone that the oldest of these needs.
            if checkpoints::numbers(&disk)? == numbers {
                return Ok(Archive { disk, identity, checkpoints, oldest, segments, is_patient: false });
            }
        }
        Err(OpenError::Pruned(disk.path("")))
    }

    /// The same beside a writer: what looks damaged in the last segment may be half written, and is read again a few
    /// times before it counts.
    #[must_use]
    pub fn beside_a_writer(self) -> Archive {
        Archive { is_patient: true, ..self }
    }

    /// Which ledger this is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Where to begin to add up: nothing as long as the first event is there, else the oldest checkpoint.
    pub fn beginning(&self) -> Option<&Checkpoint> {
        // Segments are numbered from 1 and pruned from the front.
        self.oldest.as_ref().filter(|_| self.segments.first() != Some(&1))
    }

    /// Every batch that remains, in order, with everything but the signatures checked on the way.
    pub fn batches(&self) -> Batches<'_> {
        Batches {
            archive: self,
            walk: Walk::new(self.identity.clone(), self.checkpoints.clone(), None),
            ahead: self.segments.iter().copied().collect(),
            batches: VecDeque::new(),
            file: PathBuf::new(),
            first: None,
            has_torn_tail: false,
        }
    }

    fn read(&self, number: u64) -> Result<Segment, OpenError> {
        let name = Segment::file_name(number);
        let path = self.disk.path(&name);
        let is_last = self.segments.last() == Some(&number);
        let mut tries_left = if self.is_patient && is_last { TRIES } else { 0 };
        loop {
            let disk: &dyn Disk = &self.disk;
            let bytes = disk.read(&name)?.ok_or_else(|| OpenError::Pruned(path.clone()))?;
            match Segment::read(&path, &bytes) {
                Ok(segment) if tries_left == 0 || !segment.is_torn => return Ok(segment),
                Err(damage) if tries_left == 0 => return Err(damage.into()),
                Ok(_) | Err(_) => {}
            }
            tries_left -= 1;
            thread::park_timeout(PAUSE);
        }
    }
}

/// The batches of an archive, each with the place where it stands.
pub struct Batches<'a> {
    archive: &'a Archive,
    walk: Walk,
    /// The segments that were not read yet.
    ahead: VecDeque<u64>,
    batches: VecDeque<(u64, Batch)>,
    file: PathBuf,
    first: Option<Head>,
    has_torn_tail: bool,
}

impl Batches<'_> {
    /// The next batch; nothing after the last.
    pub fn next_batch(&mut self) -> Result<Option<Placed>, OpenError> {
        loop {
            if let Some((offset, batch)) = self.batches.pop_front() {
                return Ok(Some(Placed { batch, file: self.file.clone(), offset }));
            }
            let Some(number) = self.ahead.pop_front() else {
                self.check_end()?;
                return Ok(None);
            };
            let mut segment = self.archive.read(number)?;
            self.first.get_or_insert(segment.head.after);
            let batches = self.walk.take(&mut segment)?;
            // Where the segment begins with a copy of a record, that one is not handed out again.
            let copies = segment.offsets.len() - batches.len();
            self.batches = segment.offsets.iter().skip(copies).copied().zip(batches).collect();
            self.file = segment.path;
            self.has_torn_tail = segment.is_torn;
        }
    }

    /// How many segments were read, and how many there are.
    pub fn progress(&self) -> (usize, usize) {
        let total = self.archive.segments.len();
        (total - self.ahead.len(), total)
    }

    /// After which event the ledger begins; nothing before a segment was read. 0 as long as nothing was pruned.
    pub fn first(&self) -> Option<Seq> {
        self.first.map(|head| head.seq)
    }

    /// Reads what was not read yet, and says what there is.
    pub fn finish(mut self) -> Result<Report, OpenError> {
        while self.next_batch()?.is_some() {}
        let Batches { archive, walk, has_torn_tail, .. } = self;
        Ok(Report {
            identity: archive.identity.clone(),
            after: self.first.unwrap_or_default().seq,
            head: walk.head,
            segments: walk.segments.len(),
            checkpoints: archive.checkpoints.len(),
            batches: walk.batches,
            has_torn_tail,
        })
    }

    fn check_end(&self) -> Result<(), Damage> {
        let Some(missed) = self.walk.unreached() else { return Ok(()) };
        let file = self.archive.disk.path(&checkpoints::name(missed.seq));
        let (after, reason) = (self.walk.head.seq, "the checkpoint is ahead of the ledger");
        Err(Damage { file, offset: 0, after, reason })
    }
}

/// A batch, and where it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The batch.
    pub batch: Batch,
    /// In which file.
    pub file: PathBuf,
    /// At which byte of it.
    pub offset: u64,
}

/// Reads every checkpoint whole, with its signature. Says where they are, and keeps the oldest.
fn check_checkpoints(
    disk: &dyn Disk,
    identity: &Identity,
    numbers: &[Seq],
) -> Result<(Vec<Head>, Option<Checkpoint>), OpenError> {
    let (mut heads, mut oldest) = (Vec::new(), None);
    for &seq in numbers {
        let name = checkpoints::name(seq);
        // A newer one may have taken its place since, which will be noticed.
        let Some(bytes) = disk.read(&name)? else { continue };
        let damaged = |reason| Damage { file: disk.path(&name), offset: 0, after: seq, reason };
        let checkpoint = Checkpoint::read(bytes).map_err(damaged)?;
        let head = checkpoint.head;
        if head.head.seq != seq || head.ledger != identity.ledger {
            return Err(damaged("the checkpoint is not the one that its name says").into());
        }
        checkpoint.verify().map_err(damaged)?;
        heads.push(head.head);
        oldest.get_or_insert(checkpoint);
    }
    Ok((heads, oldest))
}

impl OpenError {
    /// Whether a file was gone by the time it was to be read: whoever reads beside a writer begins again.
    pub fn is_passing(&self) -> bool {
        matches!(self, OpenError::Pruned(_))
            || matches!(self, OpenError::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }
}
