//! The real program.

mod program;
mod serving;
mod starting;
