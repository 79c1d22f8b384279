//! Who may speak, and who holds: the admin token, the tokens that an admin makes, and the tokens of leases.
//!
//! Nothing here that is a secret has a `Debug`, and only digests of what callers present are kept.

mod admin;
mod file;
mod key;
mod store;
mod stored_token;

pub use self::admin::{AdminToken, InvalidAdminToken};
pub use self::file::TokenFileError;
pub(crate) use self::key::TokenKey;
pub(crate) use self::store::{CreateError, NewToken, TokenStore};
pub(crate) use self::stored_token::{StoredToken, TokenClockReading, TokenScope, TokenScopes};
