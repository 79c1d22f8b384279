//! Agents over real HTTP.

mod disk_failure;
mod leases;
mod manifest;
mod states;
mod validation;
mod visibility;
mod wait_die;
