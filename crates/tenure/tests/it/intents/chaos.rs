//! Worker and server, killed at any moment under load: nothing that was accepted is lost, nothing is used by two at once, and
//! nothing is stuck.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use tenure_testkit::pipelines::{
    IntentsFixture, IntentsSetup, WorkerMode, get_session, intent_body, wait_for_states,
};
use tenure_testkit::process::processes_using;
use tenure_testkit::{TestClient, is_file_unlocked, sleep, wait_until};

use crate::histories::fixture::Rng;
use crate::intents::ledger::{LedgerEvents, text};

/// Each of them is of another kind: `intents_pipeline.sh` says which.
const CHANNELS: [&str; 6] = ["plain", "other", "quits", "fails", "stubborn", "strays"];
const TUNERS: u32 = 2;
const CALLERS: u64 = 3;

/// What callers and whoever kills have in common.
struct Load {
    /// Where the server is, or was.
    address: Mutex<String>,
    admin: String,
    /// Every session that was answered with 202.
    accepted: Mutex<BTreeSet<String>>,
    is_finished: AtomicBool,
}

impl Load {
    fn connect(&self) -> Option<TestClient> {
        let address = self.address.lock().unwrap().clone();
        TestClient::with_token(&address, &self.admin).ok()
    }

    /// One of the sessions that were accepted.
    fn any(&self, rng: &mut Rng) -> Option<String> {
        let accepted = self.accepted.lock().unwrap();
        let number = rng.index(accepted.len().max(1));
        accepted.iter().nth(number).cloned()
    }

    /// Starts, stops and looks, until it is over.
    fn call(&self, mut rng: Rng) {
        let mut connection = None;
        while !self.is_finished.load(Ordering::Relaxed) {
            sleep(Duration::from_millis(5 + rng.below(40)));
            let Some(mut client) = connection.take().or_else(|| self.connect()) else { continue };
            if self.ask(&mut client, &mut rng).is_ok() {
                connection = Some(client);
            }
        }
    }

    /// One request. An error: nobody knows what became of it.
    fn ask(&self, client: &mut TestClient, rng: &mut Rng) -> std::io::Result<()> {
        let (line, body) = match (rng.below(10), self.any(rng)) {
            (0..=1, Some(id)) => (format!("DELETE /api/v3/sessions/{id}"), String::new()),
            (2, Some(id)) => (format!("GET /api/v3/sessions/{id}"), String::new()),
            (3, _) => ("GET /api/v3/sessions?state=RUNNING".to_owned(), String::new()),
            _ => {
                let parameter = rng.percent(20).then_some("de");
                let body = intent_body(CHANNELS[rng.index(CHANNELS.len())], parameter);
                ("POST /api/v3/intents".to_owned(), body)
            }
        };
        let answer = client.request(&line, None, &body)?;
        // A server that stops or starts says so; every other refusal would be a mistake.
        assert!([200, 202, 503].contains(&answer.status), "{line}: {answer:?}");
        if line.starts_with("POST") && answer.status == 202 {
            self.accepted.lock().unwrap().insert(answer.body["session_id"].as_str().unwrap().to_owned());
        }
        Ok(())
    }
}

/// A home on which everything is killed.
struct Chaos {
    home: IntentsFixture,
    load: Arc<Load>,
    callers: Vec<JoinHandle<()>>,
    rng: Rng,
    seed: u64,
}

impl Chaos {
    fn begin(worker: WorkerMode, seed: u64) -> Self {
        let home =
            IntentsFixture::new(IntentsSetup { ttl_ms: 2_000, tuners: TUNERS, ..IntentsSetup::with(worker) });
        let admin = home.read_or_empty("data/admin.token").trim_end().to_owned();
        let load = Arc::new(Load {
            address: Mutex::new(home.server().address.clone()),
            admin,
            accepted: Mutex::default(),
            is_finished: AtomicBool::new(false),
        });
        let start = |number: u64| {
            let load = load.clone();
            let rng = Rng::new(seed.wrapping_mul(1_000).wrapping_add(number));
            std::thread::spawn(move || load.call(rng))
        };
        let callers = (1..=CALLERS).map(start).collect();
        Self { home, load, callers, rng: Rng::new(seed), seed }
    }

    /// Kills somebody, and starts it again at once or a moment later.
    fn kill(&mut self) {
        // Now and then longer than a lease lasts.
        let longest = if self.rng.percent(5) { 2_500 } else { 600 };
        sleep(Duration::from_millis(self.rng.below(longest)));
        if self.home.has_separate_worker() && self.rng.percent(8) {
            self.suspend_worker();
        }
        let kind = if self.home.has_separate_worker() { self.rng.below(3) } else { 0 };
        if self.rng.percent(15) {
            self.home.kill_watchdogs();
        }
        if kind != 1 {
            self.home.kill_server();
        }
        if kind != 0 {
            self.home.kill_worker();
        }
        if self.rng.percent(30) {
            sleep(Duration::from_millis(self.rng.below(300)));
        }
        if kind != 1 {
            self.home.start_server();
            *self.load.address.lock().unwrap() = self.home.server().address.clone();
        }
        self.home.ensure_worker();
    }

    /// The worker stands still, longer than its leases last.
    fn suspend_worker(&mut self) {
        self.home.signal_worker("STOP");
        sleep(Duration::from_millis(2_500));
        self.home.signal_worker("CONT");
        sleep(Duration::from_millis(self.rng.below(200)));
    }

    /// Nobody asks for anything any more, and nobody is killed: then everything comes to rest.
    fn end(mut self) -> ChaosSummary {
        self.load.is_finished.store(true, Ordering::Relaxed);
        for caller in self.callers.drain(..) {
            caller.join().unwrap();
        }
        let accepted = std::mem::take(&mut *self.load.accepted.lock().unwrap());
        let mut client = self.home.client();
        // Also those whose answer was lost: nobody was told of them, and they run all the same.
        let mut all = accepted.clone();
        for state in ["NEW", "STARTING", "RUNNING", "STOPPING"] {
            let listed =
                client.request(&format!("GET /api/v3/sessions?state={state}"), None, "").unwrap().body;
            let sessions = listed["sessions"].as_array().unwrap().iter();
            all.extend(sessions.map(|session| text(&session["session_id"]).to_owned()));
        }
        let (seed, mut unsettled) = (self.seed, all.clone());
        wait_until(&format!("seed {seed}: every session runs or is over"), || {
            self.home.ensure_worker();
            unsettled.retain(|id| !["RUNNING", "ENDED"].contains(&state(&mut client, id).as_str()));
            unsettled.is_empty()
        });
        let running: Vec<_> = all.iter().filter(|id| state(&mut client, id) == "RUNNING").collect();
        assert!(running.len() <= TUNERS as usize, "seed {seed}: {running:?}");
        for id in &running {
            client.request(&format!("DELETE /api/v3/sessions/{id}"), None, "").unwrap();
            let ended = wait_for_states(&mut client, id, &["ENDED"]);
            // Some channels end by themselves, perhaps right now.
            let reasons = ["R_STOPPED", "R_PIPELINE_EXITED", "R_PIPELINE_FAILED"];
            assert!(reasons.iter().any(|reason| ended["reason"] == *reason), "seed {seed}: {ended}");
        }
        self.home.assert_no_violation();
        for entry in std::fs::read_dir(self.home.path("")).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let is_lock = name.starts_with("slot-") || name.starts_with("service-");
            let is_free = !is_lock || is_file_unlocked(&path);
            assert!(is_free, "seed {seed}: somebody still uses {name}: {:?}", processes_using(&path));
        }
        let leases = client.request("GET /v1/leases", None, "").unwrap().body["leases"].clone();
        let held: Vec<_> = leases.as_array().unwrap().iter().map(|lease| &lease["resource"]).collect();
        assert_eq!(held, ["system:orchestrator:guard_lock"], "seed {seed}");
        self.check_ledger(&accepted);
        let started = self.home.read_or_empty("started").lines().count();
        ChaosSummary { accepted: accepted.len(), started }
    }

    fn check_ledger(&self, accepted: &BTreeSet<String>) {
        let verified = self.home.run(&["verify", "--data", "data"]);
        assert_eq!(verified.code, Some(0), "seed {}: {verified:?}", self.seed);
        let story = LedgerEvents::read_home(&self.home);
        story.check_exclusive();
        story.check_taken_by_worker();
        let states = story.states();
        for id in accepted {
            assert_eq!(states.get(id).map(String::as_str), Some("ENDED"), "seed {}: {id}", self.seed);
        }
        assert!(states.values().all(|state| state == "ENDED"), "seed {}: {states:?}", self.seed);
    }
}

/// In which state a session is.
fn state(client: &mut TestClient, id: &str) -> String {
    get_session(client, id)["state"].as_str().unwrap().to_owned()
}

/// How much was tried.
#[derive(Debug)]
struct ChaosSummary {
    accepted: usize,
    started: usize,
}

/// `TENURE_CHAOS_SEED` gives another seed.
fn kills(worker: WorkerMode, seed: u64, count: usize) {
    let seed = std::env::var("TENURE_CHAOS_SEED").map_or(seed, |text| text.parse().unwrap());
    eprintln!("seed {seed}, {count} kills, the worker is {worker:?}");
    let mut chaos = Chaos::begin(worker, seed);
    for _ in 0..count {
        chaos.kill();
    }
    let tried = chaos.end();
    eprintln!("{tried:?}");
    assert!(tried.accepted > 2 * count && tried.started > count, "the test tried too little: {tried:?}");
}

// S1-18, S1-20, S1-39, S1-42, S1-43, S1-47, O-9, O-12
#[test]
fn server_with_its_worker_survives_kills_at_any_moment() {
    kills(WorkerMode::InProcess, 6_101, 30);
}

// S1-18, S1-20, S1-39, S1-42, S1-43, S1-47, O-9, O-12
#[test]
fn server_and_separate_worker_survive_kills_at_any_moment() {
    kills(WorkerMode::SeparateProcess, 6_102, 30);
}

#[test]
fn long_server_with_its_worker_survives_three_hundred_kills() {
    kills(WorkerMode::InProcess, 6_103, 300);
}

#[test]
fn long_server_and_separate_worker_survive_three_hundred_kills() {
    kills(WorkerMode::SeparateProcess, 6_104, 300);
}
