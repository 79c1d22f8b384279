//! Which file each agent reads, and what goes into it.
//!
//! Times: an agent must let a hook wait for 180 seconds, so a hook that may wait gets 240. The others answer at once.

use std::path::PathBuf;

use tenure_host::coding_agent::CodingAgent;

use super::configured_shell::ShellVariable;
use super::hook_entries::{DesiredSettings, HookEntryShape, guarded_command};
use super::json::Json;
use super::user_folders::GEMINI_NAME;
use super::{InstallContext, InstallError, InstallScope};

/// How long a hook may hold a call, in seconds: the one retry comes after 180.
const HOOK_TIMEOUT_SECONDS: u64 = 240;

/// How long the end of a session may take in Claude Code.
const CLAUDE_SESSION_END_SECONDS: u64 = 10;

/// How long it may take in Codex, which allows no more.
const CODEX_SESSION_END_SECONDS: u64 = 3;

/// The settings file of this agent.
pub fn settings_file(agent: CodingAgent, place: &InstallContext) -> Result<PathBuf, InstallError> {
    let (folder, name) = match agent {
        CodingAgent::Claude => (".claude", "settings.json"),
        CodingAgent::Codex => (".codex", "hooks.json"),
        CodingAgent::Gemini => (".gemini", "settings.json"),
        CodingAgent::Cursor => (".cursor", "hooks.json"),
        CodingAgent::OpenCode => (".opencode", "plugins/tenure.js"),
    };
    match (agent, place.scope) {
        (_, InstallScope::Project) => Ok(place.root.join(folder).join(name)),
        (CodingAgent::Claude, InstallScope::Local) => Ok(place.root.join(folder).join("settings.local.json")),
        (_, InstallScope::Local) => Err(InstallError::NoLocal { agent: agent.as_str() }),
        (agent, InstallScope::User) => {
            place.user_folders.folder(agent).map(|own| own.join(name)).ok_or(InstallError::NoHome)
        }
    }
}

/// Whether this agent can be told which shell to take.
pub const fn supports_shell_setting(agent: CodingAgent) -> bool {
    matches!(agent, CodingAgent::Claude | CodingAgent::OpenCode)
}

/// What a shell is chosen by, in words.
pub const fn shell_setting_label(agent: CodingAgent) -> &'static str {
    match agent {
        CodingAgent::Claude => "`CLAUDE_CODE_SHELL`",
        CodingAgent::Codex | CodingAgent::Gemini | CodingAgent::Cursor | CodingAgent::OpenCode => {
            "`shell` in opencode.json"
        }
    }
}

/// The variable by which this agent's settings name its shell, if they can.
pub const fn shell_variable(agent: CodingAgent) -> Option<&'static str> {
    match agent {
        CodingAgent::Claude => Some("CLAUDE_CODE_SHELL"),
        // OpenCode is told by its plugin.
        CodingAgent::Codex | CodingAgent::Gemini | CodingAgent::Cursor | CodingAgent::OpenCode => None,
    }
}

/// What shall be in it, running `command`; with this shell, if it gets one.
pub fn desired_settings(agent: CodingAgent, command: &str, shell: Option<String>) -> DesiredSettings {
    let settings = match agent {
        CodingAgent::Claude => claude(command),
        CodingAgent::Codex => codex(command),
        CodingAgent::Gemini => gemini(command),
        CodingAgent::Cursor => cursor(command),
        // A file of our own.
        CodingAgent::OpenCode => grouped(Vec::new()),
    };
    let variable = shell_variable(agent).map(|name| ShellVariable { name, value: shell });
    DesiredSettings { variable, ..settings }
}

fn grouped(entries: Vec<(&'static str, Json)>) -> DesiredSettings {
    DesiredSettings { shape: HookEntryShape::Grouped, top: Vec::new(), entries, variable: None }
}

fn claude(command: &str) -> DesiredSettings {
    let run = |more: Vec<(&'static str, Json)>| {
        let plain = vec![("type", Json::string("command")), ("command", Json::string(command))];
        Json::Object(plain.into_iter().chain(more).collect())
    };
    let group = |matcher: Option<&str>, more| {
        let matcher = matcher.map(|matcher| ("matcher", Json::string(matcher)));
        Json::Object(matcher.into_iter().chain([("hooks", Json::Array(vec![run(more)]))]).collect())
    };
    // Every tool: those that write are judged, those that read are remembered, the others are a sign of life. Where the
    // hook cannot run at all, nothing passes: a crash must not open the gate.
    let before = vec![("timeout", Json::Number(HOOK_TIMEOUT_SECONDS)), ("onFailure", Json::string("block"))];
    let mut entries = vec![
        ("PreToolUse", group(Some("*"), before)),
        ("PostToolUse", group(Some("*"), Vec::new())),
        ("PostToolUseFailure", group(Some("*"), Vec::new())),
    ];
    for event in ["UserPromptSubmit", "SessionStart", "Stop", "SubagentStart", "SubagentStop"] {
        entries.push((event, group(None, Vec::new())));
    }
    // By itself it leaves a second and a half, which a busy machine may need for less.
    entries.push(("SessionEnd", group(None, vec![("timeout", Json::Number(CLAUDE_SESSION_END_SECONDS))])));
    grouped(entries)
}

fn codex(command: &str) -> DesiredSettings {
    let group_of = |command: &str, timeout: Option<u64>| {
        let mut run = vec![("type", Json::string("command")), ("command", Json::string(command))];
        run.extend(timeout.map(|timeout| ("timeout", Json::Number(timeout))));
        Json::Object(vec![("hooks", Json::Array(vec![Json::Object(run)]))])
    };
    let group = |timeout| group_of(command, timeout);
    let entries = vec![
        // It takes a program that is not there for a yes.
        (
            "PreToolUse",
            group_of(&guarded_command(command, CodingAgent::Codex.as_str()), Some(HOOK_TIMEOUT_SECONDS)),
        ),
        ("PostToolUse", group(None)),
        ("UserPromptSubmit", group(None)),
        ("SessionStart", group(None)),
        ("SessionEnd", group(Some(CODEX_SESSION_END_SECONDS))),
        ("Stop", group(None)),
        ("SubagentStart", group(None)),
        ("SubagentStop", group(None)),
    ];
    grouped(entries)
}

fn gemini(command: &str) -> DesiredSettings {
    let group = |timeout: Option<u64>| {
        let mut run = vec![
            ("name", Json::string(GEMINI_NAME)),
            ("type", Json::string("command")),
            ("command", Json::string(command)),
        ];
        // In milliseconds, here alone.
        run.extend(timeout.map(|timeout| ("timeout", Json::Number(timeout * 1_000))));
        Json::Object(vec![("hooks", Json::Array(vec![Json::Object(run)]))])
    };
    let entries = vec![
        ("BeforeTool", group(Some(HOOK_TIMEOUT_SECONDS))),
        ("AfterTool", group(None)),
        ("BeforeAgent", group(None)),
        ("AfterAgent", group(None)),
        ("SessionStart", group(None)),
        ("SessionEnd", group(None)),
    ];
    grouped(entries)
}

fn cursor(command: &str) -> DesiredSettings {
    let run = |more: Vec<(&'static str, Json)>| {
        Json::Object([("command", Json::string(command))].into_iter().chain(more).collect())
    };
    let gate = || vec![("timeout", Json::Number(HOOK_TIMEOUT_SECONDS)), ("failClosed", Json::Flag(true))];
    let writing = [("matcher", Json::string("Write|Delete"))].into_iter().chain(gate()).collect();
    let mut entries = vec![("preToolUse", run(writing)), ("beforeMCPExecution", run(gate()))];
    for event in [
        "afterFileEdit",
        "postToolUseFailure",
        "beforeReadFile",
        "beforeShellExecution",
        "beforeSubmitPrompt",
        "sessionStart",
        "sessionEnd",
        "stop",
        "subagentStart",
        "subagentStop",
    ] {
        entries.push((event, run(Vec::new())));
    }
    DesiredSettings {
        shape: HookEntryShape::Flat,
        top: vec![("version", Json::Number(1))],
        entries,
        variable: None,
    }
}

/// What the person has to know, and still has to do. Of the shell only if it gets one.
pub fn install_notes(agent: CodingAgent, scope: InstallScope, has_shell: bool) -> Vec<String> {
    let mut notes = vec![match agent {
        CodingAgent::Claude => {
            "Claude Code: every edit asks for its lease first, and from version 2.1.295 on nothing passes if the hook \
             cannot run. Sessions that are already open may have to be started again."
        }
        CodingAgent::Codex => {
            "Codex runs no hook that is not trusted, and says nothing about it: start `codex`, open `/hooks`, and trust \
             those of Tenure. After every change of their command they must be trusted again."
        }
        CodingAgent::Gemini => {
            "Gemini CLI: hooks of a project run only in a folder that is trusted. If the hook is killed, an edit passes: it \
             has no setting that closes that."
        }
        CodingAgent::Cursor => {
            "Cursor: edits, deletions and MCP tools ask for their lease first, and are refused if the hook cannot run."
        }
        CodingAgent::OpenCode => {
            "OpenCode: a plugin asks for the lease before every tool that may write, and refuses if Tenure cannot be \
             asked. It is loaded when OpenCode starts."
        }
    }
    .to_owned()];
    if has_shell {
        notes.push(format!(
            "Its commands run in Tenure's bash, until you choose another shell by {}.",
            shell_setting_label(agent)
        ));
    }
    if scope == InstallScope::Project {
        notes.push(match agent {
            CodingAgent::Claude => {
                "The file names the program by its path on this machine. If it is committed, others without Tenure at that \
                 path cannot edit; for you alone, install with `--local` or `--user`."
                    .to_owned()
            }
            _ => "The file names the program by its path on this machine. If it is committed, others without Tenure at \
                  that path cannot edit; for you alone, install with `--user`."
                .to_owned(),
        });
    }
    notes
}
