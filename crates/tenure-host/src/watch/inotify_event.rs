//! What one event of the system means.

use rustix::fs::inotify::{ReadFlags, WatchFlags};

use super::ChangeKind;

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
pub(super) enum InotifyEventKind {
    /// Something happened to a name in the folder, which is no folder itself.
    Name(ChangeKind),
    /// A folder was made in the folder.
    FolderCreated,
    /// A folder was moved into the folder.
    FolderMovedIn,
    /// A folder was moved out of the folder.
    FolderMovedOut,
    /// The folder itself was removed or moved, or its disk was taken away. The one above it tells that too, if it is watched.
    WatchedFolderGone,
    /// The folder is watched no longer.
    WatchEnded,
    QueueOverflow,
    /// Nothing that counts. A folder that is removed was empty, and whose rights it has is nobody's file.
    Nothing,
}

pub(super) fn classify_event(flags: ReadFlags) -> InotifyEventKind {
    let has = |flag: ReadFlags| flags.intersects(flag);
    if has(ReadFlags::QUEUE_OVERFLOW) {
        return InotifyEventKind::QueueOverflow;
    }
    if has(ReadFlags::IGNORED) {
        return InotifyEventKind::WatchEnded;
    }
    if has(ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::UNMOUNT) {
        return InotifyEventKind::WatchedFolderGone;
    }
    if has(ReadFlags::ISDIR) {
        return match () {
            () if has(ReadFlags::CREATE) => InotifyEventKind::FolderCreated,
            () if has(ReadFlags::MOVED_TO) => InotifyEventKind::FolderMovedIn,
            () if has(ReadFlags::MOVED_FROM) => InotifyEventKind::FolderMovedOut,
            () => InotifyEventKind::Nothing,
        };
    }
    match () {
        () if has(ReadFlags::CREATE) => InotifyEventKind::Name(ChangeKind::Created),
        () if has(ReadFlags::MOVED_TO) => InotifyEventKind::Name(ChangeKind::MovedIn),
        () if has(ReadFlags::DELETE | ReadFlags::MOVED_FROM) => InotifyEventKind::Name(ChangeKind::Removed),
        () if has(ReadFlags::MODIFY | ReadFlags::CLOSE_WRITE) => InotifyEventKind::Name(ChangeKind::Written),
        () if has(ReadFlags::ATTRIB) => InotifyEventKind::Name(ChangeKind::Attributes),
        () => InotifyEventKind::Nothing,
    }
}

/// Whether git begins or ends to be at work, by what happens to the lock of its index.
pub(super) fn index_lock_state(flags: ReadFlags) -> Option<bool> {
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
            (ReadFlags::CREATE, ChangeKind::Created),
            (ReadFlags::MOVED_TO, ChangeKind::MovedIn),
            (ReadFlags::MODIFY, ChangeKind::Written),
            (ReadFlags::CLOSE_WRITE, ChangeKind::Written),
            (ReadFlags::ATTRIB, ChangeKind::Attributes),
            (ReadFlags::DELETE, ChangeKind::Removed),
            (ReadFlags::MOVED_FROM, ChangeKind::Removed),
        ] {
            assert_eq!(classify_event(flags), InotifyEventKind::Name(kind), "{flags:?}");
        }
        for flags in [ReadFlags::OPEN, ReadFlags::ACCESS, ReadFlags::CLOSE_NOWRITE, ReadFlags::empty()] {
            assert_eq!(classify_event(flags), InotifyEventKind::Nothing, "{flags:?}");
        }
    }

    #[test]
    fn folder_events_are_distinguished_from_file_events() {
        let of = |flags| classify_event(flags | ReadFlags::ISDIR);
        assert_eq!(of(ReadFlags::CREATE), InotifyEventKind::FolderCreated);
        assert_eq!(of(ReadFlags::MOVED_TO), InotifyEventKind::FolderMovedIn);
        assert_eq!(of(ReadFlags::MOVED_FROM), InotifyEventKind::FolderMovedOut);
        assert_eq!(of(ReadFlags::DELETE), InotifyEventKind::Nothing);
        assert_eq!(of(ReadFlags::ATTRIB), InotifyEventKind::Nothing);
        assert_eq!(of(ReadFlags::MOVE_SELF), InotifyEventKind::WatchedFolderGone);
    }

    #[test]
    fn overflow_and_removed_watches_are_not_classified_as_changes() {
        assert_eq!(classify_event(ReadFlags::QUEUE_OVERFLOW), InotifyEventKind::QueueOverflow);
        assert_eq!(classify_event(ReadFlags::IGNORED), InotifyEventKind::WatchEnded);
        assert_eq!(classify_event(ReadFlags::UNMOUNT), InotifyEventKind::WatchedFolderGone);
        assert_eq!(classify_event(ReadFlags::DELETE_SELF), InotifyEventKind::WatchedFolderGone);
    }

    #[test]
    fn git_is_active_while_its_index_lock_exists() {
        assert_eq!(index_lock_state(ReadFlags::CREATE), Some(true));
        assert_eq!(index_lock_state(ReadFlags::MOVED_FROM), Some(false));
        assert_eq!(index_lock_state(ReadFlags::DELETE), Some(false));
        assert_eq!(index_lock_state(ReadFlags::IGNORED), None);
    }
}
