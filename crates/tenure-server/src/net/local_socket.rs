//! The local socket: in a folder that only its owner can enter, and never in the place of a living server's.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;
use thiserror::Error;
use tokio::net::UnixListener;

/// Where the local socket is, and for whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalSocketSettings {
    pub path: PathBuf,
    /// Who else may use it, by user id; its owner and root always may. They may read and write leases, and no more.
    pub users: Vec<u32>,
    /// Whether somebody chose it. One that nobody chose is done without where another server has it.
    pub is_explicit: bool,
}

/// Why there is no local socket. Each says what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LocalSocketError {
    #[error("another server listens on {}; stop it, or choose another --socket, or none", .0.display())]
    Taken(PathBuf),
    #[error("{} is there and is no socket; choose another --socket", .0.display())]
    NotASocket(PathBuf),
    /// Others could put something in its place.
    #[error("{} is not a folder that only its owner can {what} (it belongs to user {owner}, mode {mode:04o}); choose \
             a --socket in a folder of your own", path.display())]
    InsecureFolder { path: PathBuf, what: &'static str, owner: u32, mode: u32 },
    #[error("cannot listen on {}; choose another --socket, or none", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// A local socket that is ours. It goes away with this.
pub(crate) struct LocalSocket {
    pub(crate) path: PathBuf,
    /// Which file it is: another server may have put its own there meanwhile.
    identity: (u64, u64),
    /// Whoever has the lock may replace the socket.
    _lock: File,
}

impl LocalSocket {
    /// Listens. The socket of a dead server is replaced.
    pub(crate) fn listen(place: &LocalSocketSettings) -> Result<(Self, UnixListener), LocalSocketError> {
        let path = &place.path;
        let failed = |source| LocalSocketError::Io { path: path.clone(), source };
        check_folder(path.parent().unwrap_or(Path::new(".")), !place.users.is_empty())?;
        let lock = lock(path)?;
        match fs::symlink_metadata(path) {
            Ok(found) if !found.file_type().is_socket() => {
                return Err(LocalSocketError::NotASocket(path.clone()));
            }
            // It may be another program's, which knows nothing of our lock.
            Ok(_) if UnixStream::connect(path).is_ok() => return Err(LocalSocketError::Taken(path.clone())),
            Ok(_) => fs::remove_file(path).map_err(failed)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        let listener = UnixListener::bind(path).map_err(failed)?;
        // Until here the folder has kept others out, or they are let in anyway.
        let mode = if place.users.is_empty() { 0o600 } else { 0o666 };
        fs::set_permissions(path, Permissions::from_mode(mode)).map_err(failed)?;
        let found = fs::symlink_metadata(path).map_err(failed)?;
        Ok((Self { path: path.clone(), identity: (found.dev(), found.ino()), _lock: lock }, listener))
    }
}

impl Drop for LocalSocket {
    fn drop(&mut self) {
        let is_ours = |found: &fs::Metadata| (found.dev(), found.ino()) == self.identity;
        if fs::symlink_metadata(&self.path).is_ok_and(|found| is_ours(&found)) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The folder is made where it is missing. One that is there is never changed: it may be for something else too.
fn check_folder(folder: &Path, has_users: bool) -> Result<(), LocalSocketError> {
    let failed = |source| LocalSocketError::Io { path: folder.into(), source };
    let mode = if has_users { 0o711 } else { 0o700 };
    DirBuilder::new().recursive(true).mode(mode).create(folder).map_err(failed)?;
    let found = fs::metadata(folder).map_err(failed)?;
    let (owner, mode) = (found.uid(), found.mode() & 0o7777);
    let (what, forbidden) = if has_users { ("change", 0o022) } else { ("enter", 0o077) };
    let is_ours = owner == geteuid().as_raw();
    if is_ours && mode & forbidden == 0 {
        return Ok(());
    }
    Err(LocalSocketError::InsecureFolder { path: folder.into(), what, owner, mode })
}

fn lock(path: &Path) -> Result<File, LocalSocketError> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".lock");
    let failed = |source| LocalSocketError::Io { path: path.into(), source };
    // Not through a link that somebody laid there.
    let flags = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0);
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true).mode(0o600).custom_flags(flags);
    let file = options.open(beside).map_err(failed)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(LocalSocketError::Taken(path.into())),
        Err(error) => Err(failed(error.into())),
    }
}
