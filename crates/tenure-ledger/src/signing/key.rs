//! The key of a node: its secret half signs, its public half is known by a short id.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use aws_lc_rs::signature::Ed25519KeyPair;
use ed25519_dalek::{Signature, SigningKey, VerifyingKey};
use rustix::fs::{Mode, OFlags};
use thiserror::Error;
use zeroize::Zeroizing;

/// An Ed25519 signature.
pub type SignatureBytes = [u8; 64];

const ID_PREFIX: &[u8; 13] = b"tenure.key.v1";

/// Which key: the first 8 bytes of `BLAKE3("tenure.key.v1" | public key)`, shown in hex.
///
/// It finds a key among those that are trusted already; it is too short to be trust itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub [u8; 8]);

/// The half of a key that everyone may know: it tells what the other half signed.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicKey(VerifyingKey);

/// Bytes or text that are no public key, or a system without randomness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeyError {
    /// It was copied wrongly, or is something else.
    #[error("a public key is 64 hexadecimal digits")]
    NotHex,
    /// No key pair has such a public key, or one under which anything would seem signed.
    #[error("these bytes are no Ed25519 public key that can be trusted")]
    NotAKey,
    /// The operating system gave no randomness to make a key from.
    #[error("the operating system gives no randomness")]
    NoRandomness(#[source] getrandom::Error),
}

impl PublicKey {
    /// Checks bytes as they came in: one form for each key, and none of the few weak keys.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<PublicKey, KeyError> {
        let key = VerifyingKey::from_bytes(bytes).map_err(|_| KeyError::NotAKey)?;
        let is_canonical = key.to_edwards().compress().as_bytes() == bytes;
        if is_canonical && !key.is_weak() { Ok(PublicKey(key)) } else { Err(KeyError::NotAKey) }
    }

    /// Reads what [`fmt::Display`] writes, in either case.
    pub fn parse(text: &str) -> Result<PublicKey, KeyError> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| KeyError::NotHex)?;
        PublicKey::from_bytes(&bytes)
    }

    /// The key as 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    /// Its id.
    pub fn id(&self) -> KeyId {
        let mut bytes = [0; ID_PREFIX.len() + 32];
        bytes[..ID_PREFIX.len()].copy_from_slice(ID_PREFIX);
        bytes[ID_PREFIX.len()..].copy_from_slice(self.as_bytes());
        let [a, b, c, d, e, f, g, h, ..] = *blake3::hash(&bytes).as_bytes();
        KeyId([a, b, c, d, e, f, g, h])
    }

    /// Whether the other half of this key signed `message`. A signature has one form only: see `verify_strict`.
    pub(super) fn is_valid_signature(&self, message: &[u8], signature: &SignatureBytes) -> bool {
        self.0.verify_strict(message, &Signature::from_bytes(signature)).is_ok()
    }
}

/// A node's key pair. The secret half never leaves it but into its file, and is wiped when it is dropped.
pub struct LedgerSigningKey {
    // In one place on the heap: a key that is moved about would leave copies behind that nobody wipes.
    secret: Box<SigningKey>,
    /// The same once more: it signs in half the time, and each durable write is signed before anybody is answered.
    signer: Ed25519KeyPair,
    public: PublicKey,
}

impl LedgerSigningKey {
    /// A new key from the operating system's randomness.
    pub fn generate() -> Result<LedgerSigningKey, KeyError> {
        let mut secret = Zeroizing::new([0; 32]);
        getrandom::fill(secret.as_mut()).map_err(KeyError::NoRandomness)?;
        Ok(LedgerSigningKey::from_secret(&secret))
    }

    /// The key with this secret half. For simulations and tests, which must be repeatable; nobody else
    /// should know 32 such bytes.
    pub fn from_secret(secret: &[u8; 32]) -> LedgerSigningKey {
        let signer = Ed25519KeyPair::from_seed_unchecked(secret).expect("any 32 bytes are a secret key");
        let secret = Box::new(SigningKey::from_bytes(secret));
        let public = PublicKey(secret.verifying_key());
        LedgerSigningKey { secret, signer, public }
    }

    /// The half that others verify with.
    pub fn public_key(&self) -> PublicKey {
        self.public
    }

    /// Its id.
    pub fn id(&self) -> KeyId {
        self.public.id()
    }

    pub(super) fn sign(&self, message: &[u8]) -> SignatureBytes {
        let signature = self.signer.sign(message);
        signature.as_ref().try_into().expect("a signature has 64 bytes")
    }

    pub(super) fn secret(&self) -> &[u8; 32] {
        self.secret.as_bytes()
    }
}

// By hand: the secret half must not be among what a log or a panic shows.
impl fmt::Debug for LedgerSigningKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "NodeKey({})", self.id())
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex::encode(self.as_bytes()))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PublicKey({self})")
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "KeyId({self})")
    }
}

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

#[cfg(test)]
mod tests {
    use ed25519_dalek::Signer as _;

    use super::*;

    #[test]
    fn both_ed25519_implementations_make_the_same_signature() {
        for seed in 0..=255 {
            let key = LedgerSigningKey::from_secret(&[seed; 32]);
            let message = vec![seed; usize::from(seed) * 3];
            let signature = key.sign(&message);
            assert_eq!(signature, key.secret.sign(&message).to_bytes());
            assert!(key.public_key().is_valid_signature(&message, &signature));
        }
    }
}
