//! What commands write on standard output: for people in columns, for programs as JSON.

use std::fmt::Display;
use std::io::{self, BufWriter, StdoutLock, Write};

use anstream::AutoStream;
use clap::Args;
use comfy_table::presets::NOTHING;
use jiff::Timestamp;
use serde::Serialize;
use tenure_core::kernel::{ClockAnchor, Tick};

use crate::failure::Failure;

/// The flag of every command that prints one result.
#[derive(Debug, Clone, Copy, Args)]
pub struct Format {
    /// Print one JSON value instead of text
    #[arg(long)]
    pub json: bool,
}

impl Format {
    pub fn print<T: Serialize, D: Display>(
        self,
        result: &T,
        text: impl FnOnce(&T) -> D,
    ) -> Result<(), Failure> {
        Ok(if self.json { write_json(result) } else { write_text(&text(result).to_string()) }?)
    }

    /// Prints `empty` instead of a table that has no rows.
    pub fn print_table<T: Serialize>(
        self,
        result: &T,
        empty: &str,
        table: impl FnOnce(&T) -> Table,
    ) -> Result<(), Failure> {
        if self.json {
            return Ok(write_json(result)?);
        }
        let table = table(result);
        Ok(if table.0.len() > 1 { write_table(&table) } else { write_text(empty) }?)
    }
}

/// Standard output, written in large pieces. Whoever is done calls `flush`: what `drop` cannot write is lost unsaid.
pub fn buffered_stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(1 << 16, io::stdout().lock())
}

/// Writes what the server said, as it said it, on one line.
pub fn write_json(answer: &impl Serialize) -> io::Result<()> {
    let mut output = buffered_stdout();
    serde_json::to_writer(&mut output, answer)?;
    writeln!(output)?;
    output.flush()
}

/// Writes a table, with its heads in bold where a terminal shows them and nobody objects (`NO_COLOR`).
pub fn write_table(table: &Table) -> io::Result<()> {
    let text = table.to_string();
    let (heads, body) = text.split_once('\n').unwrap_or((&text, ""));
    let mut output = AutoStream::auto(io::stdout().lock());
    write!(output, "\x1b[1m{heads}\x1b[0m\n{body}")?;
    output.flush()
}

pub fn write_text(text: &str) -> io::Result<()> {
    let mut output = buffered_stdout();
    output.write_all(text.as_bytes())?;
    output.flush()
}

/// Rows whose columns stand under each other.
#[derive(Debug, Default)]
pub struct Table(Vec<Vec<String>>);

impl Table {
    /// A table with these names over its columns.
    pub fn with_header(heads: &[&str]) -> Self {
        Self(vec![heads.iter().map(ToString::to_string).collect()])
    }

    /// Adds a row. What others wrote into it must not steer a terminal.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.0.push(cells.into_iter().map(|cell| cell.replace(char::is_control, " ")).collect());
    }

    /// Adds what is called `name`.
    pub fn field(&mut self, name: &str, value: impl ToString) {
        self.row([name.to_owned(), value.to_string()]);
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut table = comfy_table::Table::new();
        table.load_style(NOTHING).add_rows(&self.0);
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        for line in table.lines() {
            writeln!(formatter, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// A tick as RFC 3339 in UTC with milliseconds, by the ledger's own anchor. It decides nothing.
pub fn tick_to_rfc3339(anchor: ClockAnchor, tick: Tick) -> String {
    format_wall_time(anchor.wall_time_of(tick))
}

/// Unix nanoseconds as RFC 3339 in UTC with milliseconds.
pub fn format_wall_time(nanoseconds: u64) -> String {
    // 2^64 nanoseconds end in the year 2554.
    let time = Timestamp::from_nanosecond(nanoseconds.into()).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{time:.3}")
}

/// A length of time in words: the two largest units that it has.
pub fn format_duration(milliseconds: u64) -> String {
    let units = [("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1_000)];
    let mut rest = milliseconds;
    let mut words = Vec::new();
    for (name, length) in units {
        let count = rest / length;
        rest %= length;
        if count > 0 {
            words.push(format!("{count} {name}{}", if count == 1 { "" } else { "s" }));
        }
    }
    words.truncate(2);
    if words.is_empty() { format!("{milliseconds} ms") } else { words.join(" and ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_columns_are_aligned_without_trailing_spaces() {
        let mut table = Table::with_header(&["A", "LONG"]);
        table.row(["größer".to_owned(), "x".to_owned()]);
        table.row(["y".to_owned(), String::new()]);
        assert_eq!(table.to_string(), "A       LONG\ngrößer  x\ny\n");
    }

    #[test]
    fn control_characters_in_a_table_are_replaced() {
        let mut table = Table::default();
        table.field("label", "\x1b[2Jtwo\nlines");
        assert_eq!(table.to_string(), "label   [2Jtwo lines\n");
    }

    #[test]
    fn durations_are_formatted_in_words() {
        for (milliseconds, words) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_000, "1 second"),
            (61_000, "1 minute and 1 second"),
            (86_400_000, "1 day"),
            (90_061_000, "1 day and 1 hour"),
        ] {
            assert_eq!(format_duration(milliseconds), words);
        }
    }

    #[test]
    fn tick_is_formatted_as_a_time_by_the_anchor() {
        let anchor = ClockAnchor { tick: Tick(5_000_000), wall: 1_700_000_000_000_000_000 };
        assert_eq!(tick_to_rfc3339(anchor, Tick(5_001_500)), "2023-11-14T22:13:20.001Z");
        assert_eq!(tick_to_rfc3339(anchor, Tick(4_000_000)), "2023-11-14T22:13:19.000Z");
    }
}
