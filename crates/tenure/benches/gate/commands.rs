//! Whole commands, by hyperfine: outside of a guard, and inside.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::fixture::Fixture;

/// What people run, and what has to be done before each.
const COMMANDS: &[(&str, &str, Option<&str>)] = &[
    ("`git status`", "git status", None),
    (
        "`cargo build` of a small crate",
        "cd small && cargo build --offline -q",
        Some("rm -rf small/target/debug"),
    ),
    ("`grep -r`", "grep -r nothing-has-this .", None),
    ("a shell that does nothing", "sh -c true", None),
];

/// How long a command takes, in seconds.
#[derive(Debug, Clone)]
pub struct CommandTimes {
    /// For people.
    pub name: &'static str,
    /// Outside of a guard.
    pub plain: f64,
    /// Inside one.
    pub guarded: f64,
}

impl CommandTimes {
    /// How many times as long.
    pub fn ratio(&self) -> f64 {
        self.guarded / self.plain
    }
}

/// Measures each so many times, plain and guarded in turns: a machine that becomes slower does so for both.
pub fn measure(world: &Fixture, runs: usize) -> Result<Vec<CommandTimes>, String> {
    let mut all = Vec::new();
    for (name, line, before) in COMMANDS {
        let (mut plain, mut guarded) = (Vec::new(), Vec::new());
        for _ in 0..3 {
            plain.push(hyperfine(world, (line, *before), runs, false)?);
            guarded.push(hyperfine(world, (line, *before), runs, true)?);
        }
        let best = |times: Vec<f64>| times.into_iter().fold(f64::MAX, f64::min);
        all.push(CommandTimes { name, plain: best(plain), guarded: best(guarded) });
    }
    Ok(all)
}

/// The median. Inside a guard means that hyperfine itself runs in it: what a guard takes to start is measured by itself.
fn hyperfine(
    world: &Fixture,
    (line, before): (&str, Option<&str>),
    runs: usize,
    guarded: bool,
) -> Result<f64, String> {
    let result = world.path("hyperfine.json");
    let mut command = Command::new("hyperfine");
    command.args(["--style", "none", "--ignore-failure", "--warmup", "2", "--runs", &runs.to_string()]);
    if let Some(before) = before {
        command.args(["--prepare", before]);
    }
    command.arg("--export-json").arg(&result).arg(line);
    if guarded {
        world.run_guarded(command)?
    } else {
        world.run_unguarded(command)?
    };
    let text = fs::read_to_string(&result).map_err(|error| error.to_string())?;
    let found: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    found["results"][0]["median"].as_f64().ok_or_else(|| format!("hyperfine said {text}"))
}
