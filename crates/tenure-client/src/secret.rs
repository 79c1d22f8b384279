//! What nobody may see.

use std::fmt;

use zeroize::Zeroizing;

/// A secret such as an API token: wiped from memory when it goes, and shown by nothing.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Keeps it.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// The secret itself, for where it must go.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(…)")
    }
}
