//! A real coding agent that runs, and the person who tells it what to do.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use serde_json::json;
use tenure_testkit::{CommandOutput, TestRepository, leak_recorder, now, sleep};

use crate::real::agent_fixture::AgentKind;
use crate::scripted_model::{AGENT_TIMEOUT, ScriptedModel};

/// What an agent is asked for. It says nothing of locks.
pub const TASK: &str = "Change what is to be changed in a.txt.";

/// An agent that runs. It is ended with all of its group when it is dropped.
pub struct RealAgent {
    kind: AgentKind,
    child: Child,
    /// Where it is told what to do, until nobody has more to say.
    input: Option<ChildStdin>,
    /// Where its words go.
    words: PathBuf,
}

impl RealAgent {
    pub fn start(kind: AgentKind, mut command: Command, stage: &TestRepository) -> Self {
        let number = (0..).find(|number| !stage.path(&format!("said-{number}.out")).exists()).unwrap();
        let words = stage.path(&format!("said-{number}"));
        let file = |ending: &str| File::create(words.with_extension(ending)).unwrap();
        command.stdin(Stdio::piped()).stdout(file("out")).stderr(file("err")).process_group(0);
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take().filter(|_| kind == AgentKind::Claude);
        let mut agent = Self { kind, child, input, words };
        agent.send_message(TASK);
        agent
    }

    /// The person says something. Codex was told everything with its command line.
    pub fn send_message(&mut self, text: &str) {
        if let Some(input) = &mut self.input {
            let message = json!({"type": "user", "message": {"role": "user", "content": text}});
            writeln!(input, "{message}").unwrap();
        }
    }

    /// Waits until Claude Code says that its turn was stopped.
    pub fn wait_until_stopped(&self) {
        wait_until_or_panic("the turn is stopped", || self.output(None).output.contains("hook_stopped"));
    }

    /// Waits until its model holds it in its turn.
    pub fn wait_until_paused(&mut self, model: &ScriptedModel) {
        let end = now() + AGENT_TIMEOUT;
        while !model.is_paused() {
            let ended = self.child.try_wait().unwrap();
            let is_running = ended.is_none() && now() < end;
            assert!(is_running, "{:?} did not come so far: {:?} {ended:?}", self.kind, self.output(None));
        }
    }

    /// Has no more to say, and waits for its end: its exit code, and what it said.
    pub fn wait(mut self) -> CommandOutput {
        self.input = None;
        wait_until_or_panic("the agent ends", || self.child.try_wait().unwrap().is_some());
        let code = self.child.wait().unwrap().code();
        let result = self.output(code);
        leak_recorder::record_output(result.output.as_bytes());
        result
    }

    fn output(&self, code: Option<i32>) -> CommandOutput {
        let text = |ending: &str| fs::read_to_string(self.words.with_extension(ending)).unwrap();
        CommandOutput { code, output: text("out"), errors: text("err") }
    }
}

impl Drop for RealAgent {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.child.wait();
    }
}

/// Waits until something is so, as long as an agent may take for it.
pub fn wait_until_or_panic(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = now() + AGENT_TIMEOUT;
    while !is_so() {
        assert!(now() < end, "{what}: not within {AGENT_TIMEOUT:?}");
        sleep(Duration::from_millis(20));
    }
}
