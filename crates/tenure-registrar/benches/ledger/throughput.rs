//! How many durable acquires per second, with 256 under way.

use std::sync::mpsc;
use std::time::Duration;

use tenure_core::kernel::{Command, CommandOutcome, TickDuration};
use tenure_registrar::Reply;
use tenure_registrar::runtime::RegistrarService;

use crate::time::{cpu_time, measure_duration};
use crate::workload::{DataDirectory, acquire, open};

const IN_FLIGHT: usize = 256;

/// What was measured.
pub struct ThroughputMeasurements {
    pub grants: u64,
    pub time: Duration,
    /// Of the whole process: who asks included, but not the making of what is asked.
    pub cpu: Duration,
    pub batches: u64,
}

impl ThroughputMeasurements {
    pub fn per_second(&self) -> f64 {
        self.grants as f64 / self.time.as_secs_f64()
    }

    pub fn cpu_microseconds(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.grants as f64
    }
}

pub fn measure(grants: u64) -> Result<ThroughputMeasurements, String> {
    let data = DataDirectory::new("throughput")?;
    let service = open(data.path())?;
    // Until files, tables and caches are as they are in use.
    run_load(&service, requests(0, grants / 10))?;
    // Beforehand: what is measured is the registrar, not how fast texts can be put together.
    let requests = requests(grants, grants);
    let (events, batches) = (service.feed().head().seq.0, published_batch_count(&service));
    let before = cpu_time();
    let (result, time) = measure_duration(|| run_load(&service, requests));
    result?;
    let cpu = cpu_time().saturating_sub(before);
    let written = service.feed().head().seq.0 - events;
    if written < grants {
        return Err(format!("{grants} grants in {written} events"));
    }
    let batches = published_batch_count(&service) - batches;
    service.stop().map_err(|error| error.to_string())?;
    Ok(ThroughputMeasurements { grants, time, cpu, batches })
}

/// How many batches were told so far, as far as the feed still has them; only their number within a run counts.
fn published_batch_count(service: &RegistrarService) -> u64 {
    service.feed().published_batch_count()
}

/// Requests for `count` leases, each on a resource of its own.
fn requests(first: u64, count: u64) -> Vec<Command> {
    (first..first + count).map(|number| acquire(number, TickDuration::from_secs(3_600))).collect()
}

/// Asks for all of these, always with as many under way.
fn run_load(service: &RegistrarService, requests: Vec<Command>) -> Result<(), String> {
    let handle = service.handle();
    let (sender, receiver) = mpsc::channel();
    let ask = |command: Command| {
        let sender = sender.clone();
        handle.submit(command, move |response| {
            let granted =
                matches!(response.reply, Reply::Answered { answer: CommandOutcome::Granted { .. }, .. });
            let _ = sender.send(granted);
        });
    };
    let grants = requests.len();
    let mut requests = requests.into_iter();
    requests.by_ref().take(IN_FLIGHT).for_each(ask);
    for _ in 0..grants {
        if !receiver.recv().map_err(|error| error.to_string())? {
            return Err("a request was not granted".into());
        }
        if let Some(request) = requests.next() {
            ask(request);
        }
    }
    Ok(())
}
