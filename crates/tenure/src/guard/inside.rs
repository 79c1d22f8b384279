//! Whether this process is watched by a guard already.

use std::fs;

use tenure_gate::process::ancestors;

use super::KEEPER;

/// Whether a keeper above us watches us. Then a second one is neither needed nor possible.
///
/// It is not enough that there is one above: what a keeper starts for itself is not watched.
pub fn is_watched() -> bool {
    let own = std::process::id();
    let keeper = ancestors(own).into_iter().find(|above| is_keeper(above.pid));
    keeper.is_some_and(|keeper| match (filters(own), filters(keeper.pid)) {
        (Some(own), Some(keepers)) => own > keepers,
        _ => false,
    })
}

fn is_keeper(process: u32) -> bool {
    let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).nth(1) == Some(KEEPER.as_bytes())
}

/// How many filters a process has.
fn filters(process: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:"))?;
    line.trim().parse().ok()
}
