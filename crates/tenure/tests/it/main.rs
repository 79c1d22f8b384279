//! The real program.

mod damaging;
mod forging;
mod history;
mod logging;
mod passports;
mod program;
mod pruning;
mod replaying;
mod restoring;
mod serving;
mod starting;
mod verifying;
