//! Which session wrote the lines that are not committed yet.
//!
//! After each edit the content is compared with the one before: lines that are new belong to whoever edited, lines that
//! stayed keep their author. Nothing of a file's content is stored, only a short digest of each line.

mod attribution;
mod store;

pub use attribution::LineAttribution;
pub use store::AttributionStore;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AgentAuthor {
    /// The agent's session, or that of a subagent.
    pub session: String,
    pub agent: String,
    /// When it was seen, in milliseconds since 1970: for people to read, never to decide by.
    pub at: u64,
    /// What it was at, if it said.
    pub task: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineAuthor {
    Committed,
    Session(AgentAuthor),
    /// It is not as in HEAD, and nobody was seen writing it: a person, or a program that no hook sees.
    Unknown,
}

/// A line and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlamedLine {
    /// From 1. In the one line that stands for a whole file (see [`LineAttribution::blame_lines`]), 0.
    pub number: usize,
    /// The line without its end. What is not UTF-8 is shown as `�`.
    pub text: String,
    pub author: LineAuthor,
}
