//! The figures of all runs, for programs as JSON.

use std::time::Duration;

use serde::Serialize;

use crate::cli::Sizes;
use crate::machine::MachineFacts;
use crate::peer::{ServerKind, System};
use crate::statistics::Spread;
use crate::workload::RowMeasurement;
use crate::workload::cycle::Depth;
use crate::workload::expiry::ExpiryMeasurement;
use crate::workload::handover::HandoverMeasurement;
use crate::workload::keepalive::KeepaliveMeasurement;
use crate::workload::restart::RestartMeasurement;

/// Everything that was measured. A row without figures has a failure in their place.
#[derive(Serialize)]
pub struct BenchReport {
    pub machine: MachineFacts,
    pub sizes: Sizes,
    pub servers: Vec<ServerFacts>,
    pub cycle: Vec<CycleRow>,
    pub handovers: Vec<HandoverRow>,
    pub expiry: Vec<ExpiryRow>,
    pub keepalive: Option<Figures<KeepaliveFigures>>,
    pub restart: Option<Figures<RestartFigures>>,
}

#[derive(Serialize)]
pub struct ServerFacts {
    pub server: ServerKind,
    pub version: String,
    pub settings: &'static str,
}

/// What the runs of a row gave: every run must succeed.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Figures<T> {
    Measured(T),
    Failed(String),
}

#[derive(Serialize)]
pub struct CycleRow {
    pub system: System,
    pub depth: Depth,
    pub figures: Figures<OperationFigures>,
}

#[derive(Serialize)]
pub struct HandoverRow {
    pub system: System,
    /// How its clients wait.
    pub queue: &'static str,
    pub figures: Figures<HandoverFigures>,
}

#[derive(Serialize)]
pub struct ExpiryRow {
    /// How the ends are distributed.
    pub ends: String,
    pub figures: Figures<ExpiryFigures>,
}

/// Times are in microseconds.
#[derive(Serialize)]
pub struct OperationFigures {
    pub per_second: Spread,
    pub p50: Spread,
    pub p99: Spread,
    pub p999: Spread,
    pub server_cpu_per_operation: Spread,
    pub client_cpu_per_operation: Spread,
    /// Of one core; near 1 for each thread, the load generator is the limit and not the server.
    pub client_cpu_share: Spread,
    /// Of all cores, by other programs and by the kernel's own threads.
    pub other_cpu_share: Spread,
}

#[derive(Serialize)]
pub struct HandoverFigures {
    pub handovers: OperationFigures,
    pub fairness: Spread,
}

/// In microseconds.
#[derive(Serialize)]
pub struct ExpiryFigures {
    pub lateness_p50: Spread,
    pub lateness_p99: Spread,
    pub lateness_max: Spread,
    pub due_within: Spread,
    pub announced_within: Spread,
}

#[derive(Serialize)]
pub struct KeepaliveFigures {
    pub renewals: OperationFigures,
    pub needed_per_second: f64,
    /// Of one core.
    pub server_cpu_share: Spread,
}

#[derive(Serialize)]
pub struct RestartFigures {
    pub bytes_per_lease: Spread,
    pub resident_bytes: Spread,
    pub resident_bytes_after_restart: Spread,
    pub data_bytes: Spread,
    pub acquires_per_second: Spread,
    /// In microseconds.
    pub ready_after: Spread,
}

/// The runs of one row.
pub type Runs<T> = Vec<Result<T, String>>;

impl<T> Figures<T> {
    /// Summarises the runs, or names the first failure.
    pub fn of<M>(runs: &Runs<M>, summarise: impl FnOnce(&[&M]) -> T) -> Self {
        let measured: Result<Vec<_>, _> = runs.iter().map(Result::as_ref).collect();
        match measured {
            Ok(measured) if measured.is_empty() => Self::Failed("no run".to_owned()),
            Ok(measured) => Self::Measured(summarise(&measured)),
            Err(failure) => Self::Failed(failure.clone()),
        }
    }

    pub fn measured(&self) -> Option<&T> {
        match self {
            Self::Measured(figures) => Some(figures),
            Self::Failed(_) => None,
        }
    }

    fn failure(&self) -> Option<&str> {
        match self {
            Self::Measured(_) => None,
            Self::Failed(failure) => Some(failure),
        }
    }
}

pub fn microseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

fn spread<M>(runs: &[&M], figure: impl Fn(&M) -> f64) -> Spread {
    Spread::of(runs.iter().map(|run| figure(run)))
}

impl OperationFigures {
    pub fn of(runs: &[&RowMeasurement]) -> Self {
        let percentile = |percent| spread(runs, |run| microseconds(run.latency.percentile(percent)));
        Self {
            per_second: spread(runs, |run| run.per_second()),
            p50: percentile(50.0),
            p99: percentile(99.0),
            p999: percentile(99.9),
            server_cpu_per_operation: spread(runs, |run| run.server_cpu_per_operation()),
            client_cpu_per_operation: spread(runs, |run| run.client_cpu_per_operation()),
            client_cpu_share: spread(runs, |run| run.client_cpu.as_secs_f64() / run.elapsed.as_secs_f64()),
            other_cpu_share: spread(runs, RowMeasurement::other_cpu_share),
        }
    }
}

impl HandoverFigures {
    pub fn of(runs: &[&HandoverMeasurement]) -> Self {
        let handovers: Vec<_> = runs.iter().map(|run| &run.handovers).collect();
        Self { handovers: OperationFigures::of(&handovers), fairness: spread(runs, |run| run.fairness) }
    }
}

impl ExpiryFigures {
    pub fn of(runs: &[&ExpiryMeasurement]) -> Self {
        Self {
            lateness_p50: spread(runs, |run| microseconds(run.lateness.percentile(50.0))),
            lateness_p99: spread(runs, |run| microseconds(run.lateness.percentile(99.0))),
            lateness_max: spread(runs, |run| microseconds(run.lateness.max())),
            due_within: spread(runs, |run| microseconds(run.due_within)),
            announced_within: spread(runs, |run| microseconds(run.announced_within)),
        }
    }
}

impl KeepaliveFigures {
    pub fn of(runs: &[&KeepaliveMeasurement]) -> Self {
        let renewals: Vec<_> = runs.iter().map(|run| &run.renewals).collect();
        Self {
            renewals: OperationFigures::of(&renewals),
            needed_per_second: spread(runs, |run| run.needed_per_second).median,
            server_cpu_share: spread(runs, |run| run.renewals.server_cpu_share()),
        }
    }
}

impl RestartFigures {
    pub fn of(runs: &[&RestartMeasurement]) -> Self {
        Self {
            bytes_per_lease: spread(runs, |run| run.bytes_per_lease),
            resident_bytes: spread(runs, |run| run.resident_bytes as f64),
            resident_bytes_after_restart: spread(runs, |run| run.resident_bytes_after_restart as f64),
            data_bytes: spread(runs, |run| run.data_bytes as f64),
            acquires_per_second: spread(runs, |run| run.acquires_per_second),
            ready_after: spread(runs, |run| microseconds(run.ready_after)),
        }
    }
}

impl BenchReport {
    /// What failed, one line for each row.
    pub fn failures(&self) -> Vec<String> {
        let cycle = self.cycle.iter().filter_map(|row| {
            let Depth { in_flight, per_write } = row.depth;
            let failure = row.figures.failure()?;
            Some(format!("{}, {in_flight} in flight, {per_write} per write: {failure}", row.system.label()))
        });
        let handovers = self
            .handovers
            .iter()
            .filter_map(|row| Some(format!("handovers, {}: {}", row.system.label(), row.figures.failure()?)));
        let expiry = self
            .expiry
            .iter()
            .filter_map(|row| Some(format!("expiry, {}: {}", row.ends, row.figures.failure()?)));
        let keepalive =
            self.keepalive.iter().filter_map(|figures| Some(format!("keep-alive: {}", figures.failure()?)));
        let restart =
            self.restart.iter().filter_map(|figures| Some(format!("restart: {}", figures.failure()?)));
        cycle.chain(handovers).chain(expiry).chain(keepalive).chain(restart).collect()
    }

    /// The part of the cores that other programs used: right before the measurement, or in a row.
    pub fn largest_other_share(&self) -> f64 {
        let cycle = self.cycle.iter().filter_map(|row| row.figures.measured());
        let handovers = self.handovers.iter().filter_map(|row| Some(&row.figures.measured()?.handovers));
        let keepalive = self.keepalive.iter().filter_map(|figures| Some(&figures.measured()?.renewals));
        let shares = cycle.chain(handovers).chain(keepalive).map(|figures| figures.other_cpu_share.median);
        shares.fold(self.machine.busy_share, f64::max)
    }

    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("texts and numbers can be written as JSON")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::LatencyHistogram;

    fn run(operations: u64) -> RowMeasurement {
        let mut latency = LatencyHistogram::default();
        (0..operations).for_each(|_| latency.record(Duration::from_micros(100)));
        let elapsed = Duration::from_secs(2);
        RowMeasurement {
            latency,
            elapsed,
            server_cpu: Duration::from_millis(30),
            client_cpu: Duration::from_secs(1),
            machine_cpu: Duration::from_millis(1_130),
        }
    }

    #[test]
    fn figures_are_per_second_and_per_operation() {
        let (first, second, third) = (run(1_000), run(3_000), run(2_000));
        let figures = OperationFigures::of(&[&first, &second, &third]);
        assert_eq!(figures.per_second, Spread { median: 1_000.0, min: 500.0, max: 1_500.0 });
        assert_eq!(figures.server_cpu_per_operation.median, 15.0);
        assert_eq!(figures.client_cpu_share.median, 0.5);
        assert!((100.0..102.0).contains(&figures.p99.median));
    }

    #[test]
    fn one_failed_run_fails_its_row() {
        let runs: Runs<RowMeasurement> = vec![Ok(run(10)), Err("the server ended".to_owned())];
        let figures = Figures::of(&runs, OperationFigures::of);
        assert_eq!(figures.failure(), Some("the server ended"));
        assert!(Figures::of(&Vec::new(), OperationFigures::of).measured().is_none());
    }
}
