//! Who may speak, and who holds: the admin token, the tokens that an admin makes, and the tokens of leases.
//!
//! Nothing here that is a secret has a `Debug`, and only digests of what callers present are kept.

mod admin;
mod lease_token_key;
mod store;
mod stored_token;
mod token_file;

pub use self::admin::{AdminToken, InvalidAdminToken};
pub(crate) use self::lease_token_key::LeaseTokenKey;
pub(crate) use self::store::{CreateError, NewToken, TokenStore};
pub(crate) use self::stored_token::{StoredToken, TokenClockReading, TokenScope, TokenScopes};
pub use self::token_file::TokenFileError;
