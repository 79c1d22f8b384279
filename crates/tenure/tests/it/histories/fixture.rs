//! What clients and a server share: the clock, the address, when the server ended, and the recorded operations.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tempfile::TempDir;
use tenure_history::linearizability::{self, DEFAULT_MAX_STEPS, SearchVerdict};
use tenure_history::{Action, History, Operation, fences, ledger};
use tenure_registrar::runtime::{BootClock, Clock as _};
use tenure_testkit::{ServerProcess, TestClient, serve_command, sleep};

use crate::histories::client::{HistoryClient, RecordedOperation};

const CLIENTS: u64 = 16;

/// The only source of chance; the machine has its own.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0xA076_1D64_78BD_642F) ^ 0xE703_7ED1_A0B4_28DB)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }

    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap()
    }
}

/// What all clients share.
pub struct HistoryContext {
    pub seed: u64,
    clock: BootClock,
    admin: String,
    /// How many servers there were before it, and where it listens; nothing while there is none.
    address: Mutex<Option<(usize, String)>>,
    is_open: AtomicBool,
    turns: AtomicU64,
}

impl HistoryContext {
    pub fn is_open(&self) -> bool {
        self.is_open.load(Ordering::SeqCst)
    }

    /// Microseconds of the clock by which the server counts.
    pub fn now(&self) -> u64 {
        self.clock.microseconds()
    }

    /// So that each resource has its turn.
    pub fn next_turn(&self) -> u64 {
        self.turns.fetch_add(1, Ordering::SeqCst)
    }

    /// A connection to the server that serves now, and which one that is.
    pub fn connect(&self) -> Option<(usize, TestClient)> {
        while self.is_open() {
            let address = self.address.lock().unwrap().clone();
            if let Some((generation, address)) = address
                && let Ok(client) = TestClient::with_token(&address, &self.admin)
            {
                return Some((generation, client));
            }
            sleep(Duration::from_millis(5));
        }
        None
    }
}

/// A server, its clients, and when each server that was killed was gone.
pub struct HistoryRun {
    pub folder: TempDir,
    pub context: Arc<HistoryContext>,
    pub rng: Rng,
    served: Option<ServerProcess>,
    killed_at: Vec<u64>,
    clients: Vec<std::thread::JoinHandle<Vec<RecordedOperation>>>,
}

impl HistoryRun {
    pub fn new(seed: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let served = Self::start(folder.path());
        let admin = std::fs::read_to_string(folder.path().join("data/admin.token")).unwrap();
        let context = Arc::new(HistoryContext {
            seed,
            clock: BootClock::new().unwrap(),
            admin: admin.trim_end().to_owned(),
            address: Mutex::new(Some((0, served.address.clone()))),
            is_open: AtomicBool::new(true),
            turns: AtomicU64::new(0),
        });
        let client = |number| {
            let worker = HistoryClient::new(number, context.clone());
            std::thread::spawn(move || worker.run())
        };
        let clients = (0..CLIENTS).map(client).collect();
        let (rng, served) = (Rng::new(seed), Some(served));
        Self { folder, context, rng, served, killed_at: Vec::new(), clients }
    }

    fn start(folder: &Path) -> ServerProcess {
        let mut command = serve_command(folder);
        command.env("TENURE_LEDGER_CHECKPOINT_AFTER", "1000");
        ServerProcess::start(&mut command)
    }

    pub fn server(&self) -> &ServerProcess {
        self.served.as_ref().unwrap()
    }

    /// Kills the server and starts another one on the same directory.
    pub fn kill_and_restart(&mut self) {
        let served = self.served.take().unwrap();
        *self.context.address.lock().unwrap() = None;
        served.kill();
        self.killed_at.push(self.context.now());
        let served = Self::start(self.folder.path());
        *self.context.address.lock().unwrap() = Some((self.killed_at.len(), served.address.clone()));
        self.served = Some(served);
    }

    /// Waits for a while, up to `most` milliseconds.
    pub fn sleep(&mut self, max: u64) {
        sleep(Duration::from_millis(1 + self.rng.below(max)));
    }

    /// Ends clients and server, and checks everything that was noted.
    pub fn finish(mut self) -> HistorySummary {
        self.context.is_open.store(false, Ordering::SeqCst);
        let clients = std::mem::take(&mut self.clients);
        let noted: Vec<RecordedOperation> =
            clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
        drop(self.served.take());
        self.killed_at.push(self.context.now());
        let clock = Some(self.context.clock.id().to_string());
        let operations = noted.into_iter().map(|noted| operation_with_end(noted, &self.killed_at)).collect();
        self.check(&History { clock, operations })
    }

    fn check(self, history: &History) -> HistorySummary {
        let data = self.folder.path().join("data");
        let entries = ledger::load(&data).unwrap();
        let mut wrong: Vec<String> = fences::check(history).iter().map(ToString::to_string).collect();
        wrong.extend(ledger::check(history, &entries).iter().map(ToString::to_string));
        for finding in linearizability::check(history, DEFAULT_MAX_STEPS) {
            match finding.verdict {
                SearchVerdict::Holds => {}
                SearchVerdict::Violated(violation) => wrong.push(violation.to_string()),
                SearchVerdict::Undecided => {
                    wrong.push(format!("{}: the search was given up", finding.resource))
                }
            }
        }
        if !wrong.is_empty() {
            let kept = self.folder.keep();
            let file = kept.join("history.jsonl");
            history.write(std::fs::File::create(&file).unwrap()).unwrap();
            let (file, data, count) = (file.display(), kept.join("data"), wrong.len());
            wrong.truncate(5);
            panic!(
                "seed {}: {count} violations, the first of them:\n{}\ncheck again with\n  cargo run -p tenure-history -- {file} --data {}",
                self.context.seed,
                wrong.join("\n"),
                data.display()
            );
        }
        HistorySummary::of(history)
    }
}

/// Nothing comes of a request after its process is gone; but who waits has its place in the ledger.
fn operation_with_end(noted: RecordedOperation, end_times: &[u64]) -> Operation {
    let mut operation = noted.operation;
    if let Some(generation) = noted.lost_generation {
        let patience = match &operation.action {
            Action::Acquire { wait_ms, .. } => wait_ms * 1_000,
            _ => 0,
        };
        operation.ended = end_times.get(generation).map(|gone| gone + patience);
    }
    operation
}

/// How much was tried.
#[derive(Debug, Default)]
pub struct HistorySummary {
    pub operations: usize,
    pub granted: usize,
    pub refused: usize,
    pub unanswered: usize,
    pub waited: usize,
}

impl HistorySummary {
    fn of(history: &History) -> Self {
        let count =
            |is_one: &dyn Fn(&Operation) -> bool| history.operations.iter().filter(|one| is_one(one)).count();
        Self {
            operations: history.operations.len(),
            granted: count(&|one| !one.grants().is_empty()),
            refused: count(&|one| matches!(one.answer, Some(tenure_history::OperationResponse::Held { .. }))),
            unanswered: count(&|one| one.answer.is_none()),
            waited: count(&|one| {
                let is_waiting = matches!(one.action, Action::Acquire { wait_ms, .. } if wait_ms > 0);
                is_waiting && !one.grants().is_empty()
            }),
        }
    }
}
