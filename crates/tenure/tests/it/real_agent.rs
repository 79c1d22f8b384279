//! A real coding agent that runs, and the person who tells it what to do.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use serde_json::json;
use tenure_testkit::{CommandOutput, Repository, now, pause, traces};

use crate::real_model::{Model, PATIENCE};
use crate::real_stage::Kind;

/// What an agent is asked for. It says nothing of locks.
pub const TASK: &str = "Change what is to be changed in a.txt.";

/// An agent that runs. It is ended with all of its group when it is dropped.
pub struct Agent {
    kind: Kind,
    child: Child,
    /// Where it is told what to do, until nobody has more to say.
    input: Option<ChildStdin>,
    /// Where its words go.
    words: PathBuf,
}

impl Agent {
    pub fn start(kind: Kind, mut command: Command, stage: &Repository) -> Self {
        let number = (0..).find(|number| !stage.path(&format!("said-{number}.out")).exists()).unwrap();
        let words = stage.path(&format!("said-{number}"));
        let file = |ending: &str| File::create(words.with_extension(ending)).unwrap();
        command.stdin(Stdio::piped()).stdout(file("out")).stderr(file("err")).process_group(0);
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take().filter(|_| kind == Kind::Claude);
        let mut agent = Self { kind, child, input, words };
        agent.tell(TASK);
        agent
    }

    /// The person says something. Codex was told everything with its command line.
    pub fn tell(&mut self, text: &str) {
        if let Some(input) = &mut self.input {
            let message = json!({"type": "user", "message": {"role": "user", "content": text}});
            writeln!(input, "{message}").unwrap();
        }
    }

    /// Waits until Claude Code says that its turn was stopped.
    pub fn is_stopped(&self) {
        until("the turn is stopped", || self.said(None).output.contains("hook_stopped"));
    }

    /// Waits until its model holds it in its turn.
    pub fn comes_to_the_hold(&mut self, model: &Model) {
        let end = now() + PATIENCE;
        while !model.is_holding() {
            let ended = self.child.try_wait().unwrap();
            let goes_on = ended.is_none() && now() < end;
            assert!(goes_on, "{:?} did not come so far: {:?} {ended:?}", self.kind, self.said(None));
        }
    }

    /// Has no more to say, and waits for its end: its exit code, and what it said.
    pub fn ends(mut self) -> CommandOutput {
        self.input = None;
        until("the agent ends", || self.child.try_wait().unwrap().is_some());
        let code = self.child.wait().unwrap().code();
        let said = self.said(code);
        traces::seen(said.output.as_bytes());
        said
    }

    fn said(&self, code: Option<i32>) -> CommandOutput {
        let text = |ending: &str| fs::read_to_string(self.words.with_extension(ending)).unwrap();
        CommandOutput { code, output: text("out"), errors: text("err") }
    }
}

impl Drop for Agent {
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
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = now() + PATIENCE;
    while !is_so() {
        assert!(now() < end, "{what}: not within {PATIENCE:?}");
        pause(Duration::from_millis(20));
    }
}
