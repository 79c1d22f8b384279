//! Secrets in files that only their owner can read.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use thiserror::Error;
use zeroize::Zeroizing;

/// More than any secret of ours has.
const MAX_BYTES: u64 = 1_024;

/// Why there is no secret from, or in, a file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SecretFileError {
    /// Others could read it. Whether they have is for people to judge.
    #[error("others can reach {} (mode {mode:04o}); if nobody has read it, run: chmod 600 FILE; else delete it, \
             and a new one is made at the next start", path.display())]
    InsecurePermissions { path: PathBuf, mode: u32 },
    #[error("{} does not hold {what}; put back a copy, or delete it, and a new one is made at the next start",
            path.display())]
    Malformed { path: PathBuf, what: &'static str },
    /// The file cannot be read or written.
    #[error("{} cannot be {done}", path.display())]
    Io {
        path: PathBuf,
        done: &'static str,
        #[source]
        source: io::Error,
    },
    /// The system has no random bytes.
    #[error("the system gives no random bytes: {0}")]
    NoRandomness(String),
}

/// Reads the secret in a file, without the end of its line; `None` if there is no such file.
pub(crate) fn read(path: &Path) -> Result<Option<Zeroizing<String>>, SecretFileError> {
    read_limited(path, MAX_BYTES)
}

/// The same, for a file with more than one secret.
pub(crate) fn read_limited(
    path: &Path,
    max_bytes: u64,
) -> Result<Option<Zeroizing<String>>, SecretFileError> {
    let failed = |source| SecretFileError::Io { path: path.into(), done: "read", source };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    // Asked of the open file: the path could name another one by now.
    let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(SecretFileError::InsecurePermissions { path: path.into(), mode });
    }
    // With room for everything: a buffer that grew would leave copies of the secret behind.
    let mut text = Zeroizing::new(String::with_capacity(2 * 1_024));
    file.take(max_bytes).read_to_string(&mut text).map_err(failed)?;
    let length = text.trim_end().len();
    text.truncate(length);
    Ok(Some(text))
}

/// Writes a secret into a file that is then there whole, and durable. The caller has the directory's lock.
pub(crate) fn write(path: &Path, secret: &str) -> Result<(), SecretFileError> {
    write_beside(path, secret).map_err(|source| SecretFileError::Io {
        path: path.into(),
        done: "written",
        source,
    })
}

fn write_beside(path: &Path, secret: &str) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = Path::new(&beside);
    // One that is left from a crash may have other permissions.
    match fs::remove_file(beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(beside)?;
    file.write_all(secret.as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    fs::rename(beside, path)?;
    // A new name is durable only when its folder is.
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}

/// Random bytes from the system.
pub(crate) fn random<const LENGTH: usize>() -> Result<Zeroizing<[u8; LENGTH]>, SecretFileError> {
    let mut bytes = Zeroizing::new([0; LENGTH]);
    getrandom::fill(bytes.as_mut()).map_err(|error| SecretFileError::NoRandomness(error.to_string()))?;
    Ok(bytes)
}
