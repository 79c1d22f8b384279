//! The server that the first hook starts.

use std::fs;
use std::io::Read as _;

use serde_json::json;
use tenure_testkit::{CommandOutput, TestRepository, signal, wait_until};

// S4-1, S4-16, S4-62
#[test]
fn the_first_hook_starts_the_server_and_the_second_finds_it() {
    let repo = TestRepository::new();
    let result = repo.run_hook("claude", repo.edit_payload("s1", "a").to_string().as_bytes());
    assert_eq!((result.code, result.output.as_str(), result.errors.as_str()), (Some(0), "", ""));
    let daemon = repo.daemon_pid().expect("somebody listens");
    assert!(repo.run_hook("claude", repo.edit_payload("s1", "b").to_string().as_bytes()).is_allowed());
    assert_eq!(repo.daemon_pid(), Some(daemon));
    let files = repo.json(&["files", "--json"]);
    assert_eq!((&files[0]["path"], &files[1]["path"]), (&json!("a"), &json!("b")));
    assert_eq!((&files[0]["owner"]["session"], &files[0]["owner"]["alive"]), (&json!("s1"), &json!(true)));
}

#[test]
fn server_inherits_nothing_from_the_process_that_started_it() {
    let repo = TestRepository::new();
    fs::write(repo.path("payload"), repo.edit_payload("s1", "a").to_string()).unwrap();
    // Its descriptors 7 and 23 are our pipe.
    let line = "SECRET=hunter2 TENURE_FILES_MODE=warn bash -c \
                'exec \"$TENURE\" hook claude < ../payload 7>&1 23>&1 >/dev/null 2>&1'";
    let mut child = repo.shell_command(line).spawn().unwrap();
    let mut pipe = child.stdout.take().unwrap();
    let name = fs::read_link(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&pipe))).unwrap();
    assert!(child.wait().unwrap().success());
    let daemon = repo.daemon_pid().unwrap();
    let links: Vec<_> = fs::read_dir(format!("/proc/{daemon}/fd"))
        .unwrap()
        .filter_map(|entry| fs::read_link(entry.unwrap().path()).ok())
        .collect();
    assert!(!links.is_empty() && !links.contains(&name), "{links:?}");
    // Nobody has the other end any more.
    pipe.read_to_end(&mut Vec::new()).unwrap();
    let standard = |number: u32| fs::read_link(format!("/proc/{daemon}/fd/{number}")).unwrap();
    let log = repo.path(".local/state/tenure-daemon.log");
    assert_eq!([standard(0), standard(1), standard(2)], ["/dev/null".into(), log.clone(), log]);
    let environment = String::from_utf8(fs::read(format!("/proc/{daemon}/environ")).unwrap()).unwrap();
    assert!(!environment.contains("SECRET") && !environment.contains("TENURE_FILES_MODE"), "{environment}");
    assert_eq!(
        fs::read_link(format!("/proc/{daemon}/cwd")).unwrap(),
        repo.path("").components().collect::<std::path::PathBuf>()
    );
    // After the name: state, parent, group, session, terminal.
    let stat = fs::read_to_string(format!("/proc/{daemon}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    let own = fs::read_to_string("/proc/self/stat").unwrap();
    let own: Vec<&str> = own.rsplit(") ").next().unwrap().split(' ').collect();
    assert_ne!(fields[3], own[3], "it is in a session of its own");
    assert_ne!(fields[1], std::process::id().to_string(), "{stat}");
    assert_eq!(fields[4], "0", "it has no terminal: {stat}");
}

#[test]
fn many_hooks_at_once_start_one_server() {
    let repo = TestRepository::new();
    let payloads: Vec<_> =
        (0..8).map(|number| repo.edit_payload("s1", &format!("new-{number}")).to_string()).collect();
    let asking: Vec<_> =
        payloads.iter().map(|payload| repo.spawn_hook("claude", payload.as_bytes())).collect();
    for child in asking {
        let result = CommandOutput::from_output(child.wait_with_output().unwrap());
        assert!(result.is_allowed() && result.output.is_empty(), "{result:?}");
    }
    assert_eq!(repo.server_pids().len(), 1);
    assert_eq!(repo.daemon_log().matches("listening on unix:").count(), 1, "{}", repo.daemon_log());
}

#[test]
fn killed_server_is_restarted_with_its_leases() {
    let repo = TestRepository::new();
    assert!(repo.run_hook("claude", repo.edit_payload("s1", "a").to_string().as_bytes()).is_allowed());
    let first = repo.daemon_pid().unwrap();
    signal(first, "KILL");
    wait_until("it is gone", || repo.daemon_pid().is_none());
    assert!(repo.run_hook("claude", repo.edit_payload("s1", "b").to_string().as_bytes()).is_allowed());
    assert_ne!(repo.daemon_pid(), Some(first));
    let files = repo.json(&["files", "--json"]);
    assert_eq!(files.as_array().unwrap().len(), 2, "{files}");
}

// S4-18
#[test]
fn an_agent_with_another_runtime_folder_finds_the_same_server() {
    let repo = TestRepository::new();
    assert!(repo.run_hook("claude", repo.edit_payload("s1", "a").to_string().as_bytes()).is_allowed());
    let daemon = repo.daemon_pid().unwrap();
    fs::create_dir(repo.path("elsewhere")).unwrap();
    fs::write(repo.path("payload"), repo.edit_payload("s2", "b").to_string()).unwrap();
    let result = repo.shell("XDG_RUNTIME_DIR=\"$HOME/elsewhere\" \"$TENURE\" hook claude < ../payload");
    assert!(result.is_allowed() && result.output.is_empty(), "{result:?}");
    let files = repo.shell("XDG_RUNTIME_DIR=\"$HOME/elsewhere\" \"$TENURE\" files --json");
    assert!(files.output.contains("\"s1\"") && files.output.contains("\"s2\""), "{files:?}");
    assert_eq!((repo.server_pids(), repo.daemon_pid()), (vec![daemon], Some(daemon)));
}

#[test]
fn ending_events_and_git_hooks_start_no_server() {
    let repo = TestRepository::new();
    for event in ["SessionEnd", "Stop", "SubagentStop", "PostToolUse"] {
        let result = repo.run_hook("claude", repo.event_payload("s1", event).to_string().as_bytes());
        assert_eq!((result.code, result.output.as_str()), (Some(0), ""), "{event}: {result:?}");
    }
    for hook in ["pre-commit", "post-commit", "reference-transaction committed", "unheard-of"] {
        let result = repo.shell(&format!("\"$TENURE\" hook git {hook}"));
        assert_eq!((result.code, result.output.as_str()), (Some(0), ""), "{hook}: {result:?}");
    }
    assert!(repo.server_pids().is_empty() && repo.daemon_log().is_empty());
    let started = repo.run_hook("claude", repo.event_payload("s1", "SessionStart").to_string().as_bytes());
    assert_eq!((started.code, started.output.as_str()), (Some(0), ""), "{started:?}");
    assert!(repo.daemon_pid().is_some(), "a session that begins is worth a server");
}

#[test]
fn hook_ignores_url_and_token_in_the_environment() {
    let repo = TestRepository::new();
    fs::write(repo.path("payload"), repo.edit_payload("s1", "a").to_string()).unwrap();
    let line = "TENURE_URL=http://127.0.0.1:1 TENURE_TOKEN='no token' \"$TENURE\" hook claude < ../payload";
    let result = repo.shell(line);
    assert!(result.is_allowed() && result.output.is_empty(), "{result:?}");
    assert!(repo.daemon_pid().is_some());
}
