//! The commands of the intents API: sessions and their worker.

pub mod session;
pub mod worker;
