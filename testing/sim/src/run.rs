//! Runs seeds, and says what came of them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::agents::AgentsScenario;
use crate::clients::ClientsScenario;
use crate::files::FilesScenario;
use crate::invariants::{InvariantResult, Violation};
use crate::random_scenario::RandomScenario;
use crate::simulation_log::{EventCoverage, SimulationLog};
use crate::work::WorkScenario;

/// A world that follows from its seed.
pub trait Scenario: Sized {
    /// The world of a seed, before anything happened.
    fn new(seed: u64) -> Self;
    /// Lets the next thing happen, and checks every law.
    fn step(&mut self, log: &mut SimulationLog) -> InvariantResult;
    /// Ends all faults, and checks that everything comes to its end.
    fn wind_down(&mut self, log: &mut SimulationLog) -> InvariantResult;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeedReport {
    pub seed: u64,
    pub steps: u64,
    pub digest: [u8; 32],
    /// The digest of its records and answers, which no renaming changes.
    pub records_digest: [u8; 32],
    /// The law that was broken, if one was.
    pub violation: Option<Violation>,
    /// How often each kind of thing happened.
    pub coverage: EventCoverage,
    /// Every line, if they were kept.
    pub lines: Vec<String>,
}

/// Runs `steps` steps of a seed. Every fifth seed is a crew of agents, every fourteenth of the others a working tree; of the rest
/// odd ones are fleets, even ones storms.
pub fn run_seed(seed: u64, steps: u64, keep_lines: bool) -> SeedReport {
    match seed {
        _ if seed.is_multiple_of(5) => run_agents(seed, steps, keep_lines),
        _ if seed.is_multiple_of(14) => run_files(seed, steps, keep_lines),
        _ if seed % 2 == 1 => run::<ClientsScenario>(seed, steps, keep_lines),
        _ => run::<RandomScenario>(seed, steps, keep_lines),
    }
}

/// Runs `steps` steps of a crew of agents, whatever the seed.
pub fn run_agents(seed: u64, steps: u64, keep_lines: bool) -> SeedReport {
    run::<AgentsScenario>(seed, steps, keep_lines)
}

/// Runs `steps` steps of coding agents in one working tree, whatever the seed.
pub fn run_files(seed: u64, steps: u64, keep_lines: bool) -> SeedReport {
    run::<FilesScenario>(seed, steps, keep_lines)
}

/// Runs `steps` steps of clients of the work API, whatever the seed.
pub fn run_work(seed: u64, steps: u64, keep_lines: bool) -> SeedReport {
    run::<WorkScenario>(seed, steps, keep_lines)
}

fn run<S: Scenario>(seed: u64, steps: u64, keep_lines: bool) -> SeedReport {
    let mut log = if keep_lines { SimulationLog::with_lines() } else { SimulationLog::digest_only() };
    let mut taken = 0;
    // A panic in the code under test is a broken law like any other, and must leave its log behind.
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut world = S::new(seed);
        while taken < steps {
            world.step(&mut log)?;
            taken += 1;
        }
        world.wind_down(&mut log)
    }));
    let violation = match outcome {
        Ok(Ok(())) => None,
        Ok(Err(violation)) => Some(violation),
        Err(panic) => {
            let message = panic.downcast_ref::<String>().map(String::as_str);
            let message = message.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
            Some(Violation(format!("panic: {message}")))
        }
    };
    let (digest, records_digest) = (log.digest(), log.records_digest().finish());
    let (coverage, lines) = (log.coverage().clone(), log.lines().to_vec());
    SeedReport { seed, steps: taken, digest, records_digest, violation, coverage, lines }
}
