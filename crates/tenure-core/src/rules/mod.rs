//! Rules on which kernel and reducer must agree: time, names, and ends.
//!
//! Both layers call these functions; neither writes the comparison again. A change here changes
//! what a lease promises, so it also changes `docs/guarantees.md`.

pub mod overlap;

use std::borrow::Cow;

use thiserror::Error;

/// Whether a lease that ends at `expires_at` is over at `now`. At equality it is dead.
///
/// ```
/// use tenure_core::rules::is_expired;
/// assert!(!is_expired(9, 10));
/// assert!(is_expired(10, 10));
/// ```
pub const fn is_expired(now: u64, expires_at: u64) -> bool {
    now >= expires_at
}

/// How long a lease that ends at `expires_at` still lives at `now`; 0 once it is over.
pub const fn remaining(now: u64, expires_at: u64) -> u64 {
    expires_at.saturating_sub(now)
}

/// Whether a lease from `issued_at` to `expires_at` would live at all.
pub const fn has_duration(issued_at: u64, expires_at: u64) -> bool {
    expires_at > issued_at
}

/// Whether moving the end from `current` to `proposed` gives the holder more time.
pub const fn extends(current: u64, proposed: u64) -> bool {
    proposed > current
}

/// The longest id that is stored, in bytes.
pub const MAX_ID_BYTES: usize = 128;

/// The length of an id that is a digest, in bytes.
const DIGEST_ID_BYTES: usize = "b3-".len() + 64;

/// The longest registrar signature, in bytes.
pub const MAX_SIGNATURE_BYTES: usize = 512;

/// The longest full name that a face accepts, in bytes. Longer than an id: see [`stored_id`].
pub const MAX_NAME_BYTES: usize = 4096;

/// The longest resource, in bytes: a full name, and which kind of thing it names, as in `DATABASE_TABLE:`.
pub const MAX_RESOURCE_BYTES: usize = MAX_NAME_BYTES + 16;

/// Stands between a resource and a lease id where one resource has several leases.
///
/// It is a control character, which no name may hold, so a joined id never meets a plain one.
pub const ID_SEPARATOR: char = '\u{1F}';

/// A value that cannot be accepted, and why. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field}: {reason}")]
pub struct InvalidInput {
    pub field: &'static str,
    /// What is wrong with it, and what would be right.
    pub reason: String,
}

impl InvalidInput {
    pub fn new(field: &'static str, reason: impl Into<String>) -> Self {
        Self { field, reason: reason.into() }
    }
}

/// Checks a stored id: not empty, at most [`MAX_ID_BYTES`] bytes, no control character but [`ID_SEPARATOR`].
pub fn check_id(field: &'static str, id: &str) -> Result<(), InvalidInput> {
    check_length(field, id.len(), MAX_ID_BYTES)?;
    check_characters(field, id.chars().filter(|character| *character != ID_SEPARATOR))
}

/// Checks a full name: not empty, at most [`MAX_NAME_BYTES`] bytes, no control character.
pub fn check_name(field: &'static str, name: &str) -> Result<(), InvalidInput> {
    check_name_within(field, name, MAX_NAME_BYTES)
}

/// The same with another bound.
pub fn check_name_within(field: &'static str, name: &str, max: usize) -> Result<(), InvalidInput> {
    check_length(field, name.len(), max)?;
    // Nearly all names are plain: each byte is a character by itself then, and none needs to be decoded.
    if name.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Ok(());
    }
    check_characters(field, name.chars())
}

/// Whether a text for people can be stored: it may be empty, but has bounds like a name.
pub fn is_storable_text(text: &str) -> bool {
    text.is_empty() || check_name("text", text).is_ok()
}

/// Checks the length of a signature. That it is there at all is the caller's question.
pub fn check_signature_length(field: &'static str, signature: &[u8]) -> Result<(), InvalidInput> {
    if signature.len() > MAX_SIGNATURE_BYTES {
        let reason = format!("has {} bytes; at most {MAX_SIGNATURE_BYTES} are allowed", signature.len());
        return Err(InvalidInput::new(field, reason));
    }
    Ok(())
}

/// The id under which a name is stored: itself, or `b3-` and its BLAKE3 in hex when it is too long.
///
/// A name that has the form of such a digest is stored by its own digest: else whoever chose it would meet
/// another, longer name under one id.
///
/// ```
/// use tenure_core::rules::stored_id;
/// assert_eq!(stored_id("deploy:prod"), "deploy:prod");
/// let long = "x".repeat(129);
/// let digest = stored_id(&long);
/// assert_eq!(digest.len(), 67);
/// assert_ne!(stored_id(&digest), digest);
/// ```
pub fn stored_id(name: &str) -> Cow<'_, str> {
    if is_stored_verbatim(name) {
        name.into()
    } else {
        format!("b3-{}", blake3::hash(name.as_bytes())).into()
    }
}

/// Whether a name is stored as it is.
pub fn is_stored_verbatim(name: &str) -> bool {
    name.len() <= MAX_ID_BYTES && !(name.len() == DIGEST_ID_BYTES && name.starts_with("b3-"))
}

/// Whether `id` is the id under which `name` is stored.
pub fn is_stored_as(name: &str, id: &str) -> bool {
    if is_stored_verbatim(name) { name == id } else { stored_id(name) == id }
}

fn check_length(field: &'static str, length: usize, max: usize) -> Result<(), InvalidInput> {
    if length == 0 {
        return Err(InvalidInput::new(field, "is empty; it needs at least one character"));
    }
    if length > max {
        return Err(InvalidInput::new(field, format!("has {length} bytes; at most {max} are allowed")));
    }
    Ok(())
}

fn check_characters(
    field: &'static str,
    mut characters: impl Iterator<Item = char>,
) -> Result<(), InvalidInput> {
    match characters.find(|character| character.is_control()) {
        Some(control) => {
            let reason = format!("contains the control character U+{:04X}", u32::from(control));
            Err(InvalidInput::new(field, reason))
        }
        None => Ok(()),
    }
}
