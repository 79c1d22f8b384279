//! A model that says what its script says, and keeps what it is told. Agents reach it as they reach their own.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use serde_json::Value;
use tenure_testkit::leak_recorder;

use crate::scripted_model_protocols::ModelProtocol;

/// The longest that an agent takes for anything, on a machine that does much else.
pub const AGENT_TIMEOUT: Duration = Duration::from_secs(120);

/// After how long whoever waits looks at something else.
const A_MOMENT: Duration = Duration::from_millis(100);

/// What the model does next. After the last step it says that it is done, and the turn is over.
#[derive(Debug, Clone)]
pub enum ModelStep {
    /// Looks at a file. Claude Code edits none that it has not looked at.
    Read(&'static str),
    /// Puts one line in the place of another, with the agent's own tool.
    Edit { file: &'static str, from: &'static str, to: &'static str },
    /// Runs a line of shell.
    Shell(&'static str),
    /// Says nothing until the test lets it go on: the agent stays in its turn.
    Hold,
}

/// The script, and what became of it.
#[derive(Debug, Default)]
struct ModelScript {
    /// What is still to be said, last one first.
    steps: Vec<ModelStep>,
    /// How many answers were given.
    answers: usize,
    /// The newest request.
    newest: Value,
    /// What the tools said, by the newest request.
    tool_results: Vec<String>,
    is_holding: bool,
    may_go_on: bool,
    is_closed: bool,
}

/// A model that listens on this machine alone, until it is dropped.
pub struct ScriptedModel {
    /// `http://127.0.0.1:PORT`.
    pub address: String,
    shared: Arc<SharedScript>,
    listener: Option<JoinHandle<()>>,
}

struct SharedScript {
    /// The folder that the agent works in.
    folder: PathBuf,
    script: Mutex<ModelScript>,
    changed: Condvar,
}

impl ScriptedModel {
    pub fn start(folder: PathBuf, steps: &[ModelStep]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let script = ModelScript { steps: steps.iter().rev().cloned().collect(), ..ModelScript::default() };
        let shared = Arc::new(SharedScript { folder, script: Mutex::new(script), changed: Condvar::new() });
        let script = Arc::clone(&shared);
        let listener = spawn(move || {
            for stream in listener.incoming() {
                if script.script().is_closed {
                    return;
                }
                let shared = Arc::clone(&script);
                // Each by its own thread: agents ask for other things while they wait.
                spawn(move || shared.serve(stream.unwrap()));
            }
        });
        Self { address, shared, listener: Some(listener) }
    }

    /// Whether the agent is held in its turn, now or in a moment.
    pub fn is_paused(&self) -> bool {
        self.shared.wait(A_MOMENT, |script| script.is_holding).is_holding
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.shared.script().may_go_on = true;
        self.shared.changed.notify_all();
    }

    /// What the tools said to the model, in the order of its calls.
    pub fn tool_results(&self) -> Vec<String> {
        self.shared.script().tool_results.clone()
    }

    /// All that the model was told: who it is, what it may call, what was said and done.
    pub fn last_request(&self) -> String {
        self.shared.script().newest.to_string()
    }

    /// Whether everything was said, the last word too.
    pub fn is_done(&self) -> bool {
        let script = self.shared.script();
        script.steps.is_empty() && !script.is_holding && script.answers > 0
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        self.shared.script().is_closed = true;
        self.shared.changed.notify_all();
        // The listener looks up when somebody comes.
        let _ = TcpStream::connect(self.address.trim_start_matches("http://"));
        let _ = self.listener.take().map(JoinHandle::join);
    }
}

impl SharedScript {
    fn script(&self) -> MutexGuard<'_, ModelScript> {
        self.script.lock().unwrap()
    }

    /// Waits until something is so, or for so long.
    fn wait(&self, limit: Duration, is_so: impl Fn(&ModelScript) -> bool) -> MutexGuard<'_, ModelScript> {
        self.changed.wait_timeout_while(self.script(), limit, |script| !is_so(script)).unwrap().0
    }

    /// One request, and its answer. Whoever goes away in the middle of it has been ended.
    fn serve(&self, stream: TcpStream) {
        let Some((line, body)) = request(&stream) else { return };
        let path = line.split(' ').nth(1).unwrap_or_default();
        let form = ModelProtocol::from_path(path.split('?').next().unwrap_or_default());
        let (status, kind, body) = match form {
            Some(form) => ("200 OK", "text/event-stream", self.answer(form, &body)),
            None => ("404 Not Found", "application/json", "{}".to_owned()),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        let body = if line.starts_with("HEAD ") { "" } else { &body };
        let _ = (&stream).write_all(format!("{head}{body}").as_bytes());
    }

    fn answer(&self, form: ModelProtocol, body: &[u8]) -> String {
        let request: Value = serde_json::from_slice(body).unwrap_or_default();
        if !form.is_turn_request(&request) {
            return form.stream_step(0, None, &self.folder);
        }
        let mut script = self.script();
        script.tool_results = form.tool_results(&request);
        script.tool_results.iter().for_each(|text| leak_recorder::record_output(text.as_bytes()));
        script.newest = request;
        while let Some(ModelStep::Hold) = script.steps.last() {
            script.is_holding = true;
            self.changed.notify_all();
            drop(script);
            script = self.wait(AGENT_TIMEOUT, |script| script.may_go_on || script.is_closed);
            (script.is_holding, script.may_go_on) = (false, false);
            script.steps.pop();
        }
        let step = script.steps.pop();
        script.answers += 1;
        form.stream_step(script.answers, step.as_ref(), &self.folder)
    }
}

/// The first line of a request, and its body. Nothing if it was cut off.
fn request(stream: &TcpStream) -> Option<(String, Vec<u8>)> {
    let mut input = BufReader::new(stream);
    let mut first = String::new();
    input.read_line(&mut first).ok()?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        if input.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end().to_ascii_lowercase().split_once(": ") {
            Some(("content-length", value)) => length = value.parse().ok()?,
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    input.read_exact(&mut body).ok()?;
    Some((first, body))
}
