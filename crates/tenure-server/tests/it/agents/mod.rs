//! Agents over real HTTP.

mod bounds;
mod declaring;
mod failing;
mod judging;
mod leases;
mod seeing;
mod states;
