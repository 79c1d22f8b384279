//! One integration binary: what the crate promises, from outside.

mod kernel_event_golden;
mod kernel_event_strategies;
mod scenario;
mod scenario_agents;
mod scenario_files;
mod agents {
    mod admission;
    mod compatibility;
    mod limits;
    pub mod model;
    mod priority;
    mod properties;
    pub mod steps;
    mod time;
    mod wait_die;
}
mod checkpoint {
    pub mod damage;
    mod golden;
    pub mod round_trip;
}
mod files {
    mod admin;
    mod apply_errors;
    mod cycles;
    pub mod encoding;
    mod limits;
    pub mod model;
    mod properties;
    mod release;
    pub mod strategies;
}
mod intents {
    pub mod fixture;
    pub mod model;
    mod sessions;
    pub mod sessions_encoding;
    mod sessions_properties;
    mod sessions_transitions;
    mod sessions_worker;
}
mod kernel {
    mod admission;
    mod alternatives;
    pub mod apply;
    mod apply_errors;
    pub mod codec;
    mod combined_effects;
    mod deadlock;
    pub mod expected_outcome;
    mod files;
    mod idempotency;
    mod invalid_input;
    mod leases;
    pub mod model;
    mod overflow;
    mod overlap;
    mod properties;
    mod queue;
    pub mod strategies;
    pub mod wait_graph;
    mod work;
}
mod lease {
    mod arbitrary_bytes;
    mod checkpoints;
    mod examples;
    mod sequences;
    pub mod strategies;
}
mod work {
    pub mod fixture;
    mod properties;
    pub mod strategies;
}
