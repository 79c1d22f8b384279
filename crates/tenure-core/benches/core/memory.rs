//! What a live lease takes: by how much a process of its own grows when the leases come.

use std::fs;
use std::process::Command;

use tenure_core::kernel::Decision;

use crate::workload::{BATCH, Workload, decide_and_apply};

/// The argument with which this program measures memory and nothing else.
pub const MEMORY_OF_FLAG: &str = "--memory-of";

/// Bytes per live lease: names, indexes and what the allocator adds included.
#[derive(Debug, Clone, Copy)]
pub struct MemoryUse {
    /// After as many grants.
    pub after_grants: f64,
    /// After each lease was, on the average, released and acquired again once. What is remembered of
    /// ended leases is included.
    pub after_churn: f64,
}

impl MemoryUse {
    /// Measures in a process of its own, so that nothing else is counted.
    pub fn measure(leases: usize) -> Result<MemoryUse, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let output = Command::new(program).args([MEMORY_OF_FLAG, &leases.to_string()]).output();
        let output = output.map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout);
        let figures: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        match figures[..] {
            [after_grants, after_churn] if output.status.success() => {
                Ok(MemoryUse { after_grants, after_churn })
            }
            _ => Err(format!("memory of {leases} leases: {}", String::from_utf8_lossy(&output.stderr))),
        }
    }

    /// What the process for [`MemoryUse::of`] does.
    pub fn measure_and_print(leases: usize) -> Result<(), String> {
        let mut world = Workload::empty(leases);
        let before = resident()?;
        let each = |now: u64| (now.saturating_sub(before)) as f64 / leases as f64;
        world.fill(leases);
        let after_grants = each(resident()?);
        for _ in 0..leases / BATCH {
            let releases = world.releases();
            releases.iter().for_each(|request| drop::<Decision>(decide_and_apply(&mut world.state, request)));
            world.fill(leases);
        }
        println!("{after_grants} {}", each(resident()?));
        Ok(())
    }
}

/// The process's memory in bytes.
fn resident() -> Result<u64, String> {
    let text =
        fs::read_to_string("/proc/self/statm").map_err(|error| format!("/proc/self/statm: {error}"))?;
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    Ok(pages.ok_or("/proc/self/statm: no second number")? * rustix::param::page_size() as u64)
}
