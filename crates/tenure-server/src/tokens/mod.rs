//! Who may speak, and who holds: the admin token, the tokens that an admin makes, and the tokens of leases.
//!
//! Nothing here that is a secret has a `Debug`, and only digests of what callers present are kept.

mod admin;
mod file;
mod given;
mod key;
mod store;

pub use self::admin::{AdminToken, WeakToken};
pub use self::file::TokenFileError;
pub(crate) use self::given::{Given, Now, Scope, Scopes};
pub(crate) use self::key::TokenKey;
pub(crate) use self::store::{CreateError, TokenStore, Wish};
