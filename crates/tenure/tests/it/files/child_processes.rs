//! What Tenure starts: never anything that commits, stages or changes what git has.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::process::{Command, Stdio};

use tenure_testkit::{FakeAgent, TestRepository, wait_until};

use crate::fault_injection::tool_path;

/// The questions to git that only read, and all that are asked.
const READING: [&str; 6] = ["cat-file", "diff", "diff-tree", "ls-tree", "rev-parse", "status"];

/// What an agent and all below it started, as a trace says.
#[derive(Default)]
struct ProcessTrace {
    parents: HashMap<u32, u32>,
    of_tenure: HashSet<u32>,
    /// How often Tenure itself was started.
    own: usize,
    /// What processes of Tenure, and those below them, started beside itself.
    started: Vec<Vec<String>>,
    /// What all others started.
    foreign: Vec<Vec<String>>,
}

impl ProcessTrace {
    fn read(text: &str) -> Self {
        let mut trace = Self::default();
        let split = |line: &str| {
            let (process, call) = line.split_once(' ').unwrap();
            (process.parse::<u32>().unwrap(), call.trim_start().to_owned())
        };
        let calls: Vec<(u32, String)> = text.lines().map(split).collect();
        // First who is whose child: a parent may stand still until its child has become another program.
        for (process, call) in &calls {
            let makes_one = ["clone", "fork", "vfork", "<... clone", "<... fork", "<... vfork"];
            if makes_one.iter().any(|name| call.starts_with(name))
                && let Some(child) = call.rsplit(" = ").next().and_then(|child| child.parse().ok())
            {
                trace.parents.insert(child, *process);
            }
        }
        for (process, call) in &calls {
            if call.starts_with("execve(") && !call.contains(" = -1 ") {
                trace.executes(*process, arguments(call));
            }
        }
        trace
    }

    fn executes(&mut self, process: u32, arguments: Vec<String>) {
        // The server is made from the hook that needs it, by the name that a process has for its own program.
        if [env!("CARGO_BIN_EXE_tenure"), "/proc/self/exe"].contains(&&*arguments[0]) {
            self.own += 1;
            self.of_tenure.insert(process);
            return;
        }
        let above = std::iter::successors(Some(process), |process| self.parents.get(process).copied());
        let is_its = above.into_iter().any(|process| self.of_tenure.contains(&process));
        let list = if is_its { &mut self.started } else { &mut self.foreign };
        list.push(arguments);
    }
}

/// The words of a call, the program's path first.
fn arguments(call: &str) -> Vec<String> {
    let (program, rest) = call.strip_prefix("execve(\"").unwrap().split_once("\", [").unwrap();
    let list = rest.split("], 0x").next().unwrap();
    let rest = list.split("\", \"").skip(1).map(|word| word.trim_matches('"').to_owned());
    std::iter::once(program.to_owned()).chain(rest).collect()
}

/// The verb of git, behind the options that stand before it.
fn verb(arguments: &[String]) -> Option<&str> {
    let mut rest = arguments.iter().skip(1).map(|word| &**word);
    while let Some(word) = rest.next() {
        match word {
            "-C" | "-c" => drop(rest.next()),
            option if option.starts_with('-') => {}
            verb => return Some(verb),
        }
    }
    None
}

// S4-6, S4-16, S4-40, S4-41, S4-60
#[test]
fn tenure_starts_no_process_that_stages_or_commits() {
    let repo = TestRepository::with_retry_and_idle(1, 30);
    assert_eq!(repo.run(&["install", "git"]).code, Some(0));
    let mut agent = FakeAgent::start(&repo, "one");
    let (process, trace) = (agent.process_id(), repo.path("trace"));
    let mut tracer = Command::new(tool_path("strace"))
        .args(["-f", "-q", "-s", "400", "-e", "trace=execve,clone,clone3,fork,vfork", "-o"])
        .arg(&trace)
        .args(["-p", &process.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the agent is traced", || {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        !status.contains("TracerPid:\t0\n")
    });
    // The first hook starts the server, below the same trace.
    assert!(agent.run_hook(&repo.event_payload("s1", "SessionStart")).is_allowed());
    agent.edit_file(&repo, "s1", "a", "two\n");
    agent.edit_file(&repo, "s1", "b", "two\n");
    let mut two = FakeAgent::start(&repo, "two");
    assert!(!two.run_hook(&repo.edit_payload("s2", "a")).is_allowed());
    assert_eq!(repo.run(&["blame", "a"]).code, Some(0));
    let result = agent.run_line("{ git add a b && git commit --quiet --message two; }");
    assert_eq!(result.code, Some(0), "{result:?}");
    assert!(repo.held_files().is_empty());
    agent.edit_file(&repo, "s1", "a", "three\n");
    agent.run_hook(&repo.event_payload("s1", "Stop"));
    agent.run_hook(&repo.event_payload("s1", "SessionEnd"));
    tenure_testkit::signal(tracer.id(), "TERM");
    tracer.wait().unwrap();
    let seen = ProcessTrace::read(&fs::read_to_string(&trace).unwrap());
    assert!(seen.own > 8, "hooks, and the server: {}", seen.own);
    for call in &seen.started {
        assert!(call[0].ends_with("/git"), "nothing but git: {call:?}");
        assert!(verb(call).is_some_and(|verb| READING.contains(&verb)), "{call:?}");
    }
    assert!(!seen.started.is_empty(), "it asks git what was committed");
    let by_the_agent = |verb_of: &str| seen.foreign.iter().any(|call| verb(call) == Some(verb_of));
    assert!(by_the_agent("add") && by_the_agent("commit"), "the trace sees what happens");
    assert_eq!(repo.shell("git log --format='%an %s'").output, "tester two\ntester begin\n");
    assert_eq!(repo.shell("git status --porcelain").output, " M a\n", "nothing is staged");
}
