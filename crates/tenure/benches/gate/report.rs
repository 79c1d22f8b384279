//! The figures for people, for programs and for the documentation.

use std::fs;

use serde_json::json;

use crate::commands::CommandTimes;
use crate::open_latency::OpenTimes;

const MAX_RATIO: f64 = 1.1;
const MAX_WRITE_OVERHEAD: f64 = 30.0;
const MAX_READ_OVERHEAD: f64 = 1.0;

/// Everything that was measured.
pub struct BenchReport {
    pub opens: OpenTimes,
    pub commands: Vec<CommandTimes>,
}

impl BenchReport {
    /// The targets that were missed, one line each.
    pub fn failures(&self) -> Vec<String> {
        let OpenTimes { write, ignored, read } = &self.opens;
        let mut missed = Vec::new();
        for (name, added, max) in [
            ("opening a held file for writing", write.overhead(), MAX_WRITE_OVERHEAD),
            ("opening an ignored file for writing", ignored.overhead(), MAX_WRITE_OVERHEAD),
            ("opening for reading", read.overhead(), MAX_READ_OVERHEAD),
        ] {
            if added > max {
                missed.push(format!("{name} takes {added:.1} µs more, at most {max} are wanted"));
            }
        }
        // A shell that does nothing only starts processes: it has no bound, and shows what a start costs.
        for command in self.bounded().filter(|command| command.ratio() > MAX_RATIO) {
            missed.push(format!("{} takes {:.2} times as long", command.name, command.ratio()));
        }
        missed
    }

    fn bounded(&self) -> impl Iterator<Item = &CommandTimes> {
        self.commands.iter().filter(|command| !command.name.contains("nothing"))
    }

    /// A Markdown table, which people can read as it is.
    pub fn to_markdown(&self) -> String {
        let OpenTimes { write, ignored, read } = &self.opens;
        let mut text =
            String::from("| what | without | with a guard | difference | target |\n|---|--:|--:|--:|---|\n");
        for (name, pair, target) in [
            ("open for writing, a file that is held", write, "30 µs more"),
            ("open for writing, a file that git ignores", ignored, "30 µs more"),
            ("open for reading", read, "1 µs more"),
        ] {
            let (plain, guarded, added) = (pair.plain, pair.guarded, pair.overhead());
            text += &format!("| {name} | {plain:.2} µs | {guarded:.2} µs | {added:.2} µs | {target} |\n");
        }
        for command in &self.commands {
            let target =
                if self.bounded().any(|other| other.name == command.name) { "1.10 times" } else { "" };
            text += &format!(
                "| {} | {:.1} ms | {:.1} ms | {:.2} times | {target} |\n",
                command.name,
                command.plain * 1e3,
                command.guarded * 1e3,
                command.ratio()
            );
        }
        let missed = self.failures();
        text += &match missed.as_slice() {
            [] => "\nAll targets are met.\n".to_owned(),
            missed => format!("\nMissed: {}.\n", missed.join("; ")),
        };
        text
    }

    /// For programs.
    pub fn to_json(&self) -> String {
        let pair = |pair: &crate::open_latency::GuardOverhead| json!({"plainMicroseconds": pair.plain, "guardedMicroseconds": pair.guarded});
        let commands: Vec<_> = self
            .commands
            .iter()
            .map(|command| json!({"name": command.name, "plainSeconds": command.plain, "guardedSeconds": command.guarded}))
            .collect();
        let opens = json!({"write": pair(&self.opens.write), "ignored": pair(&self.opens.ignored), "read": pair(&self.opens.read)});
        json!({"opens": opens, "commands": commands, "missed": self.failures()}).to_string()
    }

    /// Renews the page in the documentation.
    pub fn update_documentation(&self) -> Result<(), String> {
        const BEGIN: &str = "<!-- gate:begin -->\n";
        const END: &str = "<!-- gate:end -->";
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/benchmarks.md");
        let text = fs::read_to_string(page).map_err(|error| error.to_string())?;
        let (head, rest) = text.split_once(BEGIN).ok_or("the page has no place for it")?;
        let (_, tail) = rest.split_once(END).ok_or("the page has no end for it")?;
        fs::write(page, format!("{head}{BEGIN}{}{END}{tail}", self.to_markdown()))
            .map_err(|error| error.to_string())
    }
}
