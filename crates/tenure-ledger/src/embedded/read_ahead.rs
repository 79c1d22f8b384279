//! Reads segments one after the other, the next one while this one is being used.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use super::disk::Disk;
use super::segment::Segment;
use crate::error::OpenError;

/// The segments that were not looked at yet.
pub(crate) enum SegmentReader {
    /// Read when they are asked for.
    Sequential(Arc<dyn Disk>, VecDeque<String>),
    /// Read by another thread, one ahead of who asks; so many are still to come.
    ReadAhead(Receiver<Result<Segment, OpenError>>, usize),
}

impl SegmentReader {
    pub(crate) fn new(disk: Arc<dyn Disk>, names: VecDeque<String>) -> SegmentReader {
        if names.len() < 2 || !disk.supports_concurrent_reads() {
            return SegmentReader::Sequential(disk, names);
        }
        let (sender, receiver) = sync_channel(1);
        let (reader, to_read) = (disk.clone(), names.clone());
        let read_all = move || {
            for name in to_read {
                let read = read_segment(&*reader, &name);
                let is_last = read.is_err();
                // Nobody asks any more, or nothing behind this can be used.
                if sender.send(read).is_err() || is_last {
                    break;
                }
            }
        };
        match std::thread::Builder::new().name("tenure-reader".into()).spawn(read_all) {
            Ok(_) => SegmentReader::ReadAhead(receiver, names.len()),
            Err(_) => SegmentReader::Sequential(disk, names),
        }
    }

    /// The next one; nothing after the last.
    pub(crate) fn next(&mut self) -> Result<Option<Segment>, OpenError> {
        match self {
            SegmentReader::Sequential(disk, names) => {
                names.pop_front().map(|name| read_segment(&**disk, &name)).transpose()
            }
            SegmentReader::ReadAhead(_, 0) => Ok(None),
            SegmentReader::ReadAhead(receiver, remaining) => {
                *remaining -= 1;
                // A reader that is gone is not the end of the ledger.
                let gone = |_| OpenError::Io(io::Error::other("the thread that reads ahead has ended"));
                receiver.recv().map_err(gone)?.map(Some)
            }
        }
    }
}

fn read_segment(disk: &dyn Disk, name: &str) -> Result<Segment, OpenError> {
    let bytes = disk.read(name)?.unwrap_or_default();
    Ok(Segment::read(&disk.path(name), &bytes)?)
}
