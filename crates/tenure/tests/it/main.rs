//! The real program.

mod client;
mod clocks;
mod damaging;
mod failing_sync;
mod forging;
mod full_disk;
mod histories;
mod histories_client;
mod histories_stage;
mod histories_words;
mod history;
mod kill_at_each_call;
mod kill_over_http;
mod logging;
mod passports;
mod program;
mod pruning;
mod replaying;
mod restoring;
mod second_process;
mod serving;
mod slow_sync;
mod starting;
mod verifying;
mod wrapped;
