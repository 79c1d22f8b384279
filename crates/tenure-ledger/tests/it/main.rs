//! One integration binary: what every ledger promises, what the embedded one does when its files are not what it
//! wrote, and what a signature proves.

mod archive;
mod copies;
mod damage;
mod faulty_crashes;
mod faulty_lies;
mod faulty_space;
mod faulty_syncs;
mod history;
mod reopening;
mod signing_authority;
mod signing_key_file;
mod signing_keyring;
mod signing_leaf;
mod signing_merkle;
mod signing_passport;
mod signing_samples;
mod signing_seal;
mod suite;
mod torn;
mod upkeep_beside;
