//! One integration binary: what the single writer promises, from outside.

mod clock_marks;
mod footprint;
mod harness;
mod heartbeats;
mod kill;
mod ledger_store;
mod limits;
mod observer;
mod pipelined_writes;
mod random;
mod reply_durability;
mod restored_copy;
mod runtime;
mod scenario;
mod scenario_syntax;
mod waiters;
mod wall_clock;
mod work_leases;
mod writer_lifecycle;
