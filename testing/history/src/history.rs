//! A history as it is kept: one JSON value a line, so that it can be looked at, cut down, and checked again.

use std::io::{self, BufRead, Write};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::operation::Operation;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// Which clock the times are of, as a ledger names it. Nothing: no ledger's times can be compared with them.
    pub clock: Option<String>,
    pub operations: Vec<Operation>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HistoryHeader {
    clock: Option<String>,
}

/// Why a history cannot be read.
#[derive(Debug, Error)]
pub enum HistoryReadError {
    #[error("the history cannot be read")]
    Io(#[from] io::Error),
    /// A line is not what it should be.
    #[error(
        "line {line} of the history is not an operation; each line is one JSON value as `write` makes it"
    )]
    Line {
        /// Which, from 1.
        line: usize,
        source: serde_json::Error,
    },
}

impl History {
    /// Reads what [`Self::write`] wrote.
    pub fn read(input: impl BufRead) -> Result<Self, HistoryReadError> {
        let mut history = History::default();
        for (index, line) in input.lines().enumerate() {
            let (line, wrong) = (line?, |source| HistoryReadError::Line { line: index + 1, source });
            if index == 0 {
                history.clock = serde_json::from_str::<HistoryHeader>(&line).map_err(wrong)?.clock;
            } else if !line.trim().is_empty() {
                history.operations.push(serde_json::from_str(&line).map_err(wrong)?);
            }
        }
        Ok(history)
    }

    /// Writes a line for the clock and one for each operation.
    pub fn write(&self, mut output: impl Write) -> io::Result<()> {
        writeln!(output, "{}", serde_json::to_string(&HistoryHeader { clock: self.clock.clone() })?)?;
        for operation in &self.operations {
            writeln!(output, "{}", serde_json::to_string(operation)?)?;
        }
        output.flush()
    }
}
