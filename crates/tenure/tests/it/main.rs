//! The real program.

mod clock_changes;
mod command_line_interface;
mod control_commands;
mod corruption;
mod fault_injection;
mod full_disk;
#[path = "../../../tenure-api/tests/it/golden.rs"]
mod golden;
mod idle_connections;
mod kill_at_each_syscall;
mod kill_under_load;
mod lease_commands;
mod log_command;
mod no_secrets;
mod passports;
mod pruned_ledger;
mod readme;
mod recorded_ledgers;
mod replay_command;
mod revoked_token;
mod scripted_model;
mod scripted_model_protocols;
mod second_server;
#[path = "../../../../xtask/src/secret_scan.rs"]
mod secret_scan;
mod serve_command;
mod slow_sync;
mod start_failures;
mod strace_output;
mod sync_failure;
mod tls;
mod verify_command;
mod work_commands;
mod agents {
    mod commands;
    pub mod ledger;
    mod stress;
}
mod doctor {
    pub mod basics;
    pub mod fixture;
    mod settings;
    mod system;
}
mod files {
    mod admin;
    mod bad_input;
    mod child_processes;
    mod commands;
    mod commits;
    mod contention;
    mod default_timeouts;
    mod idle_release;
    mod owner_exit;
    mod payloads;
    mod repositories;
    mod shells;
    mod stale_content;
    mod subagents;
}
mod guard {
    mod attribution;
    mod crowd;
    mod git;
    mod repositories;
    mod stale_content;
    mod syscalls;
    mod temporary_files;
    mod terminal;
    mod transparency;
    mod unusual_environments;
    pub mod write_scripts;
}
mod histories {
    pub mod basics;
    pub mod client;
    pub mod fixture;
    pub mod parse;
}
mod hook {
    mod daemon;
    mod denials;
    mod retry;
}
mod intents {
    mod acceptance;
    mod chaos;
    mod checks_self_test;
    mod commands;
    mod configuration;
    mod example;
    mod kill;
    pub mod ledger;
}
mod ledger {
    mod commands;
    mod forgery;
    mod recorder;
}
mod mcp {
    mod agents;
    pub mod client;
    mod http;
    mod startup;
}
mod real {
    pub mod agent_fixture;
    pub mod agent_process;
    mod agents;
    mod shells;
}
mod run {
    mod command;
    mod lease_loss;
    mod overlap;
    pub mod terminal;
}
mod worker {
    mod crashes;
    mod leases;
    mod pipelines;
}
