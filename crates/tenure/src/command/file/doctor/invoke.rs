//! What an agent runs for its hooks: commands of its settings, or a plugin.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use rustix::fs::{Access, access};
use serde_json::Value;
use tenure_hooks::install::InstallStatus;
use tenure_host::coding_agent::CodingAgent;

use super::canary;
use super::canary::event_names;
use super::fake_agent::{CommandOutput, FakeAgent};

/// Loads the plugin as it stands on the disk, and calls what OpenCode would call.
const CALL: &str = r#"
import { readFile } from "node:fs/promises"
const [path, text] = process.argv.slice(1)
const payload = JSON.parse(text)
const source = await readFile(path)
const plugin = await import("data:text/javascript;base64," + source.toString("base64"))
const client = { session: { abort: async () => {} } }
try {
  const hooks = await plugin.Tenure({ directory: payload.directory, client })
  if (payload.output) await hooks["tool.execute.before"](payload.input, payload.output)
  else await hooks.event({ event: payload.input })
  console.log(JSON.stringify({ decision: "allow" }))
} catch (error) {
  console.log(JSON.stringify({ decision: "deny", reason: error.message }))
}
"#;

/// How the hooks of an agent are run.
pub struct HookInvoker<'a> {
    agent: CodingAgent,
    method: InvocationMethod<'a>,
}

enum InvocationMethod<'a> {
    Commands(&'a InstallStatus),
    Plugin(PathBuf),
}

impl<'a> HookInvoker<'a> {
    /// As they are installed. An error says why they cannot be run here.
    pub fn new(
        agent: CodingAgent,
        found: &'a InstallStatus,
        stand_in: &mut FakeAgent,
    ) -> Result<Self, String> {
        if agent != CodingAgent::OpenCode {
            return Ok(Self { agent, method: InvocationMethod::Commands(found) });
        }
        match stand_in.run("node", &["--version"], "") {
            Ok(CommandOutput { code: Some(0), .. }) => {
                Ok(Self { agent, method: InvocationMethod::Plugin(found.path.clone()) })
            }
            _ => {
                Err("the plugin is JavaScript, and there is no `node` in PATH that could run it here"
                    .to_owned())
            }
        }
    }

    /// The agent is about to write this file.
    pub fn invoke_before_write(
        &self,
        stand_in: &mut FakeAgent,
        session: &str,
        root: &Path,
        path: &Path,
    ) -> Result<CommandOutput, String> {
        let payload = canary::write_payload(self.agent, session, root, path);
        self.invoke(stand_in, event_names(self.agent).before, &payload)
    }

    pub fn invoke_session_end(
        &self,
        stand_in: &mut FakeAgent,
        session: &str,
        root: &Path,
    ) -> Result<CommandOutput, String> {
        let payload = canary::session_end_payload(self.agent, session, root);
        self.invoke(stand_in, event_names(self.agent).end, &payload)
    }

    fn invoke(
        &self,
        stand_in: &mut FakeAgent,
        event: &str,
        payload: &Value,
    ) -> Result<CommandOutput, String> {
        match &self.method {
            InvocationMethod::Commands(found) => {
                let command = found.command(event);
                let command = command.ok_or_else(|| format!("no hook of Tenure is in `hooks.{event}`"))?;
                stand_in.run_shell(command, &payload.to_string())
            }
            InvocationMethod::Plugin(path) => {
                let path = path.to_str().ok_or("the path of the plugin is not UTF-8")?;
                let arguments = ["--input-type=module", "-e", CALL, "--", path, &payload.to_string()];
                stand_in.run("node", &arguments, "")
            }
        }
    }
}

/// This program, also where its name is another one's by now.
const OWN: &str = "/proc/self/exe";

/// How it stands with a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookProgramState {
    /// It is this one, or the same bytes.
    Same,
    Other,
    NotExecutable,
    Missing,
}

pub fn inspect_program(path: &Path) -> HookProgramState {
    let Ok(about) = fs::metadata(path) else { return HookProgramState::Missing };
    if !about.is_file() || access(path, Access::EXEC_OK).is_err() {
        return HookProgramState::NotExecutable;
    }
    let is_own = fs::metadata(OWN).is_ok_and(|own| {
        let is_one = (own.dev(), own.ino()) == (about.dev(), about.ino());
        is_one || own.len() == about.len() && is_equal(path).unwrap_or(false)
    });
    if is_own { HookProgramState::Same } else { HookProgramState::Other }
}

impl HookProgramState {
    /// What is wrong with it, as the end of a sentence that begins with its name. Nothing if all is well.
    pub const fn problem(self) -> Option<&'static str> {
        match self {
            HookProgramState::Same => None,
            HookProgramState::Other => Some(OTHER_PROGRAM),
            HookProgramState::NotExecutable => Some("cannot be executed"),
            HookProgramState::Missing => Some("is gone"),
        }
    }
}

/// What is said of another program. It may be as good as this one: a second copy, an older version. That is tried.
pub const OTHER_PROGRAM: &str = "is another program than this one";

fn is_equal(path: &Path) -> io::Result<bool> {
    let (mut one, mut other) = (File::open(path)?, File::open(OWN)?);
    let (mut ours, mut right) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    loop {
        let (some, more) = (fill(&mut one, &mut ours)?, fill(&mut other, &mut right)?);
        if ours[..some] != right[..more] {
            return Ok(false);
        }
        if some == 0 {
            return Ok(true);
        }
    }
}

/// Reads as much as fits, or until the end.
fn fill(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match file.read(&mut buffer[length..])? {
            0 => break,
            more => length += more,
        }
    }
    Ok(length)
}

/// Whether the agent would make the change.
pub fn is_allowed(agent: CodingAgent, response: &CommandOutput) -> bool {
    if response.code != Some(0) {
        return false;
    }
    let text = response.output.trim();
    let answer: Value = match serde_json::from_str(text) {
        Ok(answer) => answer,
        Err(_) if text.is_empty() => Value::Null,
        // Text is not understood, and what is not understood is no denial.
        Err(_) => return agent != CodingAgent::Cursor,
    };
    let word = |pointer: &str| answer.pointer(pointer).and_then(Value::as_str);
    let is_denied = word("/hookSpecificOutput/permissionDecision") == Some("deny")
        || matches!(word("/decision"), Some("deny" | "block"))
        || word("/permission") == Some("deny");
    // Cursor's hooks fail closed: they must say it.
    !is_denied && (agent != CodingAgent::Cursor || word("/permission") == Some("allow"))
}

/// What the hook said itself: why not, else whatever there is.
pub fn describe_response(response: &CommandOutput) -> String {
    let answer: Value = serde_json::from_str(response.output.trim()).unwrap_or_default();
    let places = ["/hookSpecificOutput/permissionDecisionReason", "/reason", "/agent_message", "/thrown"];
    let reason = places.iter().find_map(|place| answer.pointer(place)?.as_str());
    let text = [reason.unwrap_or_default(), &response.errors, &response.output];
    let text = text.into_iter().map(str::trim).find(|text| !text.is_empty());
    let ended = match response.code {
        Some(0) => String::new(),
        Some(code) => format!(" (exit code {code})"),
        None => " (it did not end by itself)".to_owned(),
    };
    let text = text.unwrap_or("it said nothing").split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{}{ended}", text.chars().take(400).collect::<String>())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn programs_are_compared_by_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        assert_eq!(inspect_program(&path("gone")), HookProgramState::Missing);
        assert_eq!(inspect_program(folder.path()), HookProgramState::NotExecutable);
        fs::copy(OWN, path("copy")).unwrap();
        assert_eq!(inspect_program(&path("copy")), HookProgramState::Same);
        std::os::unix::fs::symlink(std::env::current_exe().unwrap(), path("link")).unwrap();
        assert_eq!(inspect_program(&path("link")), HookProgramState::Same);
        fs::write(path("other"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(path("other"), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(inspect_program(&path("other")), HookProgramState::Other);
        let mut bytes = fs::read(path("copy")).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(path("changed"), bytes).unwrap();
        fs::set_permissions(path("changed"), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(inspect_program(&path("changed")), HookProgramState::Other);
    }

    fn response(code: i32, output: &str, errors: &str) -> CommandOutput {
        CommandOutput { code: Some(code), output: output.to_owned(), errors: errors.to_owned() }
    }

    #[test]
    fn edit_is_allowed_unless_the_response_denies_it() {
        for output in ["", r#"{"systemMessage":"mind"}"#, r#"{"decision":"allow"}"#, "text"] {
            assert!(is_allowed(CodingAgent::Claude, &response(0, output, "")), "{output}");
        }
        for output in [
            r#"{"hookSpecificOutput":{"permissionDecision":"deny"}}"#,
            r#"{"decision":"deny"}"#,
            r#"{"decision":"block"}"#,
            r#"{"permission":"deny"}"#,
        ] {
            assert!(!is_allowed(CodingAgent::Claude, &response(0, output, "")), "{output}");
        }
        assert!(!is_allowed(CodingAgent::Claude, &response(2, "", "no")));
        assert!(
            !is_allowed(CodingAgent::Cursor, &response(0, "", ""))
                && !is_allowed(CodingAgent::Cursor, &response(0, "{}", ""))
        );
        assert!(is_allowed(CodingAgent::Cursor, &response(0, r#"{"permission":"allow"}"#, "")));
    }

    #[test]
    fn denial_reason_is_shown_if_the_hook_gave_one() {
        let denial =
            r#"{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"held"}}"#;
        assert_eq!(describe_response(&response(0, denial, "noise")), "held");
        assert_eq!(
            describe_response(&response(127, "", "sh: 1: x: not\n found\n")),
            "sh: 1: x: not found (exit code 127)"
        );
        assert_eq!(describe_response(&response(0, "", "")), "it said nothing");
    }
}
