//! One integration binary: what a keeper promises to whoever works under its lease, from outside.

mod beliefs;
mod network;
mod random;
mod stops;
mod story;
mod tries;
