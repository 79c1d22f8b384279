//! One integration binary: what every ledger promises, what the embedded one does when its files are not what it
//! wrote, and what a signature proves.

mod concurrent_maintenance;
mod conformance;
mod copies;
mod damage;
mod expected_ledger;
mod ledger_suite;
mod read_only;
mod reopen;
mod reserve_growth;
mod segment_crashes;
mod segment_sizes;
mod torn_writes;
mod faulty {
    mod crashes;
    mod ignored_syncs;
    mod space;
    mod syncs;
}
mod signing {
    mod batch_signature;
    pub mod fixtures;
    mod key_file;
    mod keyring;
    mod leaf;
    mod merkle;
    mod passport;
    mod work_leases;
}
