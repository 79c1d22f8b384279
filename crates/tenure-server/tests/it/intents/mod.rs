//! Intents and their sessions over real HTTP, with a worker of a few lines.

mod accept;
mod api_leases;
mod concurrency;
mod disk_failure;
mod events;
mod keys;
mod lan;
mod long_poll;
mod rejection;
mod reserved_names;
mod stop;
mod worker;
