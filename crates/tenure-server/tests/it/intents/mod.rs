//! Intents and their sessions over real HTTP, with a worker of a few lines.

mod accepting;
mod herd;
mod keys;
mod lan;
mod listening;
mod losing;
mod names;
mod phases;
mod polling;
mod refusing;
mod stopping;
mod working;
