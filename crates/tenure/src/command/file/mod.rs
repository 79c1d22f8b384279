//! The commands of the files API, for coding agents that share a checkout.

pub mod doctor;
pub mod files;
pub mod guard;
pub mod hook;
pub mod install;
pub mod report;
