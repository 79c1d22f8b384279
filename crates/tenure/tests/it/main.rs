//! The real program.

mod asking;
mod client;
mod clocks;
mod commands;
mod controlling;
mod damaging;
mod failing_sync;
mod forging;
mod full_disk;
mod histories;
mod histories_client;
mod histories_stage;
mod histories_words;
mod history;
mod idle_connections;
mod intents_commands;
mod kill_at_each_call;
mod kill_over_http;
mod logging;
mod losing;
mod no_secrets;
mod overlapping;
mod passports;
mod program;
mod pruning;
mod replaying;
mod restoring;
mod revoked_token;
mod running;
mod second_process;
#[path = "../../../../xtask/src/secret_scan.rs"]
mod secret_scan;
mod serving;
mod slow_sync;
mod starting;
mod terminals;
mod tls;
#[path = "../../../tenure-server/tests/support/traces.rs"]
mod traces;
mod verifying;
mod wrapped;
