//! Runs the chosen sections: in each run every row once, so that systems take turns.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::time::Duration;

use tokio::time::timeout;

use crate::cli::{Options, Section, Sizes};
use crate::error::BenchError;
use crate::machine::MachineFacts;
use crate::peer::launcher::{Launcher, RunningServer, settings};
use crate::peer::{ServerKind, System};
use crate::report::{
    BenchReport, CycleRow, ExpiryFigures, ExpiryRow, Figures, HandoverFigures, HandoverRow, KeepaliveFigures,
    OperationFigures, RestartFigures, Runs, ServerFacts,
};
use crate::table::{thousands, time};
use crate::workload::cycle::{self, Depth};
use crate::workload::expiry::{self, Ends, ExpiryMeasurement};
use crate::workload::handover::{self, HandoverMeasurement};
use crate::workload::keepalive::{self, KeepaliveMeasurement};
use crate::workload::restart::{self, RestartMeasurement};
use crate::workload::{RowMeasurement, handover as handovers};

/// For connecting, and for the last responses, of a row whose measured time is known.
const SPARE_ROW_TIME: Duration = Duration::from_secs(120);
/// Longer than the largest sizes of the command line take on a slow machine.
const MAX_ROW_TIME: Duration = Duration::from_secs(30 * 60);

/// Measures everything that `options` ask for.
pub async fn run(options: &Options) -> Result<BenchReport, BenchError> {
    let sizes = options.sizes();
    let launcher = Launcher {
        tenure: options.tenure.clone(),
        etcd: options.etcd.clone(),
        nats: options.nats.clone(),
        data: options.data(),
    };
    let mut session = BenchSession::plan(options, sizes, launcher);
    // A missing program is found before an hour of measurement.
    let servers = session.server_facts()?;
    let machine = MachineFacts::read(&session.launcher.data).await?;
    for run in 1..=session.sizes.runs {
        session.progress.run = run;
        session.run_peers().await?;
        session.run_tenure().await?;
    }
    Ok(session.into_report(machine, servers))
}

struct BenchSession {
    sizes: Sizes,
    launcher: Launcher,
    progress: Progress,
    /// In the order in which they run, with what their runs gave.
    cycle: Vec<(System, Depth, Runs<RowMeasurement>)>,
    handovers: Vec<(System, &'static str, Runs<HandoverMeasurement>)>,
    expiry: Vec<(Ends, Runs<ExpiryMeasurement>)>,
    keepalive: Option<Runs<KeepaliveMeasurement>>,
    restart: Option<Runs<RestartMeasurement>>,
}

impl BenchSession {
    fn plan(options: &Options, sizes: Sizes, launcher: Launcher) -> Self {
        let systems = options.systems();
        let mut cycle = Vec::new();
        if options.measures(Section::Cycle) {
            for depth in Depth::all(&sizes) {
                let suitable = systems.iter().filter(|system| depth.suits(**system));
                cycle.extend(suitable.map(|system| (*system, depth, Runs::new())));
            }
        }
        let handovers = handovers::SYSTEMS.into_iter().filter(|(system, _)| systems.contains(system));
        let handovers: Vec<_> = handovers
            .filter(|_| options.measures(Section::Handover))
            .map(|(system, queue)| (system, queue, Runs::new()))
            .collect();
        let ends = [Ends::Spread(sizes.expiry_window), Ends::Together];
        let expiry: Vec<_> = ends
            .into_iter()
            .filter(|_| options.measures(Section::Expiry))
            .map(|ends| (ends, Runs::new()))
            .collect();
        let keepalive = options.measures(Section::Keepalive).then(Runs::new);
        let restart = options.measures(Section::Restart).then(Runs::new);
        let per_run = cycle.len()
            + handovers.len()
            + expiry.len()
            + usize::from(keepalive.is_some())
            + usize::from(restart.is_some());
        let progress = Progress { run: 1, runs: sizes.runs, done: 0, total: per_run * sizes.runs as usize };
        Self { sizes, launcher, progress, cycle, handovers, expiry, keepalive, restart }
    }

    /// Servers that any row needs.
    fn kinds(&self) -> Vec<ServerKind> {
        let mut kinds: Vec<_> = self.peer_kinds();
        let is_tenure_needed = !self.expiry.is_empty() || self.keepalive.is_some() || self.restart.is_some();
        kinds.extend(is_tenure_needed.then_some(ServerKind::Tenure));
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    fn peer_kinds(&self) -> Vec<ServerKind> {
        let cycle = self.cycle.iter().map(|(system, ..)| system.server());
        let mut kinds: Vec<_> =
            cycle.chain(self.handovers.iter().map(|(system, ..)| system.server())).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    fn server_facts(&self) -> Result<Vec<ServerFacts>, BenchError> {
        let facts = |server| {
            let version = self.launcher.version(server)?;
            Ok(ServerFacts { server, version, settings: settings(server) })
        };
        self.kinds().into_iter().map(facts).collect()
    }

    /// The lease cycle and the handovers, on servers that start empty in each run and idle while others are measured.
    async fn run_peers(&mut self) -> Result<(), BenchError> {
        let mut servers: BTreeMap<ServerKind, RunningServer> = BTreeMap::new();
        for kind in self.peer_kinds() {
            servers.insert(kind, self.launcher.start(kind).await?);
        }
        let row_time = self.sizes.warm_up + self.sizes.measured_time + SPARE_ROW_TIME;
        for (number, (system, depth, runs)) in self.cycle.iter_mut().enumerate() {
            let Depth { in_flight, per_write } = *depth;
            self.progress.begin(&format!("{}, {in_flight} in flight, {per_write} per write", system.label()));
            let server = started(&mut servers, *system)?;
            let label = format!("r{number}");
            let measured = limit(cycle::run(*system, server, *depth, &self.sizes, &label), row_time).await;
            let measured = measured.map_err(|error| server.process.explain(error));
            let summary = |run: &RowMeasurement| format!("{} per second", thousands(run.per_second()));
            runs.push(self.progress.end(measured, summary));
        }
        for (number, (system, _, runs)) in self.handovers.iter_mut().enumerate() {
            self.progress.begin(&format!("handovers, {}", system.label()));
            let server = started(&mut servers, *system)?;
            let label = format!("h{number}");
            let measured = limit(handover::run(*system, server, &self.sizes, &label), row_time).await;
            let measured = measured.map_err(|error| server.process.explain(error));
            let summary = |run: &HandoverMeasurement| {
                format!("{} per second, fairness {:.3}", thousands(run.handovers.per_second()), run.fairness)
            };
            runs.push(self.progress.end(measured, summary));
        }
        Ok(())
    }

    /// What only Tenure is measured for, each on a server of its own.
    async fn run_tenure(&mut self) -> Result<(), BenchError> {
        for (ends, runs) in &mut self.expiry {
            self.progress.begin(&format!("expiry, {}", ends.name()));
            let server = self.launcher.start(ServerKind::Tenure).await?;
            let measured = limit(expiry::run(&server, &self.sizes, *ends), MAX_ROW_TIME).await;
            let summary = |run: &ExpiryMeasurement| {
                format!("p99 {} late", time(run.lateness.percentile(99.0).as_secs_f64() * 1e6))
            };
            runs.push(self.progress.end(measured, summary));
        }
        if let Some(runs) = &mut self.keepalive {
            self.progress.begin("keep-alive");
            let server = self.launcher.start(ServerKind::Tenure).await?;
            let measured = limit(keepalive::run(&server, &self.sizes), MAX_ROW_TIME).await;
            let summary = |run: &KeepaliveMeasurement| {
                format!("{:.1} % of a core", run.renewals.server_cpu_share() * 100.0)
            };
            runs.push(self.progress.end(measured, summary));
        }
        if let Some(runs) = &mut self.restart {
            self.progress.begin("memory and restart");
            let server = self.launcher.start(ServerKind::Tenure).await?;
            let measured = limit(restart::run(server, &self.sizes), MAX_ROW_TIME).await;
            let summary = |run: &RestartMeasurement| {
                format!("{:.0} bytes per lease, ready after {:?}", run.bytes_per_lease, run.ready_after)
            };
            runs.push(self.progress.end(measured, summary));
        }
        Ok(())
    }

    fn into_report(self, machine: MachineFacts, servers: Vec<ServerFacts>) -> BenchReport {
        let cycle = self.cycle.iter().map(|(system, depth, runs)| CycleRow {
            system: *system,
            depth: *depth,
            figures: Figures::of(runs, OperationFigures::of),
        });
        let handovers = self.handovers.iter().map(|(system, queue, runs)| HandoverRow {
            system: *system,
            queue,
            figures: Figures::of(runs, HandoverFigures::of),
        });
        let expiry = self.expiry.iter().map(|(ends, runs)| ExpiryRow {
            ends: ends.name(),
            figures: Figures::of(runs, ExpiryFigures::of),
        });
        BenchReport {
            cycle: cycle.collect(),
            handovers: handovers.collect(),
            expiry: expiry.collect(),
            keepalive: self.keepalive.map(|runs| Figures::of(&runs, KeepaliveFigures::of)),
            restart: self.restart.map(|runs| Figures::of(&runs, RestartFigures::of)),
            machine,
            sizes: self.sizes,
            servers,
        }
    }
}

fn started(
    servers: &mut BTreeMap<ServerKind, RunningServer>,
    system: System,
) -> Result<&mut RunningServer, BenchError> {
    let problem =
        || BenchError::environment(format!("{} was not started", system.label()), "report this defect");
    servers.get_mut(&system.server()).ok_or_else(problem)
}

/// Fails a row that does not end.
async fn limit<T>(
    row: impl Future<Output = Result<T, BenchError>>,
    max_time: Duration,
) -> Result<T, BenchError> {
    timeout(max_time, row).await.unwrap_or_else(|_| {
        let problem = format!("no end within {} s", max_time.as_secs());
        Err(BenchError::environment(problem, "look at the server by hand, or choose smaller sizes"))
    })
}

impl Ends {
    fn name(self) -> String {
        match self {
            Self::Spread(window) => format!("spread over {} s", window.as_secs()),
            Self::Together => "at one instant".to_owned(),
        }
    }
}

/// Says on stderr what runs, and what came of it.
struct Progress {
    run: u32,
    runs: u32,
    done: usize,
    total: usize,
}

impl Progress {
    fn begin(&mut self, what: &str) {
        self.done += 1;
        // A reader that is gone is no reason to stop.
        let _ = write!(
            io::stderr(),
            "[{}/{}] run {} of {}: {what} ... ",
            self.done,
            self.total,
            self.run,
            self.runs
        );
    }

    fn end<T>(&self, measured: Result<T, BenchError>, summary: impl Fn(&T) -> String) -> Result<T, String> {
        let measured = measured.map_err(|error| error.to_string());
        let text = match &measured {
            Ok(measured) => summary(measured),
            Err(failure) => format!("FAILED: {failure}"),
        };
        let _ = writeln!(io::stderr(), "{text}");
        measured
    }
}
