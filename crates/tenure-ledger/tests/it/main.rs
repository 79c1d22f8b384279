//! One integration binary: what every ledger promises, what the embedded one does when its files are not what it
//! wrote, and what a signature proves.

mod concurrent_maintenance;
mod conformance;
mod copies;
mod damage;
mod expected_ledger;
mod faulty_crashes;
mod faulty_ignored_syncs;
mod faulty_space;
mod faulty_syncs;
mod ledger_suite;
mod read_only;
mod reopen;
mod reserve_growth;
mod segment_crashes;
mod segment_sizes;
mod signing_batch_signature;
mod signing_fixtures;
mod signing_key_file;
mod signing_keyring;
mod signing_leaf;
mod signing_merkle;
mod signing_passport;
mod signing_work_leases;
mod torn_writes;
