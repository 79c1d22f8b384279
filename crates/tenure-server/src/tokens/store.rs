//! Every token that an admin made.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::{Mutex, RwLock};
use serde::{Deserialize, Serialize};
use tenure_core::kernel::Principal;
use thiserror::Error;
use zeroize::Zeroizing;

use super::lease_token_key::{digest, is_same};
use super::{StoredToken, TokenClockReading, TokenScope, TokenScopes};
use crate::secret_file;
use crate::secret_file::SecretFileError;

const FILE: &str = "api.tokens";
const PREFIX: &str = "tnr_";
const MAX_TOKENS: usize = 100_000;

type ByDigest = HashMap<[u8; 32], Arc<StoredToken>>;

/// What a new token is to be.
pub(crate) struct NewToken {
    pub(crate) principal: Principal,
    pub(crate) scopes: TokenScopes,
    pub(crate) resources: Vec<String>,
    pub(crate) expires_in_ms: Option<u64>,
}

/// Why there is no new token.
#[derive(Debug)]
pub(crate) enum CreateError {
    /// A living token has this name, or one whose leases are still to be ended.
    NameTaken,
    /// There are as many as may be.
    TooMany,
    /// It could not be written down, so it does not count.
    File(SecretFileError),
}

/// Every token that an admin made, and the file they are in.
pub(crate) struct TokenStore {
    path: PathBuf,
    by_digest: RwLock<ByDigest>,
    /// Whoever changes the file has this, so that the last one to write has seen every other.
    write_lock: Mutex<()>,
}

impl TokenStore {
    /// The tokens in a data directory.
    pub(crate) fn open(directory: &Path, now: TokenClockReading) -> Result<Self, TokenFileError> {
        let path = directory.join(FILE);
        let tokens = read(&path, now)?;
        let by_digest = tokens.into_iter().map(|token| (*token.digest.as_bytes(), Arc::new(token)));
        Ok(Self { path, by_digest: RwLock::new(by_digest.collect()), write_lock: Mutex::default() })
    }

    /// The token with this secret, if it is good. It is noted as used.
    ///
    /// The secret is hashed first. So what a look-up takes depends on a digest, of which nobody can choose a part, and
    /// the digests are compared in constant time.
    pub(crate) fn find(&self, presented: &str, now: TokenClockReading) -> Option<Arc<StoredToken>> {
        let digest = digest(presented);
        let found = self.by_digest.read().get(digest.as_bytes()).cloned()?;
        if !is_same(&found.digest, &digest) || !found.is_valid(now) {
            return None;
        }
        found.last_used_ms.store(now.wall_ms, Ordering::Relaxed);
        Some(found)
    }

    /// Every good token, oldest first.
    pub(crate) fn list(&self, now: TokenClockReading) -> Vec<Arc<StoredToken>> {
        let mut all: Vec<_> =
            self.by_digest.read().values().filter(|token| token.is_valid(now)).cloned().collect();
        all.sort_unstable_by(|one, other| (one.created_ms, &one.id).cmp(&(other.created_ms, &other.id)));
        all
    }

    /// Makes a token: what may be known of it, and its secret. It waits for the disk.
    pub(crate) fn create(
        &self,
        request: NewToken,
        now: TokenClockReading,
    ) -> Result<(Arc<StoredToken>, Zeroizing<String>), CreateError> {
        let _alone = self.write_lock.lock();
        let mut tokens = self.by_digest.read().clone();
        // What is over is forgotten now. What was just revoked is not: whoever does that may have to ask again, and what
        // belongs to that name is still being ended.
        tokens.retain(|_, token| token.is_valid(now) || token.is_revoked());
        if tokens.values().any(|token| token.principal == request.principal) {
            return Err(CreateError::NameTaken);
        }
        if tokens.len() >= MAX_TOKENS {
            return Err(CreateError::TooMany);
        }
        let mut secret = Zeroizing::new(String::with_capacity(64));
        secret.push_str(PREFIX);
        let random = secret_file::random::<32>().map_err(CreateError::File)?;
        URL_SAFE_NO_PAD.encode_string(random.as_ref(), &mut secret);
        let id = u64::from_be_bytes(*secret_file::random::<8>().map_err(CreateError::File)?);
        let expires_ms = request.expires_in_ms.map(|span| now.wall_ms.saturating_add(span));
        let token = Arc::new(StoredToken {
            id: format!("{id:016x}"),
            principal: request.principal,
            scopes: request.scopes,
            resources: request.resources.into(),
            created_ms: now.wall_ms,
            expires_ms,
            digest: digest(&secret),
            deadline: StoredToken::deadline(expires_ms, now),
            revoked: false.into(),
            last_used_ms: 0.into(),
        });
        tokens.insert(*token.digest.as_bytes(), token.clone());
        // It counts when it is durable: a token that was shown must not be forgotten by a crash.
        self.replace(tokens, now).map_err(CreateError::File)?;
        Ok((token, secret))
    }

    /// From now on this token counts no more; it is still known, so that this can be asked for again.
    pub(crate) fn revoke(&self, id: &str) -> Option<Arc<StoredToken>> {
        let token = self.by_digest.read().values().find(|token| token.id == id).cloned()?;
        token.revoked.store(true, Ordering::Release);
        Some(token)
    }

    /// Those that were revoked and are not forgotten: what belongs to them is still to be ended.
    pub(crate) fn revoked(&self) -> Vec<Arc<StoredToken>> {
        self.by_digest.read().values().filter(|token| token.is_revoked()).cloned().collect()
    }

    /// Writes down which tokens are revoked, so that they are after a crash too. It waits for the disk.
    pub(crate) fn persist_revocations(&self, now: TokenClockReading) -> Result<(), SecretFileError> {
        let _alone = self.write_lock.lock();
        let tokens = self.by_digest.read().clone();
        self.replace(tokens, now)
    }

    /// Forgets a token, for good. It waits for the disk.
    pub(crate) fn forget(&self, id: &str, now: TokenClockReading) -> Result<(), SecretFileError> {
        let _alone = self.write_lock.lock();
        let mut remaining = self.by_digest.read().clone();
        remaining.retain(|_, token| token.id != id);
        self.replace(remaining, now)
    }

    fn replace(&self, tokens: ByDigest, now: TokenClockReading) -> Result<(), SecretFileError> {
        write(&self.path, tokens.values().filter(|token| token.is_valid(now) || token.is_revoked()))?;
        *self.by_digest.write() = tokens;
        Ok(())
    }
}

const START: &str = "tenure tokens ";
const VERSION: &str = "1";
/// More than as many tokens as there may be take.
const MAX_BYTES: u64 = 256 << 20;

/// Why the tokens of a data directory are not known. Each says what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TokenFileError {
    /// The file was written by another version.
    #[error("{} has the form {found:?}, which this version does not know; start the version that wrote it", path.display())]
    Version {
        path: PathBuf,
        /// Which form it says that it has.
        found: String,
    },
    /// It is not as it was written.
    #[error("{} is damaged, so nobody knows which tokens are good; put back a copy, or delete it: then no token is \
             good but the admin's, and others must be made anew", path.display())]
    Damaged { path: PathBuf },
    /// The file cannot be read or written.
    #[error(transparent)]
    File(#[from] SecretFileError),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TokenRecord {
    id: String,
    name: String,
    digest: String,
    scopes: Vec<String>,
    resources: Vec<String>,
    created_ms: u64,
    expires_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    revoked: bool,
}

/// Reads the tokens in a file; none if there is no such file.
pub(super) fn read(path: &Path, now: TokenClockReading) -> Result<Vec<StoredToken>, TokenFileError> {
    let damaged = || TokenFileError::Damaged { path: path.into() };
    let text = secret_file::read_limited(path, MAX_BYTES).map_err(|error| match error {
        SecretFileError::Io { source, .. } if source.kind() == io::ErrorKind::InvalidData => damaged(),
        error => error.into(),
    })?;
    let Some(text) = text else { return Ok(Vec::new()) };
    let (first, rest) = text.split_once('\n').ok_or_else(damaged)?;
    let (version, sum) =
        first.strip_prefix(START).and_then(|rest| rest.split_once(' ')).ok_or_else(damaged)?;
    if version != VERSION {
        let found: String = version.chars().take(32).collect();
        return Err(TokenFileError::Version { path: path.into(), found });
    }
    if *blake3::hash(rest.as_bytes()).to_hex() != *sum {
        return Err(damaged());
    }
    let lines: Vec<TokenRecord> = serde_json::from_str(rest).map_err(|_| damaged())?;
    lines.into_iter().map(|line| from_record(line, now).ok_or_else(damaged)).collect()
}

/// Writes the tokens into a file that is then there whole, and durable.
pub(super) fn write<'a>(
    path: &Path,
    tokens: impl Iterator<Item = &'a Arc<StoredToken>>,
) -> Result<(), SecretFileError> {
    let lines: Vec<_> = tokens.map(|token| line(token)).collect();
    let text = serde_json::to_string(&lines).expect("text and numbers can be written as JSON");
    let sum = blake3::hash(text.as_bytes()).to_hex();
    secret_file::write(path, &format!("{START}{VERSION} {sum}\n{text}"))
}

fn line(token: &StoredToken) -> TokenRecord {
    TokenRecord {
        id: token.id.clone(),
        name: token.principal.as_str().to_owned(),
        digest: token.digest.to_hex().to_string(),
        scopes: token.scopes.explicit_scopes().map(|scope| scope.as_str().to_owned()).collect(),
        resources: token.resources.to_vec(),
        created_ms: token.created_ms,
        expires_ms: token.expires_ms,
        revoked: token.is_revoked(),
    }
}

fn from_record(line: TokenRecord, now: TokenClockReading) -> Option<StoredToken> {
    Some(StoredToken {
        id: line.id,
        principal: Principal::parse(&line.name).ok()?,
        scopes: line.scopes.iter().map(|name| TokenScope::parse(name)).collect::<Option<TokenScopes>>()?,
        resources: line.resources.into(),
        created_ms: line.created_ms,
        expires_ms: line.expires_ms,
        digest: blake3::Hash::from_hex(&line.digest).ok()?,
        deadline: StoredToken::deadline(line.expires_ms, now),
        revoked: line.revoked.into(),
        last_used_ms: 0.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::TokenScope;

    const NOW: TokenClockReading = TokenClockReading { wall_ms: 1_000_000, boot_us: 5_000_000 };

    fn later(wall_ms: u64, boot_ms: u64) -> TokenClockReading {
        TokenClockReading { wall_ms: NOW.wall_ms + wall_ms, boot_us: NOW.boot_us + boot_ms * 1_000 }
    }

    fn new_token(name: &str, expires_in_ms: Option<u64>) -> NewToken {
        let principal = Principal::parse(name).unwrap();
        let scopes = TokenScopes::from_iter([TokenScope::LeasesRead]);
        NewToken { principal, scopes, resources: vec!["deploy:".into()], expires_in_ms }
    }

    #[test]
    fn a_token_is_found_by_its_secret_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let store = TokenStore::open(folder.path(), NOW).unwrap();
        let (made, secret) = store.create(new_token("ci", None), NOW).unwrap();
        assert!(secret.len() == 47 && secret.starts_with("tnr_"));
        for store in [store, TokenStore::open(folder.path(), NOW).unwrap()] {
            let found = store.find(&secret, later(7, 7)).unwrap();
            assert_eq!((&found.id, found.principal.as_str()), (&made.id, "ci"));
            assert_eq!((found.scopes, &*found.resources), (made.scopes, &["deploy:".to_owned()][..]));
            assert_eq!((found.created_ms, found.last_used_ms()), (1_000_000, Some(1_000_007)));
            for wrong in ["", "tnr_", &secret[1..], &format!("{}x", *secret), &made.id] {
                assert!(store.find(wrong, NOW).is_none());
            }
        }
        let text = std::fs::read_to_string(folder.path().join(FILE)).unwrap();
        assert!(!text.contains(&secret[4..]), "only a digest is kept");
    }

    #[test]
    fn a_token_expires_by_either_clock_and_frees_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let store = TokenStore::open(folder.path(), NOW).unwrap();
        let (_, secret) = store.create(new_token("ci", Some(500)), NOW).unwrap();
        assert!(store.find(&secret, later(499, 499)).is_some());
        assert!(store.find(&secret, later(500, 0)).is_none(), "the date has come");
        assert!(store.find(&secret, later(0, 500)).is_none(), "somebody set the wall clock back");
        assert!(matches!(store.create(new_token("ci", None), later(499, 499)), Err(CreateError::NameTaken)));
        assert!(store.create(new_token("ci", None), later(500, 500)).is_ok());
        assert_eq!(store.list(later(500, 500)).len(), 1);
        let reopened = TokenStore::open(folder.path(), later(0, 0)).unwrap();
        assert!(reopened.find(&secret, later(0, 0)).is_none(), "what is over is forgotten");
    }

    #[test]
    fn a_revoked_token_is_invalid_and_can_be_removed() {
        let folder = tempfile::tempdir().unwrap();
        let store = TokenStore::open(folder.path(), NOW).unwrap();
        let (made, secret) = store.create(new_token("ci", None), NOW).unwrap();
        assert!(store.revoke("0").is_none() && made.is_valid_now());
        assert!(store.revoke(&made.id).is_some() && !made.is_valid_now());
        assert!(store.find(&secret, NOW).is_none() && store.list(NOW).is_empty());
        assert!(store.revoke(&made.id).is_some(), "it can be asked for again until it is done");
        assert!(matches!(store.create(new_token("ci", None), NOW), Err(CreateError::NameTaken)));
        store.persist_revocations(NOW).unwrap();
        let reopened = TokenStore::open(folder.path(), NOW).unwrap();
        assert_eq!(reopened.revoked().iter().map(|token| &token.id).collect::<Vec<_>>(), [&made.id]);
        assert!(reopened.find(&secret, NOW).is_none() && reopened.list(NOW).is_empty());
        drop(reopened);
        store.forget(&made.id, NOW).unwrap();
        assert!(store.revoke(&made.id).is_none());
        let reopened = TokenStore::open(folder.path(), NOW).unwrap();
        assert!(reopened.find(&secret, NOW).is_none() && reopened.revoked().is_empty());
    }

    #[test]
    fn a_damaged_token_file_is_rejected() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let store = TokenStore::open(folder.path(), NOW).unwrap();
        store.create(new_token("ci", Some(500)), NOW).unwrap();
        let path = folder.path().join(FILE);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o600);
        let whole = std::fs::read(&path).unwrap();
        // The end of the last line is no part of what is written.
        let length = whole.len() - 1;
        for place in 0..length {
            std::fs::write(&path, &whole[..place]).unwrap();
            assert!(TokenStore::open(folder.path(), NOW).is_err(), "cut at {place}");
            for bit in [1, 128] {
                let mut damaged = whole.clone();
                damaged[place] ^= bit;
                std::fs::write(&path, &damaged).unwrap();
                let refused = TokenStore::open(folder.path(), NOW).map(|_| ()).unwrap_err();
                let text = refused.to_string();
                assert!(text.contains("api.tokens") && text.contains(';'), "{text}");
            }
        }
        let newer = String::from_utf8(whole).unwrap().replacen("tokens 1", "tokens 2", 1);
        std::fs::write(&path, newer).unwrap();
        let refused = TokenStore::open(folder.path(), NOW).map(|_| ()).unwrap_err();
        assert!(matches!(refused, TokenFileError::Version { .. }), "{refused}");
    }
}
