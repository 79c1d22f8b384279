//! What the stories about files share.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{now, pause};
use crate::hook_stage::{FakeAgent, Stage};

impl Stage {
    /// A stage with these seconds until the one retry, and until a session at rest lets go.
    pub fn with_seconds(retry: u32, idle: u32) -> Self {
        let stage = Self::new();
        stage.configure(&format!("[files]\nretry_seconds = {retry}\nidle_seconds = {idle}\n"));
        stage
    }

    /// All events of this kind in the ledger, oldest first.
    pub fn ledger(&self, kind: &str) -> Vec<Value> {
        let said = self.run(&["log", "--json"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        let events = said.output.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        events.filter(|event| event["type"] == kind).collect()
    }

    /// The session that has this file, if one has.
    pub fn owner(&self, file: &str) -> Option<String> {
        let found = self.json(&["who", file, "--json"]);
        found["file"]["owner"]["session"].as_str().map(str::to_owned)
    }

    /// The files that somebody has.
    pub fn held(&self) -> Vec<String> {
        let files = self.json(&["files", "--json"]);
        files.as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap().to_owned()).collect()
    }

    /// Claude Code, in this session, has edited this file.
    pub fn wrote(&self, session: &str, file: &str) -> Value {
        let mut event = self.edit(session, file);
        event["hook_event_name"] = json!("PostToolUse");
        event["tool_response"] = json!({});
        event
    }

    /// Codex, in code mode, is about to patch this file.
    pub fn patch(&self, session: &str, file: &str) -> Value {
        let patch = format!("*** Begin Patch\n*** Update File: {file}\n@@\n-one\n+two\n*** End Patch\n");
        json!({
            "session_id": session, "turn_id": "t", "cwd": self.repository(""), "hook_event_name": "PreToolUse",
            "tool_name": "apply_patch", "tool_use_id": "exec-1", "tool_input": {"command": patch},
        })
    }
}

impl FakeAgent {
    /// Edits a file as agents do: it asks, and may; the file is changed; that is told.
    pub fn edits(&mut self, stage: &Stage, session: &str, file: &str, text: &str) {
        let said = self.hook(&stage.edit(session, file));
        assert!(said.allows(), "{said:?}");
        self.writes(&stage.repository(file), text);
        self.hook(&stage.wrote(session, file));
    }

    /// Writes a file by itself. Were it the test that wrote, the audit would rightly say so.
    pub fn writes(&mut self, path: &Path, text: &str) {
        // As bash reads it, on one line.
        let quoted = |text: &str| {
            let text = text.replace('\\', r"\\").replace('\'', r"\'").replace('\n', r"\n");
            format!("$'{text}'")
        };
        let path = quoted(path.to_str().unwrap());
        let said = self.run(&format!("{{ printf %s {} > {path}; }}", quoted(text)));
        assert_eq!(said.code, Some(0), "{said:?}");
    }
}

/// Whether something stays so for a while.
pub fn stays(what: &str, duration: Duration, mut is_so: impl FnMut() -> bool) {
    let end = now() + duration;
    while now() < end {
        assert!(is_so(), "{what}: no longer");
        pause(Duration::from_millis(50));
    }
}
