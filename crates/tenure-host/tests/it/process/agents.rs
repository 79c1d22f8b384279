//! Which process above a hook is the agent: as the real agents were seen, and with real chains of processes.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tenure_host::coding_agent::CodingAgent;
use tenure_host::process::{AgentProcess, Ancestor, ancestor_agent, ancestors, choose_agent};

/// Who was above a hook of a real agent.
fn recorded(file: &str) -> Vec<Ancestor> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/processes").join(file);
    let all: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let text = |process: &Value, field: &str| process[field].as_str().unwrap().to_owned();
    let processes = all["ancestry"].as_array().unwrap().iter();
    let all = processes.map(|process| Ancestor {
        pid: u32::try_from(process["pid"].as_u64().unwrap()).unwrap(),
        name: text(process, "comm"),
        program: Some(text(process, "exe")),
        arguments: text(process, "cmdline").split(' ').map(str::to_owned).collect(),
    });
    // The first one is the hook itself.
    all.skip(1).collect()
}

fn ancestor(pid: u32, called: &str) -> Ancestor {
    let arguments: Vec<String> = called.split(' ').map(str::to_owned).collect();
    let name = arguments[0].rsplit('/').next().unwrap().to_owned();
    Ancestor { pid, name, program: Some(arguments[0].clone()), arguments }
}

fn chosen(chain: &[&str], kind: Option<CodingAgent>) -> usize {
    let first = u32::try_from(chain.len()).unwrap();
    let above: Vec<Ancestor> =
        (1..=first).rev().zip(chain).map(|(pid, called)| ancestor(pid, called)).collect();
    choose_agent(&above, kind).unwrap()
}

// S4-2
#[test]
fn recorded_process_trees_select_the_agent_and_not_its_launcher() {
    let seen = [
        ("claude-process.json", CodingAgent::Claude, 1),
        ("codex-process.json", CodingAgent::Codex, 0),
        ("codex-codemode-process.json", CodingAgent::Codex, 0),
        ("gemini-process.json", CodingAgent::Gemini, 0),
        ("opencode-process.json", CodingAgent::OpenCode, 0),
    ];
    for (file, kind, place) in seen {
        let above = recorded(file);
        assert_eq!(choose_agent(&above, Some(kind)), Some(place), "{file}");
        assert_eq!(choose_agent(&above, None), Some(place), "{file}, of any kind");
    }
}

#[test]
fn an_agent_is_detected_by_program_name_or_script() {
    let claude = Some(CodingAgent::Claude);
    assert_eq!(
        chosen(&["sh -c x", "node /lib/node_modules/@anthropic-ai/claude-code/cli.js", "bash"], claude),
        1
    );
    assert_eq!(chosen(&["bash -c claude", "claude --resume", "-zsh"], claude), 1);
    assert_eq!(chosen(&["node -r ./claude.js other.js", "/home/u/.local/bin/claude"], claude), 1);
    assert_eq!(chosen(&["node -e claude", "claude"], claude), 1);
    assert_eq!(
        chosen(&["python3 hook.py claude", "timeout 9 claude", "tenure guard -- claude", "claude"], claude),
        3
    );
    let gemini = Some(CodingAgent::Gemini);
    assert_eq!(
        chosen(&["sh", "node --x=1 /lib/@google/gemini-cli/dist/index.js", "node /bin/gemini"], gemini),
        1
    );
    let cursor = Some(CodingAgent::Cursor);
    assert_eq!(
        chosen(&["sh", "/home/u/.local/share/cursor-agent/versions/1/node index.js", "bash"], cursor),
        1
    );
    assert_eq!(
        chosen(&["bash", "/usr/share/cursor/cursor --type=utility", "/usr/share/cursor/cursor"], cursor),
        1
    );
    // One agent that was started by another is itself.
    assert_eq!(chosen(&["sh", "claude -p", "bash -c y", "codex exec", "node codex"], claude), 1);
    assert_eq!(
        chosen(&["sh", "claude -p", "bash -c y", "codex exec", "node codex"], Some(CodingAgent::Codex)),
        3
    );
    assert_eq!(chosen(&["git commit", "bash -c y", "/opt/codex exec", "claude"], None), 2);
}

#[test]
fn an_unknown_agent_is_the_nearest_process_that_is_neither_shell_nor_launcher() {
    assert_eq!(
        chosen(&["/bin/dash -c x", "env A=b aider", "/usr/bin/python3 aider", "-bash", "sshd"], None),
        2
    );
    assert_eq!(chosen(&["sh hook", "git commit", "bash -c y", "tenure guard", "my-agent", "bash"], None), 4);
    assert_eq!(chosen(&["sudo x", "timeout 5 y", "my-agent", "init"], Some(CodingAgent::Claude)), 2);
    // A terminal in the editor is a person's, unless the editor's own agent asks.
    assert_eq!(chosen(&["git commit", "zsh", "my-terminal", "/usr/share/cursor/cursor"], None), 2);
}

#[test]
fn init_is_chosen_only_without_another_ancestor() {
    assert_eq!(chosen(&["sh -c x", "bash", "/sbin/init"], None), 1);
    assert_eq!(chosen(&["sh -c x", "/usr/lib/systemd/systemd --user", "systemd"], None), 0);
    assert_eq!(chosen(&["sh -c x", "bash", "whatever-starts-a-container"], None), 1);
    assert_eq!(chosen(&["my-agent"], None), 0);
    assert_eq!(
        chosen(&["sh", "claude"], Some(CodingAgent::Claude)),
        1,
        "an agent may be the first in its container"
    );
    assert_eq!(choose_agent(&[], None), None);
}

/// Starts a chain of shells in which the innermost one asks.
fn chain(program: &Path, script: &str) -> (Child, u32) {
    let mut command = Command::new(program);
    command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (child, line.trim().parse().unwrap())
}

// S4-2
#[test]
fn a_hook_below_real_shells_finds_its_agent() {
    let folder = tempfile::tempdir().unwrap();
    let agent = folder.path().join("claude");
    fs::copy("/bin/bash", &agent).unwrap();
    let script = r#"env timeout 600 sh -c 'sh -c "echo \$\$; read line; :"; :'; :"#;
    let (mut child, hook) = chain(&agent, script);
    let found = ancestor_agent(hook, Some(CodingAgent::Claude)).unwrap();
    assert_eq!((found.process.pid, &*found.name), (child.id(), "claude"));
    assert_eq!(ancestor_agent(hook, None).unwrap(), found);
    drop(child.stdin.take());
    child.wait().unwrap();
}

#[test]
fn an_unknown_script_is_skipped_for_its_starter() {
    let (mut child, hook) = chain(Path::new("/bin/sh"), r#"sh -c 'echo $$; read line; :'; :"#);
    // Whoever runs the tests may be an agent; one of the others is asked for.
    let above: Vec<Vec<u8>> =
        ancestors(hook).iter().flat_map(|above| fs::read(format!("/proc/{}/cmdline", above.pid))).collect();
    let is_above =
        |kind: CodingAgent| above.iter().any(|line| String::from_utf8_lossy(line).contains(kind.as_str()));
    let kind = CodingAgent::ALL.into_iter().find(|kind| !is_above(*kind));
    let AgentProcess { process, name } = ancestor_agent(hook, kind).unwrap();
    // The nearest that is no shell is this test.
    assert_eq!(process.pid, std::process::id(), "{name}");
    drop(child.stdin.take());
    child.wait().unwrap();
    assert!(ancestor_agent(u32::MAX, None).is_err());
}
