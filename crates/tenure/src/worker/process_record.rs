//! The processes of a session as the ledger knows them, so that a later worker finds them: what is written, and read.

use std::fmt;

use super::process_snapshot::ProcessSnapshot;

/// A pipeline's command and its watchdog, each by its number and the time of its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PipelineProcesses {
    /// The command, which leads a group.
    pub command: (i32, u64),
    pub watchdog: (i32, u64),
}

impl PipelineProcesses {
    /// Both, as they are now. One that is gone already has no time.
    pub fn capture(command: i32, watchdog: i32) -> Self {
        let with_start = |number| {
            (number, ProcessSnapshot::find(number).map_or(0, |process: ProcessSnapshot| process.started))
        };
        Self { command: with_start(command), watchdog: with_start(watchdog) }
    }

    /// Reads what [`fmt::Display`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        let numbers: Vec<u64> = text
            .split(|letter: char| !letter.is_ascii_digit())
            .filter_map(|part| part.parse().ok())
            .collect();
        let [command, watchdog, command_start, watchdog_start] = numbers[..] else { return None };
        let number = |number| i32::try_from(number).ok();
        Some(Self {
            command: (number(command)?, command_start),
            watchdog: (number(watchdog)?, watchdog_start),
        })
    }
}

impl fmt::Display for PipelineProcesses {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { command: (command, command_start), watchdog: (watchdog, watchdog_start) } = self;
        write!(
            formatter,
            "pid {command} (watchdog {watchdog}), started at {command_start} and {watchdog_start}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_record_round_trips() {
        let recorded = PipelineProcesses { command: (123, 9_876), watchdog: (122, 9_870) };
        assert_eq!(recorded.to_string(), "pid 123 (watchdog 122), started at 9876 and 9870");
        assert_eq!(PipelineProcesses::parse(&recorded.to_string()), Some(recorded));
        for text in ["", "pid 1", "pid 99999999999 (watchdog 1), started at 1 and 2"] {
            assert_eq!(PipelineProcesses::parse(text), None, "{text}");
        }
    }
}
