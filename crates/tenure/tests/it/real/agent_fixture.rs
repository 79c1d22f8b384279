//! Real coding agents, in a repository and a home of their own, with a model that a test speaks for.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tenure_testkit::TestRepository;

use crate::real::agent_process::{RealAgent, TASK, wait_until_or_panic};
use crate::scripted_model::{ModelStep, ScriptedModel};

/// Says where the agents are; `cargo xtask test` sets it.
const VARIABLE: &str = "TENURE_TEST_AGENTS";

/// Nobody answers there. What is not for this machine ends there at once, and no name is looked up.
const NOWHERE: &str = "http://127.0.0.1:9";

/// A person's agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentKind {
    Claude,
    Codex,
}

impl AgentKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
        }
    }

    /// The program, below the folder that npm filled.
    fn program(self, installed: &Path) -> Option<PathBuf> {
        let modules = installed.join("node_modules");
        let program = match self {
            // The program itself, which is in the package for this kind of machine: only a script of the package, which
            // is not run, would put it among the others.
            Self::Claude => {
                let packages = fs::read_dir(modules.join("@anthropic-ai")).ok()?.flatten();
                packages.map(|package| package.path().join("claude")).find(|program| program.is_file())?
            }
            Self::Codex => modules.join(".bin/codex"),
        };
        program.is_file().then_some(program)
    }
}

/// A repository with `a.txt` of two lines, in which agents work that ask Tenure.
pub struct RealAgentFixture {
    pub repository: TestRepository,
    installed: PathBuf,
}

impl RealAgentFixture {
    /// A stage where the one retry is due after so many seconds. Nothing, where the agents are not installed and nobody
    /// insists.
    pub fn new(retry_seconds: u32) -> Option<Self> {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
        let installed = std::env::var_os(VARIABLE).map_or_else(|| target.join("tools/agents"), PathBuf::from);
        let missing =
            [AgentKind::Claude, AgentKind::Codex].into_iter().find(|kind| kind.program(&installed).is_none());
        if let Some(missing) = missing {
            let what = format!("{} is not in {}", missing.name(), installed.display());
            let is_required = std::env::var_os("CI").is_some_and(|value| value == "true");
            assert!(!is_required, "{what}, and with CI=true nothing is skipped");
            eprintln!("SKIPPED: {what}. `cargo xtask test` installs it");
            return None;
        }
        let stage = Self { repository: TestRepository::with_retry_after(retry_seconds), installed };
        let made =
            stage.repository.shell("printf 'first\\nsecond\\n' > a.txt; git add .; git commit -qm begin");
        assert_eq!(made.code, Some(0), "{made:?}");
        fs::create_dir_all(stage.repository.path(".codex")).unwrap();
        fs::write(stage.repository.path(".codex/config.toml"), stage.settings_of_codex()).unwrap();
        Some(stage)
    }

    /// As a person does it: `tenure install AGENT`, in the repository.
    pub fn install(&self, kind: AgentKind) {
        let result = self.repository.run(&["install", kind.name()]);
        assert_eq!(result.code, Some(0), "{result:?}");
    }

    /// What is in `a.txt`.
    pub fn file_text(&self) -> String {
        fs::read_to_string(self.repository.file("a.txt")).unwrap()
    }

    /// A model with this script.
    pub fn model(&self, steps: &[ModelStep]) -> ScriptedModel {
        ScriptedModel::start(self.repository.file(""), steps)
    }

    /// Waits until somebody waits for a file.
    pub fn wait_for_waiter(&self) {
        wait_until_or_panic("an agent waits for its one retry", || {
            let files = self.repository.json(&["files", "--json"]);
            files[0]["waiters"][0]["state"] == json!("RETRY_PENDING")
        });
    }

    /// The reports.
    pub fn reports(&self) -> Vec<Value> {
        let reports = self.repository.json(&["report", "list", "--json"]);
        reports["reports"].as_array().unwrap().clone()
    }

    /// Starts an agent on a task, with this model.
    pub fn start(&self, kind: AgentKind, model: &ScriptedModel) -> RealAgent {
        self.start_wrapped(&[], kind, model)
    }

    /// The same through another program, which is given its command line.
    pub fn start_wrapped(&self, through: &[&str], kind: AgentKind, model: &ScriptedModel) -> RealAgent {
        let program = kind.program(&self.installed).unwrap();
        let mut words: Vec<OsString> = through.iter().map(OsString::from).collect();
        words.push(program.into_os_string());
        words.extend(arguments(kind, model).into_iter().map(OsString::from));
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).env_clear().current_dir(self.repository.file(""));
        let temporary = self.repository.path("temporary");
        fs::create_dir_all(&temporary).unwrap();
        let home = self.repository.path("");
        for name in ["HOME", "XDG_RUNTIME_DIR"] {
            command.env(name, home.as_os_str().to_str().unwrap().trim_end_matches('/'));
        }
        command.env("TMPDIR", temporary).env("PATH", path());
        // As the other stages have it: little room is laid out beforehand.
        command.env("TENURE_LEDGER_RESERVE", "65536").env("TENURE_LEDGER_SEGMENT_SIZE", "65536");
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
            command.env(name, NOWHERE);
        }
        command.env("NO_PROXY", "127.0.0.1");
        match kind {
            AgentKind::Claude => {
                command.env("ANTHROPIC_BASE_URL", &model.address).env("ANTHROPIC_API_KEY", "none");
                for name in [
                    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
                    "DISABLE_AUTOUPDATER",
                    "DISABLE_TELEMETRY",
                    "DISABLE_ERROR_REPORTING",
                ] {
                    command.env(name, "1");
                }
            }
            AgentKind::Codex => {
                command.env("SCRIPTED_KEY", "none");
            }
        }
        RealAgent::start(kind, command, &self.repository)
    }

    /// A model of its own, whose name Codex knows as one that has plain tools; and trust in the repository.
    fn settings_of_codex(&self) -> String {
        let repository = self.repository.file("");
        let repository = repository.to_str().unwrap().trim_end_matches('/');
        format!(
            r#"
            model = "gpt-5.5"
            model_provider = "scripted"
            check_for_update_on_startup = false
            analytics.enabled = false
            [model_providers.scripted]
            name = "scripted"
            wire_api = "responses"
            env_key = "SCRIPTED_KEY"
            supports_websockets = false
            request_max_retries = 0
            stream_max_retries = 0
            [projects."{repository}"]
            trust_level = "trusted"
            "#
        )
    }
}

impl Drop for RealAgentFixture {
    /// Whatever has this home was started here. Agents start some in groups and sessions of their own. The server is the
    /// stage's to end.
    fn drop(&mut self) {
        let servers = self.repository.server_pids();
        let home = self.repository.path("");
        let mark = format!("HOME={}\0", home.to_str().unwrap().trim_end_matches('/'));
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Some(process) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            let is_ours = environment.windows(mark.len()).any(|part| part == mark.as_bytes());
            if is_ours && !servers.contains(&process) {
                // It may end by itself before that.
                let _ =
                    Command::new("kill").args(["-KILL", &process.to_string()]).stderr(Stdio::null()).status();
            }
        }
    }
}

/// What an agent is started with, without a person beside it. Claude Code is told its tasks one after the other, as at a
/// terminal; Codex has one.
fn arguments(kind: AgentKind, model: &ScriptedModel) -> Vec<String> {
    let address = format!("model_providers.scripted.base_url=\"{}/v1\"", model.address);
    let words: &[&str] = match kind {
        AgentKind::Claude => &[
            "-p",
            "--input-format=stream-json",
            "--output-format=stream-json",
            "--verbose",
            "--allowedTools=Bash,Edit,Write,Read",
        ],
        AgentKind::Codex => &[
            "exec",
            "--json",
            "--dangerously-bypass-approvals-and-sandbox",
            "--dangerously-bypass-hook-trust",
            "-c",
            &address,
            TASK,
        ],
    };
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Where agents find what they start, node among it.
fn path() -> OsString {
    let own = std::env::var_os("PATH").unwrap_or_default();
    let node = std::env::split_paths(&own).find(|folder| folder.join("node").is_file());
    let folders = [PathBuf::from("/usr/bin"), PathBuf::from("/bin")].into_iter().chain(node);
    std::env::join_paths(folders).unwrap()
}

/// What a model was told, in small letters, without the path of its shell: an agent says which one it is.
pub fn without_shell_path(prompt: &str) -> String {
    let prompt = prompt.to_lowercase();
    let is_end = |letter: char| letter.is_whitespace() || matches!(letter, '"' | '\\' | '`' | ',' | ';');
    prompt.split(is_end).filter(|word| !word.ends_with("tenure-bash")).collect::<Vec<_>>().join(" ")
}
