//! The real program.

mod client;
mod clocks;
mod failing_sync;
mod full_disk;
mod kill_at_each_call;
mod kill_over_http;
mod program;
mod second_process;
mod serving;
mod slow_sync;
mod starting;
mod wrapped;
