//! What an agent runs for its hooks: commands of its settings, or a plugin.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tenure_gate::coding_agent::CodingAgent;
use tenure_gate::install::InstallStatus;

use super::canary_payload::{self, event_names};
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
        let payload = canary_payload::write_payload(self.agent, session, root, path);
        self.invoke(stand_in, event_names(self.agent).before, &payload)
    }

    pub fn invoke_session_end(
        &self,
        stand_in: &mut FakeAgent,
        session: &str,
        root: &Path,
    ) -> Result<CommandOutput, String> {
        let payload = canary_payload::session_end_payload(self.agent, session, root);
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
