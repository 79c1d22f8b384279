//! One integration binary: what the single writer promises, from outside.

mod ahead;
mod answers;
mod bounds;
mod heartbeats;
mod kill;
mod marks;
mod model;
mod observing;
mod random;
mod restoring;
mod shell;
mod story;
mod waiters;
mod wall_clock;
mod words;
mod work;
mod writer;
