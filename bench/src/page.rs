//! The report for people: a page of Markdown tables, and its plots.

use crate::machine::IDLE_SHARE;
use crate::plot::{Bar, BarGroup, bar_chart};
use crate::report::{
    BenchReport, CycleRow, ExpiryFigures, Figures, KeepaliveFigures, OperationFigures, RestartFigures,
};
use crate::statistics::Spread;
use crate::table::{Table, cpu, megabytes, percent, thousands, time, with_spread};
use crate::workload::cycle::Depth;

/// A file beside the page.
pub struct Plot {
    pub file: &'static str,
    pub svg: String,
}

/// A client that uses more of a core than this limits what it measures.
const CLIENT_LIMIT: f64 = 0.9;

const OPERATION_COLUMNS: [&str; 7] =
    ["system", "operations per second", "p50", "p99", "p99.9", "server CPU each", "client CPU each"];

impl BenchReport {
    /// The whole page. With `has_plots` it shows the files of [`plots`](Self::plots).
    pub fn page(&self, has_plots: bool) -> String {
        let mut sections = vec![self.introduction()];
        if !self.cycle.is_empty() {
            sections.push(self.cycle_section(has_plots));
        }
        if !self.handovers.is_empty() {
            sections.push(self.handover_section());
        }
        if !self.expiry.is_empty() {
            sections.push(self.expiry_section());
        }
        sections.extend(self.keepalive.as_ref().map(|figures| self.keepalive_section(figures)));
        sections.extend(self.restart.as_ref().map(|figures| self.restart_section(figures)));
        let failures = self.failures();
        if !failures.is_empty() {
            let lines = failures.iter().map(|failure| format!("- {}\n", failure.replace('\n', " ")));
            sections.push(format!("## Failed\n\n{}", lines.collect::<String>()));
        }
        sections.join("\n")
    }

    /// The charts of the lease cycle.
    pub fn plots(&self) -> Vec<Plot> {
        type Chart = (&'static str, &'static str, Vec<BarGroup>, fn(f64) -> String);
        let per_second = |figures: &OperationFigures| figures.per_second;
        let server_cpu = |figures: &OperationFigures| figures.server_cpu_per_operation;
        let charts: [Chart; 4] = [
            (
                "peers-throughput.svg",
                "Operations per second, one command per write (a scale for each group)",
                self.groups(|depth| depth.per_write == 1, per_second),
                thousands,
            ),
            (
                "peers-throughput-pipelined.svg",
                "Operations per second, several commands per write (a scale for each group)",
                self.groups(|depth| depth.per_write > 1, per_second),
                thousands,
            ),
            (
                "peers-cpu.svg",
                "Server CPU per operation, one command per write (less is better)",
                self.groups(|depth| depth.per_write == 1, server_cpu),
                cpu,
            ),
            (
                "peers-cpu-pipelined.svg",
                "Server CPU per operation, several commands per write (less is better)",
                self.groups(|depth| depth.per_write > 1, server_cpu),
                cpu,
            ),
        ];
        let charts = charts.into_iter().filter(|(_, _, groups, _)| !groups.is_empty());
        charts
            .map(|(file, title, groups, format)| Plot { file, svg: bar_chart(title, &groups, format) })
            .collect()
    }

    /// One group of bars for each chosen depth.
    fn groups(
        &self,
        is_chosen: impl Fn(Depth) -> bool,
        figure: impl Fn(&OperationFigures) -> Spread,
    ) -> Vec<BarGroup> {
        let bars = |depth: Depth| {
            let measured = self.cycle.iter().filter(move |row| row.depth == depth);
            measured
                .filter_map(|row| {
                    let value = figure(row.figures.measured()?);
                    Some(Bar { label: row.system.label(), value, is_highlighted: row.system.is_tenure() })
                })
                .collect::<Vec<_>>()
        };
        let depths = self.depths().into_iter().filter(|depth| is_chosen(*depth));
        let groups = depths.map(|depth| BarGroup { title: title_of(depth), bars: bars(depth) });
        groups.filter(|group| !group.bars.is_empty()).collect()
    }

    /// The depths of the lease cycle, in the order of their rows.
    fn depths(&self) -> Vec<Depth> {
        let mut depths: Vec<Depth> = Vec::new();
        for row in &self.cycle {
            if !depths.contains(&row.depth) {
                depths.push(row.depth);
            }
        }
        depths
    }

    fn introduction(&self) -> String {
        let machine = &self.machine;
        let runs = match self.sizes.runs {
            1 => "There was one run.".to_owned(),
            runs => format!(
                "Each figure is the median of {runs} runs, with the lowest and the highest in parentheses. The runs take \
                 turns: every system once, then again."
            ),
        };
        let mut text = format!(
            "# Tenure and its peers\n\nWritten by `cargo xtask bench peers --write`.\n\nMeasured on {}: {} cores ({}), \
             Linux {}, data directories on {}, where a write of 512 bytes with fdatasync takes {}. The load generator \
             shares the cores with the servers. {runs}\n",
            machine.date,
            machine.cores,
            machine.processor,
            machine.kernel,
            machine.file_system,
            time(machine.sync_time.as_secs_f64() * 1e6),
        );
        if self.sizes.is_quick {
            text.push_str("\n**A quick run with small sizes: these figures are no results.**\n");
        }
        let other = self.largest_other_share();
        if other > IDLE_SHARE {
            let other = percent(other);
            text.push_str(&format!(
                "\n**The machine was not idle: other programs used up to {other} of the cores. These figures are no results.**\n"
            ));
        }
        text.push_str("\n| server | version | settings |\n|---|---|---|\n");
        for facts in &self.servers {
            text.push_str(&format!("| {} | {} | {} |\n", facts.server.name(), facts.version, facts.settings));
        }
        text
    }

    fn cycle_section(&self, has_plots: bool) -> String {
        let mut text = "## Lease cycle\n\nEach client acquires, renews and releases leases with a TTL of 30 s on resources \
                        of its own; each of the three is an operation. The systems do not do the same for it:\n\n\
                        | system | what an operation does |\n|---|---|\n"
            .to_owned();
        let mut systems: Vec<_> = self.cycle.iter().map(|row| row.system).collect();
        systems.sort_unstable();
        systems.dedup();
        for system in systems {
            text.push_str(&format!("| {} | {} |\n", system.label(), system.operations()));
        }
        if has_plots {
            self.plots().iter().for_each(|plot| text.push_str(&format!("\n![{0}]({0})\n", plot.file)));
        }
        for depth in self.depths() {
            let measured: Vec<_> = self.cycle.iter().filter(|row| row.depth == depth).collect();
            let mut table = Table::with_columns(&OPERATION_COLUMNS);
            for row in &measured {
                table.push(&operation_cells(row.system.label(), &row.figures, |figures| figures));
            }
            text.push_str(&format!(
                "\n### {}\n\n{}{}",
                title_of(depth),
                table.into_text(),
                verdict(&measured)
            ));
        }
        text.push_str(&self.client_limits());
        text
    }

    /// Names the rows in which the load generator may have been slower than the server.
    fn client_limits(&self) -> String {
        let limited = self.cycle.iter().filter_map(|row| {
            let share = row.figures.measured()?.client_cpu_share.median;
            let text = format!("- {}, {}: {}\n", row.system.label(), title_of(row.depth), percent(share));
            (share > CLIENT_LIMIT).then_some(text)
        });
        let limited: String = limited.collect();
        if limited.is_empty() {
            return limited;
        }
        format!(
            "\nIn these rows the load generator used almost a whole core, and may be what limits them:\n\n{limited}"
        )
    }

    fn handover_section(&self) -> String {
        let waiters = self.sizes.waiters;
        let mut text = format!(
            "## Handovers\n\n{waiters} clients want one resource, and each releases it as soon as it has it. A handover is a \
             grant to another client than the last; its latency begins right before the release is sent. Fairness is \
             Jain's index of how often each client was served: 1 if all were served equally, {:.3} if one had \
             everything.\n\n| system | how a client waits |\n|---|---|\n",
            1.0 / waiters as f64
        );
        for row in &self.handovers {
            text.push_str(&format!("| {} | {} |\n", row.system.label(), row.queue));
        }
        text.push('\n');
        let columns = OPERATION_COLUMNS.map(|column| column.replace("operations", "handovers"));
        let columns: Vec<_> = columns.iter().map(String::as_str).chain(["fairness"]).collect();
        let mut table = Table::with_columns(&columns);
        for row in &self.handovers {
            let mut cells = operation_cells(row.system.label(), &row.figures, |figures| &figures.handovers);
            cells.extend(
                row.figures
                    .measured()
                    .map(|figures| with_spread(figures.fairness, |index| format!("{index:.3}"))),
            );
            table.push(&cells);
        }
        text.push_str(&table.into_text());
        text
    }

    fn expiry_section(&self) -> String {
        let mut table = Table::with_columns(&[
            "ends",
            "late, p50",
            "late, p99",
            "late, at most",
            "first to last end",
            "first end to last event",
        ]);
        for row in &self.expiry {
            let cells = |figures: &ExpiryFigures| {
                let ExpiryFigures { lateness_p50, lateness_p99, lateness_max, due_within, announced_within } =
                    figures;
                [lateness_p50, lateness_p99, lateness_max, due_within, announced_within]
                    .map(|figure| with_spread(*figure, time))
            };
            let figures = row.figures.measured().map(cells);
            table.push(
                &[row.ends.clone()].into_iter().chain(figures.into_iter().flatten()).collect::<Vec<_>>(),
            );
        }
        format!(
            "## Expiry\n\nHow late a client that watches `lease.expired` over `/v1/stream` has the event: the receipt minus \
             the end that the event names, which is cut to whole milliseconds, so that up to 1 ms is rounding. {} leases \
             of Tenure.\n\n{}",
            thousands(self.sizes.expiring as f64),
            table.into_text()
        )
    }

    fn keepalive_section(&self, figures: &Figures<KeepaliveFigures>) -> String {
        let mut table = Table::with_columns(&["what", "measured"]);
        if let Some(figures) = figures.measured() {
            let KeepaliveFigures { renewals, needed_per_second, server_cpu_share } = figures;
            table.push(&["renewals per second that are needed".to_owned(), thousands(*needed_per_second)]);
            table.push(&["renewals per second".to_owned(), with_spread(renewals.per_second, thousands)]);
            table.push(&[
                "CPU of the server, of one core".to_owned(),
                with_spread(*server_cpu_share, percent),
            ]);
            table.push(&[
                "CPU of the server, each renewal".to_owned(),
                with_spread(renewals.server_cpu_per_operation, cpu),
            ]);
            for (name, latency) in [("p50", renewals.p50), ("p99", renewals.p99), ("p99.9", renewals.p999)] {
                table.push(&[format!("latency, {name}"), with_spread(latency, time)]);
            }
        }
        format!(
            "## Keep-alive\n\n{} leases of Tenure with a TTL of 30 s, each renewed every 10 s, 16 in a frame of \
             `/v1/stream`, over 8 connections. Each renewal is signed, appended to the ledger and synced.\n\n{}",
            thousands(self.sizes.renewed as f64),
            table.into_text()
        )
    }

    fn restart_section(&self, figures: &Figures<RestartFigures>) -> String {
        let mut table = Table::with_columns(&["what", "measured"]);
        if let Some(figures) = figures.measured() {
            let mut push = |what: &str, figure, format: fn(f64) -> String| {
                table.push(&[what.to_owned(), with_spread(figure, format)]);
            };
            push("resident memory per lease, bytes", figures.bytes_per_lease, thousands);
            push("resident memory", figures.resident_bytes, megabytes);
            push("resident memory after the restart", figures.resident_bytes_after_restart, megabytes);
            push("data directory", figures.data_bytes, megabytes);
            push(
                "acquires per second while filling, 8 connections with 16 per frame",
                figures.acquires_per_second,
                thousands,
            );
            push("from the start of the process until `/readyz` is 200", figures.ready_after, time);
        }
        format!(
            "## Memory and restart\n\n{} live leases of Tenure. Then the server is killed with SIGKILL and started again on \
             the same data; files are in the system's memory.\n\n{}",
            thousands(self.sizes.live as f64),
            table.into_text()
        )
    }
}

fn title_of(depth: Depth) -> String {
    let commands = if depth.per_write == 1 { "command" } else { "commands" };
    format!("{} in flight, {} {commands} per write", depth.in_flight, depth.per_write)
}

/// The cells of [`OPERATION_COLUMNS`].
fn operation_cells<T>(
    label: &str,
    figures: &Figures<T>,
    operations: impl Fn(&T) -> &OperationFigures,
) -> Vec<String> {
    let Some(figures) = figures.measured().map(operations) else {
        return vec![label.to_owned(), "failed".to_owned()];
    };
    vec![
        label.to_owned(),
        with_spread(figures.per_second, thousands),
        with_spread(figures.p50, time),
        with_spread(figures.p99, time),
        with_spread(figures.p999, time),
        with_spread(figures.server_cpu_per_operation, cpu),
        with_spread(figures.client_cpu_per_operation, cpu),
    ]
}

/// Names the system with the most operations, and how the fastest way to use Tenure compares.
fn verdict(group: &[&CycleRow]) -> String {
    let measured =
        group.iter().filter_map(|row| Some((row.system, row.figures.measured()?.per_second.median)));
    let mut measured: Vec<_> = measured.collect();
    measured.sort_unstable_by(|(_, one), (_, other)| other.total_cmp(one));
    let best = |is_tenure: bool| measured.iter().find(|(system, _)| system.is_tenure() == is_tenure);
    let (Some((tenure, own)), Some((peer, other))) = (best(true), best(false)) else { return String::new() };
    let ratio = own / other;
    let (tenure, peer) = (tenure.label(), peer.label());
    if ratio >= 1.0 {
        format!("\nMost operations per second: {tenure}, {ratio:.2} times as many as {peer}.\n")
    } else {
        format!("\nMost operations per second: {peer}. {tenure} has {ratio:.2} times as many.\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::System;

    fn row(system: System, per_second: f64) -> CycleRow {
        let spread = |value| Spread { median: value, min: value, max: value };
        let figures = OperationFigures {
            per_second: spread(per_second),
            p50: spread(150.0),
            p99: spread(2_000.0),
            p999: spread(3_000.0),
            server_cpu_per_operation: spread(12.0),
            client_cpu_per_operation: spread(4.0),
            client_cpu_share: spread(0.5),
            other_cpu_share: spread(0.0),
        };
        let depth = Depth { in_flight: 16, per_write: 1 };
        CycleRow { system, depth, figures: Figures::Measured(figures) }
    }

    #[test]
    fn a_peer_that_is_faster_is_named_first() {
        let (tenure, redis) = (row(System::TenureHttp, 6_000.0), row(System::Redis, 24_000.0));
        let text = verdict(&[&tenure, &redis]);
        assert_eq!(text, "\nMost operations per second: Redis. Tenure, HTTP has 0.25 times as many.\n");
        let (tenure, redis) = (row(System::TenureHttp, 30_000.0), row(System::Redis, 20_000.0));
        let text = verdict(&[&redis, &tenure]);
        assert_eq!(text, "\nMost operations per second: Tenure, HTTP, 1.50 times as many as Redis.\n");
        assert_eq!(verdict(&[&tenure]), "", "without a peer there is nothing to compare");
    }

    #[test]
    fn a_failed_row_has_no_figures() {
        let failed: Figures<OperationFigures> = Figures::Failed("no response".to_owned());
        assert_eq!(operation_cells("etcd", &failed, |figures| figures), ["etcd", "failed"]);
        let cells = operation_cells("Redis", &row(System::Redis, 24_000.0).figures, |figures| figures);
        assert_eq!(cells, ["Redis", "24,000", "150 µs", "2.00 ms", "3.00 ms", "12.0 µs", "4.0 µs"]);
        assert_eq!(cells.len(), OPERATION_COLUMNS.len());
    }

    #[test]
    fn depths_are_named_in_words() {
        assert_eq!(title_of(Depth { in_flight: 16, per_write: 1 }), "16 in flight, 1 command per write");
        assert_eq!(title_of(Depth { in_flight: 64, per_write: 4 }), "64 in flight, 4 commands per write");
    }
}
