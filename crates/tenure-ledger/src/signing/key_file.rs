//! Where a node keeps its key: one line in a file that nobody else can read.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use thiserror::Error;
use zeroize::Zeroizing;

use super::key::{KeyError, LedgerSigningKey};

/// What the file begins with; 64 hexadecimal digits and the end of the line follow.
const PREFIX: &[u8; 19] = b"tenure-node-key-v1 ";

/// How long the file is.
const LENGTH: usize = PREFIX.len() + 64 + 1;

/// Why there is no key from, or in, a file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KeyFileError {
    /// A key is there already, and it stays: what it signed could not be verified without it.
    #[error("{path} exists already; it was not touched", path = path.display())]
    Exists {
        /// Which file.
        path: PathBuf,
    },
    /// Others could read the secret. Whether they have is for people to judge.
    #[error("others can reach the key in {path} (mode {mode:04o}); run: chmod 600 {quoted}", path = path.display())]
    TooPermissive {
        /// Which file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
        /// Its path, as a shell reads it.
        quoted: String,
    },
    /// It is not a key file, or one that was damaged. Put back a copy; a new key is another node.
    #[error("{path} is not a key file of this version", path = path.display())]
    InvalidKeyFile {
        /// Which file.
        path: PathBuf,
    },
    /// The file cannot be read or written.
    #[error("{path} cannot be {action}", path = path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// No key could be made.
    #[error(transparent)]
    Key(#[from] KeyError),
}

impl LedgerSigningKey {
    /// Makes a new key and keeps it in a new file at `path`, which only its owner can read. The file is
    /// there whole or not at all, and durable when this returns.
    pub fn create(path: &Path) -> Result<LedgerSigningKey, KeyFileError> {
        let key = LedgerSigningKey::generate()?;
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::AlreadyExists => KeyFileError::Exists { path: path.into() },
            _ => KeyFileError::Io { path: path.into(), action: "written", source },
        };
        // Under another name first, for a crash in the middle must not leave half a key. The name is the
        // key's own, so that two that start at once do not write into one file.
        let mut draft = path.as_os_str().to_owned();
        draft.push(format!(".{}", key.id()));
        let draft = Path::new(&draft);
        let written = write_new(draft, &key).and_then(|()| fs::hard_link(draft, path));
        let removed = fs::remove_file(draft);
        written.and(removed).and_then(|()| sync_folder(path)).map_err(failed)?;
        Ok(key)
    }

    /// Reads the key at `path`; refuses one that others than its owner can reach.
    pub fn load(path: &Path) -> Result<LedgerSigningKey, KeyFileError> {
        let failed = |source| KeyFileError::Io { path: path.into(), action: "read", source };
        // Not waiting: a pipe in the place of the file would keep the start waiting for ever.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut file =
            File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(|error| failed(error.into()))?);
        // Asked of the open file: the path could name another one by now.
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Err(KeyFileError::InvalidKeyFile { path: path.into() });
        }
        let mode = metadata.permissions().mode() & 0o7777;
        if mode & 0o077 != 0 {
            return Err(KeyFileError::TooPermissive { path: path.into(), mode, quoted: quoted(path) });
        }
        let mut bytes = Zeroizing::new([0; LENGTH + 1]);
        let length = read_up_to(&mut file, &mut bytes).map_err(failed)?;
        parse(&bytes[..length]).ok_or_else(|| KeyFileError::InvalidKeyFile { path: path.into() })
    }
}

/// Reads until `bytes` are full or the file ends. A buffer of fixed size, as one that grew would leave copies
/// of the secret behind; of one byte more than a key file has, to see that there is none.
fn read_up_to(file: &mut File, bytes: &mut [u8; LENGTH + 1]) -> io::Result<usize> {
    let mut length = 0;
    loop {
        match file.read(&mut bytes[length..])? {
            0 => return Ok(length),
            more => length += more,
        }
    }
}

fn parse(bytes: &[u8]) -> Option<LedgerSigningKey> {
    let digits = bytes.strip_prefix(PREFIX)?.strip_suffix(b"\n")?;
    let mut secret = Zeroizing::new([0; 32]);
    hex::decode_to_slice(digits, secret.as_mut()).ok()?;
    Some(LedgerSigningKey::from_secret(&secret))
}

fn write_new(path: &Path, key: &LedgerSigningKey) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let mut line = Zeroizing::new(Vec::with_capacity(LENGTH));
    line.extend_from_slice(PREFIX);
    line.resize(LENGTH, b'\n');
    // In place: no copy of the secret is left behind.
    hex::encode_to_slice(key.secret(), &mut line[PREFIX.len()..LENGTH - 1])
        .expect("two digits for each byte");
    file.write_all(&line)?;
    file.sync_all()
}

/// A new name is durable only when its folder is.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    File::open(folder)?.sync_all()
}

/// The path as one word of a shell command, whatever is in it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "/._-".contains(character);
    if text.starts_with('/') && text.chars().all(is_plain) {
        text
    } else {
        format!("-- '{}'", text.replace('\'', r"'\''"))
    }
}
