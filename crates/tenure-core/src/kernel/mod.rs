//! Decides what happens to leases.
