//! A lease's terms and their signature as one text that can be checked anywhere.
//!
//! ```text
//! base64url( 1 | ledger id, 16 | fence, 8 | mode, 1 | at, 8 | expires at, 8 | resource, text | holder, text
//!            | signature of the lease )
//! ```
//!
//! The passport of a lease with authority begins with 2, and has three parts more before the signature:
//!
//! ```text
//! parent's fence, 8 (0 is none) | scope, with its length before it in 4 | budget, 4 times 8
//! ```
//!
//! The lease id is not in it: it follows from ledger id and fence. Nor is a public key: whoever checks a
//! passport with the key that it brings along has checked nothing.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tenure_core::authority::{Authority, Budget, LeaseScope};
use tenure_core::kernel::{Fence, Holder, Resource, Tick};
use tenure_core::rules::{InvalidInput, MAX_NAME_BYTES, MAX_RESOURCE_BYTES};
use thiserror::Error;

use super::key::{KeyId, PublicKey};
use super::leaf::{Leaf, SignedTerms, mode_code, mode_from_code};
use super::lease_signature::LeaseSignature;
use super::{ByteReader, DecodeError, put_text};
use crate::ledger::LedgerId;

const VERSION: u8 = 1;
/// Of a lease with authority.
const VERSION_WITH_AUTHORITY: u8 = 2;

/// The most bytes of what a lease allows.
const MAX_AUTHORITY_BYTES: usize =
    8 + 4 + 1 + 3 * 4 * (1 + LeaseScope::MAX_NAMES) + LeaseScope::MAX_BYTES + Budget::BYTES;

/// No passport of a lease without authority is longer, in bytes.
const MAX_BYTES: usize =
    1 + 16 + 8 + 1 + 8 + 8 + 4 + MAX_RESOURCE_BYTES + 4 + MAX_NAME_BYTES + LeaseSignature::MAX_BYTES;

/// A passport as it came in. It claims something only after [`Passport::verify`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passport {
    ledger: LedgerId,
    terms: SignedTerms<'static>,
    signature: LeaseSignature,
}

/// What a passport proves: that this fence was granted for this resource until a time on the registrar's
/// clock. Not that the lease still lives.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Claims {
    /// In which ledger.
    pub ledger: LedgerId,
    /// Which lease.
    pub lease_id: String,
    /// What the lease says of itself.
    pub terms: SignedTerms<'static>,
    /// Who signed.
    pub key_id: KeyId,
}

/// The public keys that whoever checks a passport trusts, and got another way than with the passport.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrustedKeys(BTreeMap<KeyId, PublicKey>);

/// Why a passport proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PassportError {
    /// Longer than any passport.
    #[error("the passport has {characters} characters, more than any passport")]
    TooLong {
        /// How many there are.
        characters: usize,
    },
    /// Not what a passport is written in, or not the one way to write it.
    #[error("the passport is not base64url without padding")]
    NotBase64,
    /// The bytes are not in the right form.
    #[error("the passport cannot be read: {0}")]
    Form(#[from] DecodeError),
    /// A name in it cannot be one.
    #[error("the passport cannot be read: {0}")]
    Name(#[from] InvalidInput),
    /// Signed with a key that is not trusted here. Get it from the registrar's owner, not from who shows the
    /// passport.
    #[error("the passport is signed with key {key_id}, which is not among those that are trusted")]
    UntrustedKey {
        /// Which key.
        key_id: KeyId,
    },
    /// The key did not sign this: it was altered, or made up.
    #[error("the passport is not genuine: key {key_id} did not sign it")]
    NotGenuine {
        /// Which key.
        key_id: KeyId,
    },
}

impl Passport {
    /// The passport of a lease with these terms and this signature.
    pub fn issue(ledger: LedgerId, terms: SignedTerms<'_>, signature: LeaseSignature) -> Passport {
        Passport { ledger, terms: terms.into_owned(), signature }
    }

    /// The passport as text.
    pub fn to_text(&self) -> String {
        let SignedTerms { resource, holder, mode, fence, at, expires_at, authority } = &self.terms;
        let mut bytes = vec![if authority.is_some() { VERSION_WITH_AUTHORITY } else { VERSION }];
        bytes.extend_from_slice(&self.ledger.0);
        bytes.extend_from_slice(&fence.0.to_be_bytes());
        bytes.push(mode_code(*mode));
        bytes.extend_from_slice(&at.0.to_be_bytes());
        bytes.extend_from_slice(&expires_at.0.to_be_bytes());
        put_text(&mut bytes, resource.as_str());
        put_text(&mut bytes, holder.as_str());
        if let Some(authority) = authority {
            bytes.extend_from_slice(&authority.parent.map_or(0, |parent| parent.0).to_be_bytes());
            put_text(&mut bytes, authority.scope.canonical_bytes());
            bytes.extend_from_slice(&authority.budget.canonical_bytes());
        }
        bytes.extend_from_slice(&self.signature.to_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Reads what [`Self::to_text`] writes, and nothing else. What it says is worth nothing yet.
    pub fn parse(text: &str) -> Result<Passport, PassportError> {
        // What it begins with says whether it may be longer than most.
        let more = if matches!(text.as_bytes(), [b'A', b'g'..=b'v', ..]) { MAX_AUTHORITY_BYTES } else { 0 };
        if text.len() > (MAX_BYTES + more).div_ceil(3) * 4 {
            return Err(PassportError::TooLong { characters: text.len() });
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| PassportError::NotBase64)?;
        let has_authority = bytes.first() == Some(&VERSION_WITH_AUTHORITY);
        let mut reader =
            ByteReader::with_version(if has_authority { VERSION_WITH_AUTHORITY } else { VERSION }, &bytes)?;
        let (ledger, fence) = (LedgerId(reader.array()?), Fence(reader.u64()?));
        if fence > Fence::MAX {
            return Err(DecodeError::Invalid { part: "fence", problem: "is larger than any" }.into());
        }
        let [mode] = reader.array()?;
        let mode =
            mode_from_code(mode).ok_or(DecodeError::Invalid { part: "mode", problem: "is unknown" })?;
        let (at, expires_at) = (Tick(reader.u64()?), Tick(reader.u64()?));
        let resource = Cow::Owned(Resource::parse(reader.text("resource")?)?);
        let holder = Cow::Owned(Holder::parse(reader.text("holder")?)?);
        let authority = if has_authority { Some(Cow::Owned(read_authority(&mut reader)?)) } else { None };
        let signature = LeaseSignature::from_bytes(reader.remaining())?;
        let terms = SignedTerms { resource, holder, mode, fence, at, expires_at, authority };
        Ok(Passport { ledger, terms, signature })
    }

    /// Sees that a trusted key signed this, and says what it signed. Needs neither ledger nor server.
    pub fn verify(&self, trusted: &TrustedKeys) -> Result<Claims, PassportError> {
        let key_id = self.signature.key_id();
        let key = trusted.0.get(&key_id).ok_or(PassportError::UntrustedKey { key_id })?;
        let (ledger, terms) = (self.ledger, &self.terms);
        if self.signature.is_signed_by(*key, ledger, Leaf::of(ledger, terms)) {
            Ok(Claims { ledger, lease_id: ledger.lease_id(terms.fence), terms: terms.clone(), key_id })
        } else {
            Err(PassportError::NotGenuine { key_id })
        }
    }
}

fn read_authority(reader: &mut ByteReader<'_>) -> Result<Authority, PassportError> {
    let parent = Fence(reader.u64()?);
    if parent > Fence::MAX {
        return Err(DecodeError::Invalid { part: "parent", problem: "is larger than any" }.into());
    }
    let scope = LeaseScope::from_canonical_bytes(reader.bytes()?)?;
    let budget = Budget::from_canonical_bytes(reader.array()?);
    budget.check()?;
    Ok(Authority { parent: (parent != Fence(0)).then_some(parent), scope, budget })
}

impl FromIterator<PublicKey> for TrustedKeys {
    fn from_iter<I: IntoIterator<Item = PublicKey>>(keys: I) -> Self {
        Self(keys.into_iter().map(|key| (key.id(), key)).collect())
    }
}
