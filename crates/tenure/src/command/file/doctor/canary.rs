//! Canaries: files and sessions of the doctor, named so that they are recognized; no file outlives it.

use std::fs;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tenure_host::coding_agent::CodingAgent;
use tenure_host::git;

use super::canary;
use super::fake_agent::FakeAgent;
use super::invoke::{describe_response, is_allowed};

/// What all names of files begin with. The second is for trees where git ignores the first.
const FILE_PREFIXES: [&str; 2] = [".tenure-canary-", "tenure-canary-"];

/// What all names of sessions begin with.
const SESSION_PREFIX: &str = "tenure-doctor-";

/// Canaries of one working tree. None of them outlives this.
#[derive(Debug, Clone)]
pub struct Canaries {
    root: PathBuf,
    prefix: &'static str,
    files: Arc<CanaryFiles>,
}

#[derive(Debug, Default)]
struct CanaryFiles(Mutex<Vec<PathBuf>>);

impl Canaries {
    /// For this tree. Nothing, if git ignores all such names: then nobody asks for them.
    pub fn new(root: &Path) -> Option<Self> {
        let is_free = |beginning: &&str| {
            let name = PathBuf::from(format!("{beginning}0"));
            // Where git does not say, nothing is taken for ignored, by the gate neither.
            !git::ignored_paths(root, std::slice::from_ref(&name)).unwrap_or_default().contains(&name)
        };
        let beginning = FILE_PREFIXES.into_iter().find(is_free)?;
        Some(Self { root: root.to_owned(), prefix: beginning, files: Arc::default() })
    }

    /// A path that nobody has and nothing is at.
    pub fn next(&self) -> PathBuf {
        let path = self.root.join(format!("{}{}", self.prefix, random()));
        self.files.0.lock().push(path.clone());
        path
    }

    /// The tree that they are for.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Removes whatever is left of all of them.
    pub fn remove(&self) {
        self.files.remove();
    }
}

impl Drop for CanaryFiles {
    fn drop(&mut self) {
        self.remove();
    }
}

impl CanaryFiles {
    fn remove(&self) {
        for path in self.0.lock().drain(..) {
            // Almost always there is none. Inside a guard even to remove what is not there would take a lease.
            if path.symlink_metadata().is_ok() {
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// The name of a session that nobody has.
pub fn new_session_name() -> String {
    format!("{SESSION_PREFIX}{}", random())
}

/// Sixteen letters that nobody can guess.
fn random() -> String {
    let mut bytes = [0; 8];
    // Where there is no such file, the process is still another one than all others.
    if File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes)).is_err() {
        bytes = u64::from(std::process::id()).to_be_bytes();
    }
    hex::encode(bytes)
}

/// The events of an agent that a canary needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookEventNames {
    pub before: &'static str,
    pub end: &'static str,
}

/// What they are called in its settings, which is what it says to its hooks too.
pub const fn event_names(agent: CodingAgent) -> HookEventNames {
    match agent {
        CodingAgent::Claude | CodingAgent::Codex => {
            HookEventNames { before: "PreToolUse", end: "SessionEnd" }
        }
        CodingAgent::Gemini => HookEventNames { before: "BeforeTool", end: "SessionEnd" },
        CodingAgent::Cursor => HookEventNames { before: "preToolUse", end: "sessionEnd" },
        CodingAgent::OpenCode => HookEventNames { before: "tool.execute.before", end: "session.deleted" },
    }
}

/// This session is about to write this new file.
pub fn write_payload(agent: CodingAgent, session: &str, root: &Path, file: &Path) -> Value {
    let mut payload = frame(agent, session, root, event_names(agent).before);
    let (tool, input) = match agent {
        CodingAgent::Claude => ("Write", json!({"file_path": file, "content": "canary\n"})),
        CodingAgent::Codex => {
            let patch =
                format!("*** Begin Patch\n*** Add File: {}\n+canary\n*** End Patch\n", file.display());
            ("apply_patch", json!({"command": patch}))
        }
        CodingAgent::Gemini => ("write_file", json!({"file_path": file, "content": "canary\n"})),
        CodingAgent::Cursor => ("Write", json!({"file_path": file, "contents": "canary\n"})),
        CodingAgent::OpenCode => {
            payload["input"] = json!({"tool": "write", "sessionID": session, "callID": "call_doctor"});
            payload["output"] = json!({"args": {"filePath": file, "content": "canary\n"}});
            return payload;
        }
    };
    payload["tool_name"] = json!(tool);
    payload["tool_input"] = input;
    if agent != CodingAgent::Gemini {
        payload["tool_use_id"] = json!("call_doctor");
    }
    payload
}

pub fn session_end_payload(agent: CodingAgent, session: &str, root: &Path) -> Value {
    let mut payload = frame(agent, session, root, event_names(agent).end);
    match agent {
        CodingAgent::OpenCode => {
            payload["input"] = json!({"type": "session.deleted", "properties": {"info": {"id": session}}});
        }
        _ => payload["reason"] = json!("other"),
    }
    payload
}

fn frame(agent: CodingAgent, session: &str, root: &Path, event: &str) -> Value {
    match agent {
        CodingAgent::OpenCode => json!({"event": event, "directory": root}),
        CodingAgent::Cursor => json!({
            "conversation_id": session, "generation_id": "doctor", "hook_event_name": event, "workspace_roots": [root],
            "cwd": root,
        }),
        CodingAgent::Claude | CodingAgent::Codex | CodingAgent::Gemini => {
            json!({"session_id": session, "transcript_path": "", "cwd": root, "hook_event_name": event})
        }
    }
}

/// It has one file until it is told that its session is over, or ends.
pub struct CanaryHolder {
    fake_agent: FakeAgent,
    root: PathBuf,
    pub session: String,
}

impl CanaryHolder {
    /// Takes this file, through our own hook.
    pub fn acquire(canaries: &Canaries, path: &Path) -> Result<Self, String> {
        let stand_in = FakeAgent::start(CodingAgent::Claude).map_err(|error| error.to_string())?;
        let mut holder =
            Self { fake_agent: stand_in, root: canaries.root().to_owned(), session: new_session_name() };
        let ask = canary::write_payload(CodingAgent::Claude, &holder.session, &holder.root, path);
        holder.hook(&ask.to_string())?;
        Ok(holder)
    }

    pub fn end_session(mut self) -> Result<(), String> {
        let ending = canary::session_end_payload(CodingAgent::Claude, &self.session, &self.root);
        self.hook(&ending.to_string())
    }

    fn hook(&mut self, payload: &str) -> Result<(), String> {
        let answer = self.fake_agent.run("/proc/self/exe", &["hook", "claude"], payload)?;
        if is_allowed(CodingAgent::Claude, &answer) { Ok(()) } else { Err(describe_response(&answer)) }
    }
}

#[cfg(test)]
mod tests {
    use tenure_hooks::{HookEvent, parse_payload};

    use super::*;

    #[test]
    fn generated_payloads_are_parsed_like_the_agents_own() {
        let (root, file) = (Path::new("/repo"), Path::new("/repo/.tenure-canary-1"));
        for agent in CodingAgent::ALL {
            let parsed =
                parse_payload(agent, write_payload(agent, "s1", root, file).to_string().as_bytes()).unwrap();
            assert_eq!(parsed.session, "s1", "{agent}");
            let HookEvent::BeforeWrite { paths, .. } = parsed.event else { panic!("{agent}: {parsed:?}") };
            assert_eq!(paths, [file], "{agent}");
            let ended =
                parse_payload(agent, session_end_payload(agent, "s1", root).to_string().as_bytes()).unwrap();
            assert!(matches!(ended.event, HookEvent::Ended { .. }), "{agent}: {ended:?}");
            assert_eq!(ended.session, "s1", "{agent}");
        }
    }

    #[test]
    fn generated_payloads_use_only_fields_of_recorded_payloads() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tenure-hooks/tests/fixtures/hooks");
        for (agent, name) in [
            (CodingAgent::Claude, "claude-PreToolUse-Write"),
            (CodingAgent::Codex, "codex-PreToolUse-apply_patch-add"),
            (CodingAgent::Gemini, "gemini-BeforeTool-write_file"),
        ] {
            let text = std::fs::read_to_string(format!("{folder}/{name}.json")).unwrap();
            let real: Value = serde_json::from_str(&text).unwrap();
            let ours = write_payload(agent, "s1", Path::new("/repo"), Path::new("/repo/c.txt"));
            for (place, ours, real) in [("", &ours, &real), ("in ", &ours["tool_input"], &real["tool_input"])]
            {
                for key in ours.as_object().unwrap().keys() {
                    assert!(real.get(key).is_some(), "{agent}: {place}{key}");
                }
            }
            assert_eq!(ours["tool_name"], real["tool_name"]);
        }
    }
}
