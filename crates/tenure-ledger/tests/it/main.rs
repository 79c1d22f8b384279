//! One integration binary: what the crate promises, from outside.

mod signing_key_file;
mod signing_keyring;
mod signing_leaf;
mod signing_merkle;
mod signing_passport;
mod signing_samples;
mod signing_seal;
