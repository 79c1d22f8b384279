//! What one event of the system means.

use rustix::fs::inotify::{ReadFlags, WatchFlags};

use super::Kind;

/// What is asked of each folder. A file that has no name any more is nobody's.
pub(super) const WATCHED: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::DONT_FOLLOW)
    .union(WatchFlags::EXCL_UNLINK);

/// What is asked of the folder where git keeps its index.
pub(super) const WATCHED_OF_GIT: WatchFlags =
    WatchFlags::CREATE.union(WatchFlags::MOVE).union(WatchFlags::DELETE).union(WatchFlags::ONLYDIR);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Something happened to a name in the folder, which is no folder itself.
    Name(Kind),
    /// A folder was made in the folder.
    FolderMade,
    /// A folder was moved into the folder.
    FolderArrived,
    /// A folder was moved out of the folder.
    FolderLeft,
    /// The folder itself was removed or moved, or its disk was taken away. The one above it tells that too, if it is watched.
    ItselfGone,
    /// The folder is watched no longer.
    WatchEnded,
    Missed,
    /// Nothing that counts. A folder that is removed was empty, and whose rights it has is nobody's file.
    Nothing,
}

pub(super) fn meaning(flags: ReadFlags) -> Meaning {
    let has = |flag: ReadFlags| flags.intersects(flag);
    if has(ReadFlags::QUEUE_OVERFLOW) {
        return Meaning::Missed;
    }
    if has(ReadFlags::IGNORED) {
        return Meaning::WatchEnded;
    }
    if has(ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::UNMOUNT) {
        return Meaning::ItselfGone;
    }
    if has(ReadFlags::ISDIR) {
        return match () {
            () if has(ReadFlags::CREATE) => Meaning::FolderMade,
            () if has(ReadFlags::MOVED_TO) => Meaning::FolderArrived,
            () if has(ReadFlags::MOVED_FROM) => Meaning::FolderLeft,
            () => Meaning::Nothing,
        };
    }
    match () {
        () if has(ReadFlags::CREATE) => Meaning::Name(Kind::Made),
        () if has(ReadFlags::MOVED_TO) => Meaning::Name(Kind::Arrived),
        () if has(ReadFlags::DELETE | ReadFlags::MOVED_FROM) => Meaning::Name(Kind::Gone),
        () if has(ReadFlags::MODIFY | ReadFlags::CLOSE_WRITE) => Meaning::Name(Kind::Written),
        () if has(ReadFlags::ATTRIB) => Meaning::Name(Kind::Attributes),
        () => Meaning::Nothing,
    }
}

/// Whether git begins or ends to be at work, by what happens to the lock of its index.
pub(super) fn git_is_at_work(flags: ReadFlags) -> Option<bool> {
    if flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) {
        return Some(true);
    }
    flags.intersects(ReadFlags::DELETE | ReadFlags::MOVED_FROM).then_some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_event_is_classified() {
        for (flags, kind) in [
            (ReadFlags::CREATE, Kind::Made),
            (ReadFlags::MOVED_TO, Kind::Arrived),
            (ReadFlags::MODIFY, Kind::Written),
            (ReadFlags::CLOSE_WRITE, Kind::Written),
            (ReadFlags::ATTRIB, Kind::Attributes),
            (ReadFlags::DELETE, Kind::Gone),
            (ReadFlags::MOVED_FROM, Kind::Gone),
        ] {
            assert_eq!(meaning(flags), Meaning::Name(kind), "{flags:?}");
        }
        for flags in [ReadFlags::OPEN, ReadFlags::ACCESS, ReadFlags::CLOSE_NOWRITE, ReadFlags::empty()] {
            assert_eq!(meaning(flags), Meaning::Nothing, "{flags:?}");
        }
    }

    #[test]
    fn folder_events_are_distinguished_from_file_events() {
        let of = |flags| meaning(flags | ReadFlags::ISDIR);
        assert_eq!(of(ReadFlags::CREATE), Meaning::FolderMade);
        assert_eq!(of(ReadFlags::MOVED_TO), Meaning::FolderArrived);
        assert_eq!(of(ReadFlags::MOVED_FROM), Meaning::FolderLeft);
        assert_eq!(of(ReadFlags::DELETE), Meaning::Nothing);
        assert_eq!(of(ReadFlags::ATTRIB), Meaning::Nothing);
        assert_eq!(of(ReadFlags::MOVE_SELF), Meaning::ItselfGone);
    }

    #[test]
    fn overflow_and_removed_watches_are_not_classified_as_changes() {
        assert_eq!(meaning(ReadFlags::QUEUE_OVERFLOW), Meaning::Missed);
        assert_eq!(meaning(ReadFlags::IGNORED), Meaning::WatchEnded);
        assert_eq!(meaning(ReadFlags::UNMOUNT), Meaning::ItselfGone);
        assert_eq!(meaning(ReadFlags::DELETE_SELF), Meaning::ItselfGone);
    }

    #[test]
    fn git_is_active_while_its_index_lock_exists() {
        assert_eq!(git_is_at_work(ReadFlags::CREATE), Some(true));
        assert_eq!(git_is_at_work(ReadFlags::MOVED_FROM), Some(false));
        assert_eq!(git_is_at_work(ReadFlags::DELETE), Some(false));
        assert_eq!(git_is_at_work(ReadFlags::IGNORED), None);
    }
}
