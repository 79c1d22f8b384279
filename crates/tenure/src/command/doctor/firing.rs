//! What an agent runs for its hooks: commands of its settings, or a plugin.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tenure_gate::agent::Agent;
use tenure_gate::install::Installed;

use super::payload::{self, events};
use super::stand_in::{Said, StandIn};

/// Loads the plugin as it stands on the disk, and calls what OpenCode would call.
const CALL: &str = r#"
import { readFile } from "node:fs/promises"
const [path, text] = process.argv.slice(1)
const said = JSON.parse(text)
const source = await readFile(path)
const plugin = await import("data:text/javascript;base64," + source.toString("base64"))
const client = { session: { abort: async () => {} } }
try {
  const hooks = await plugin.Tenure({ directory: said.directory, client })
  if (said.output) await hooks["tool.execute.before"](said.input, said.output)
  else await hooks.event({ event: said.input })
  console.log(JSON.stringify({ decision: "allow" }))
} catch (error) {
  console.log(JSON.stringify({ decision: "deny", reason: error.message }))
}
"#;

/// How the hooks of an agent are run.
pub struct Hooks<'a> {
    agent: Agent,
    way: Way<'a>,
}

enum Way<'a> {
    Commands(&'a Installed),
    Plugin(PathBuf),
}

impl<'a> Hooks<'a> {
    /// As they are installed. An error says why they cannot be run here.
    pub fn of(agent: Agent, found: &'a Installed, stand_in: &mut StandIn) -> Result<Self, String> {
        if agent != Agent::OpenCode {
            return Ok(Self { agent, way: Way::Commands(found) });
        }
        match stand_in.run("node", &["--version"], "") {
            Ok(Said { code: Some(0), .. }) => Ok(Self { agent, way: Way::Plugin(found.path.clone()) }),
            _ => {
                Err("the plugin is JavaScript, and there is no `node` in PATH that could run it here"
                    .to_owned())
            }
        }
    }

    /// The agent is about to write this file.
    pub fn write(
        &self,
        stand_in: &mut StandIn,
        session: &str,
        root: &Path,
        path: &Path,
    ) -> Result<Said, String> {
        let said = payload::writing(self.agent, session, root, path);
        self.fire(stand_in, events(self.agent).before, &said)
    }

    pub fn end(&self, stand_in: &mut StandIn, session: &str, root: &Path) -> Result<Said, String> {
        let said = payload::ending(self.agent, session, root);
        self.fire(stand_in, events(self.agent).end, &said)
    }

    fn fire(&self, stand_in: &mut StandIn, event: &str, said: &Value) -> Result<Said, String> {
        match &self.way {
            Way::Commands(found) => {
                let command = found.command(event);
                let command = command.ok_or_else(|| format!("no hook of Tenure is in `hooks.{event}`"))?;
                stand_in.shell(command, &said.to_string())
            }
            Way::Plugin(path) => {
                let path = path.to_str().ok_or("the path of the plugin is not UTF-8")?;
                let arguments = ["--input-type=module", "-e", CALL, "--", path, &said.to_string()];
                stand_in.run("node", &arguments, "")
            }
        }
    }
}
