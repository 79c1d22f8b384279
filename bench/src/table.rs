//! Markdown tables, and how figures are written in them.

use crate::statistics::Spread;

/// A table whose first column is text and whose other columns are figures.
pub struct Table {
    text: String,
    columns: usize,
}

impl Table {
    pub fn with_columns(columns: &[&str]) -> Self {
        let mut table = Self { text: String::new(), columns: columns.len() };
        table.push(columns);
        table.text.push_str("|---|");
        table.text.push_str(&"--:|".repeat(columns.len() - 1));
        table.text.push('\n');
        table
    }

    /// Appends a line. Missing cells are empty.
    pub fn push<T: AsRef<str>>(&mut self, cells: &[T]) {
        self.text.push('|');
        for index in 0..self.columns {
            let cell = cells.get(index).map_or("", AsRef::as_ref);
            // A line break or a bar would end the cell.
            self.text.push_str(&format!(" {} |", cell.replace('\n', " ").replace('|', "\\|")));
        }
        self.text.push('\n');
    }

    pub fn into_text(self) -> String {
        self.text
    }
}

/// The median, and the spread if the runs differ.
pub fn with_spread(spread: Spread, format: impl Fn(f64) -> String) -> String {
    let [median, min, max] = [spread.median, spread.min, spread.max].map(format);
    if min == max { median } else { format!("{median} ({min} to {max})") }
}

/// A whole number with a comma before every three digits.
pub fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let first = digits.len() % 3;
    let groups = digits.as_bytes()[first..].chunks(3).map(String::from_utf8_lossy);
    let head = (first > 0).then(|| digits[..first].into());
    head.into_iter().chain(groups).collect::<Vec<_>>().join(",")
}

/// A time in the unit that needs the fewest digits.
pub fn time(microseconds: f64) -> String {
    match microseconds {
        time if time < 10.0 => format!("{time:.1} µs"),
        time if time < 1_000.0 => format!("{time:.0} µs"),
        time if time < 10_000.0 => format!("{:.2} ms", time / 1e3),
        time if time < 1_000_000.0 => format!("{:.0} ms", time / 1e3),
        time => format!("{:.2} s", time / 1e6),
    }
}

pub fn cpu(microseconds: f64) -> String {
    format!("{microseconds:.1} µs")
}

pub fn megabytes(bytes: f64) -> String {
    format!("{:.0} MB", bytes / 1e6)
}

pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_line_for_each_push_with_as_many_cells_as_columns() {
        let mut table = Table::with_columns(&["system", "per second", "p50"]);
        table.push(&["Redis", "12", "3 µs"]);
        table.push(&["etcd", "a | b\nc"]);
        let expected =
            "| system | per second | p50 |\n|---|--:|--:|\n| Redis | 12 | 3 µs |\n| etcd | a \\| b c |  |\n";
        assert_eq!(table.into_text(), expected);
    }

    #[test]
    fn figures_have_separators_and_units() {
        let written: Vec<_> = [0.0, 999.4, 1_000.0, 12_345.0, 1_234_567.0].map(thousands).into();
        assert_eq!(written, ["0", "999", "1,000", "12,345", "1,234,567"]);
        let written: Vec<_> = [3.21, 870.2, 1_234.0, 45_678.0, 2_500_000.0].map(time).into();
        assert_eq!(written, ["3.2 µs", "870 µs", "1.23 ms", "46 ms", "2.50 s"]);
        assert_eq!(
            (cpu(12.34), megabytes(59e6), percent(0.123)),
            ("12.3 µs".into(), "59 MB".into(), "12.3 %".into())
        );
    }

    #[test]
    fn a_spread_is_shown_only_if_the_runs_differ() {
        let spread = |min, median, max| with_spread(Spread { median, min, max }, thousands);
        assert_eq!(spread(1_000.0, 2_000.0, 3_000.0), "2,000 (1,000 to 3,000)");
        assert_eq!(spread(2_000.0, 2_000.0, 2_000.0), "2,000");
    }
}
