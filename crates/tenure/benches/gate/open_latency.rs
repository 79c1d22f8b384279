//! One call to open a file: for writing, which passes the gate, and for reading, which does not.

use std::fs::File;
use std::process::{Command, ExitCode};
use std::time::Instant;

use crate::fixture::Fixture;

/// How the measured part is called.
pub const INTERNAL_SUBCOMMAND: &str = "__opens";

/// How often each is measured; the best counts, because others use this machine too.
const ROUNDS: usize = 7;

/// What one call takes, in microseconds.
#[derive(Debug, Clone, Copy)]
pub struct OpenTimes {
    /// For writing, a file of the tree that its process holds.
    pub write: GuardOverhead,
    /// For writing, a file that git ignores.
    pub ignored: GuardOverhead,
    /// For reading.
    pub read: GuardOverhead,
}

/// The same with and without a guard.
#[derive(Debug, Clone, Copy)]
pub struct GuardOverhead {
    /// Without.
    pub plain: f64,
    /// With.
    pub guarded: f64,
}

impl GuardOverhead {
    /// What the guard adds.
    pub fn overhead(&self) -> f64 {
        self.guarded - self.plain
    }
}

/// Measures each so many times.
pub fn measure(world: &Fixture, times: usize) -> Result<OpenTimes, String> {
    let file = |name: &str| world.repository().join(name).to_string_lossy().into_owned();
    let pair = |what: &str, path: String| {
        let mut pair = GuardOverhead { plain: f64::MAX, guarded: f64::MAX };
        for _ in 0..ROUNDS {
            pair.plain = pair.plain.min(number(&world.run_unguarded(command(what, &path, times))?)?);
            pair.guarded = pair.guarded.min(number(&world.run_guarded(command(what, &path, times))?)?);
        }
        Ok::<_, String>(pair)
    };
    Ok(OpenTimes {
        write: pair("write", file("src00/file0.txt"))?,
        ignored: pair("write", file("small/target/opened"))?,
        read: pair("read", file("src00/file0.txt"))?,
    })
}

fn command(what: &str, path: &str, times: usize) -> Command {
    let own = std::env::current_exe().unwrap_or_default();
    let mut command = Command::new(own);
    command.args([INTERNAL_SUBCOMMAND, what, path, &times.to_string()]);
    command
}

fn number(text: &str) -> Result<f64, String> {
    text.trim().parse().map_err(|_| format!("{text:?} is no number"))
}

/// Opens the file so many times, and says how many microseconds one took.
#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
pub fn run_internal_subcommand(what: &str, path: &str, times: &str) -> ExitCode {
    let times: u32 = times.parse().unwrap_or(1);
    let open = || match what {
        "write" => File::options().write(true).create(true).truncate(false).open(path).is_ok(),
        _ => File::open(path).is_ok(),
    };
    // The first one asks the server; what follows is what is measured.
    let is_open = open();
    let started_at = Instant::now();
    let all = (0..times).all(|_| open());
    let took = started_at.elapsed().as_secs_f64() * 1e6 / f64::from(times);
    println!("{took:.3}");
    if is_open && all { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
