//! The file with the tokens that an admin made: digests, never a secret.
//!
//! ```text
//! tenure tokens 1 BLAKE3-OF-THE-REST
//! [{"id":…,"name":…,"digest":…,"scopes":[…],"resources":[…],"createdMs":…,"expiresMs":…},…]
//! ```
//!
//! A token with `"revoked":true` is there only so that a start finds whose leases are still to be ended.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tenure_core::kernel::Principal;
use thiserror::Error;

use super::stored_token::{StoredToken, TokenClockReading};
use super::{TokenScope, TokenScopes};
use crate::secret_file::{self, SecretFileError};

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
