//! What nobody should send, and places where nobody should work: a clear answer, and nothing left locked.

use std::fs;

use serde_json::json;
use tenure_testkit::{CommandOutput, FakeAgent, TestRepository};

fn patch_of(repo: &TestRepository, session: &str, names: &[String]) -> serde_json::Value {
    let files: String = names.iter().map(|name| format!("*** Add File: {name}\n+new\n")).collect();
    let mut payload = repo.patch_payload(session, "a");
    payload["tool_input"]["command"] = json!(format!("*** Begin Patch\n{files}*** End Patch\n"));
    payload
}

#[test]
fn file_name_with_a_newline_is_leased_and_shown_on_one_line() {
    let repo = TestRepository::with_retry_and_idle(1, 30);
    let (mut one, mut two) = (FakeAgent::start(&repo, "one"), FakeAgent::start(&repo, "two"));
    let name = "new\nline \u{1b}[2J";
    one.edit_file(&repo, "s1", name, "two\n");
    let result = two.run_hook(&repo.edit_payload("s2", name));
    assert!(!result.is_allowed() && result.errors.lines().count() == 1, "{result:?}");
    assert!(!result.denial_reason().contains(char::is_control), "{result:?}");
    let table = repo.run(&["files"]).output;
    assert_eq!(table.lines().count(), 2, "{table:?}");
    assert!(!table.contains('\u{1b}'), "{table:?}");
    assert_eq!(repo.held_files().len(), 1);
    let list = repo.run(&["report", "list"]).output;
    assert!(list.lines().count() == 2 && !list.contains('\u{1b}'), "{list:?}");
    one.run_hook(&repo.event_payload("s1", "SessionEnd"));
    assert!(repo.held_files().is_empty());
}

// S4-15
#[test]
fn several_files_are_leased_atomically() {
    let repo = TestRepository::with_retry_and_idle(1, 30);
    let mut one = FakeAgent::start(&repo, "one");
    let mut two = FakeAgent::start_kind(&repo, "two", "codex");
    assert!(one.run_hook(&repo.edit_payload("s1", "b")).is_allowed());
    let names: Vec<String> = ["a", "b", "c"].map(str::to_owned).into();
    assert!(!two.run_hook(&patch_of(&repo, "s2", &names)).is_allowed());
    assert_eq!(repo.held_files(), ["b"], "nothing of it is leased");
}

#[test]
fn call_with_too_many_files_is_denied() {
    let repo = TestRepository::with_retry_and_idle(1, 30);
    let mut agent = FakeAgent::start_kind(&repo, "one", "codex");
    // The small segments of these tests would not hold so many leases at once.
    assert_eq!(agent.run_line("unset TENURE_LEDGER_SEGMENT_SIZE").code, Some(0));
    let names = |count: usize| (0..count).map(|number| format!("new-{number}")).collect::<Vec<_>>();
    let result = agent.run_hook(&patch_of(&repo, "s1", &names(1_001)));
    // With words beside it this code stops Codex.
    assert!(result.code == Some(2) && result.errors.contains("more than 1,000 files"), "{result:?}");
    let result = agent.run_hook(&patch_of(&repo, "s1", &names(1_000)));
    assert!(result.is_allowed(), "{result:?}");
    assert_eq!(repo.held_files().len(), 1_000);
}

#[test]
fn write_of_a_very_large_file_is_allowed() {
    let repo = TestRepository::with_retry_and_idle(1, 30);
    let mut payload = repo.edit_payload("s1", "a");
    payload["tool_name"] = json!("Write");
    payload["tool_input"] = json!({"file_path": repo.file("a"), "content": "x".repeat(12 << 20)});
    let result = repo.run_hook("claude", payload.to_string().as_bytes());
    assert!(result.is_allowed(), "{result:?}");
    assert_eq!(repo.held_files(), ["a"]);
}

#[test]
fn leases_work_without_git_in_the_path() {
    let repo = TestRepository::with_retry_and_idle(1, 30);
    let (mut one, mut two) = (FakeAgent::start(&repo, "one"), FakeAgent::start(&repo, "two"));
    for agent in [&mut one, &mut two] {
        assert_eq!(agent.run_line("export PATH=/nowhere").code, Some(0));
    }
    one.edit_file(&repo, "s1", "a", "two\n");
    let result = two.run_hook(&repo.edit_payload("s2", "a"));
    assert!(result.denial_reason().contains("session s1"), "{result:?}");
    one.run_hook(&repo.event_payload("s1", "SessionEnd"));
    let result = two.run_hook(&repo.edit_payload("s2", "a"));
    assert!(result.is_allowed(), "{result:?}");
    let result = two.run_line("\"$TENURE\" hook git post-commit");
    assert!(result.code == Some(0) && result.errors.contains("not known to Tenure"), "{result:?}");
}

#[test]
fn leases_work_in_a_read_only_tree_and_nothing_is_written() {
    let repo = TestRepository::with_retry_and_idle(1, 30);
    let before = repo.shell("find . | sort").output;
    fs::write(repo.path("payload"), repo.edit_payload("s1", "a").to_string()).unwrap();
    let tree = repo.file("");
    let tree = tree.to_str().unwrap().trim_end_matches('/');
    // The server is started in there too, and so sees what the agent sees.
    let line = format!(
        "unshare --mount sh -c 'mount --bind {tree} {tree} && mount -o remount,bind,ro {tree} && cd {tree} && \
         ! touch c 2> /dev/null && \"$TENURE\" hook claude < ../payload'"
    );
    let mut one = FakeAgent::start(&repo, "one");
    let result = one.run_line(&line);
    assert!(result.is_allowed() && result.output.is_empty(), "{result:?}");
    let mut two = FakeAgent::start(&repo, "two");
    assert!(!two.run_hook(&repo.edit_payload("s2", "a")).is_allowed());
    assert_eq!(repo.shell("find . | sort").output, before);
}

#[test]
fn directory_in_place_of_the_socket_denies_the_edit() {
    let repo = TestRepository::with_retry_and_idle(1, 30);
    fs::create_dir_all(repo.path("tenure/tenure.sock/full")).unwrap();
    let result: CommandOutput = repo.run_hook("claude", repo.edit_payload("s1", "a").to_string().as_bytes());
    assert!(result.denial_reason().contains("Nothing was changed"), "{result:?}");
    assert!(repo.server_pids().is_empty());
}

#[test]
fn impossible_paths_are_denied() {
    let repo = TestRepository::with_retry_and_idle(1, 30);
    let long = "x/".repeat(5_000);
    for path in ["", "a\0b", &*long] {
        let mut payload = repo.edit_payload("s1", "a");
        payload["tool_input"]["file_path"] = json!(path);
        let result = repo.run_hook("claude", payload.to_string().as_bytes());
        assert!(!result.is_allowed(), "{path:?}: {result:?}");
    }
    // A folder is no file, and nobody can have it.
    let result = repo.run_hook("claude", repo.edit_payload("s1", "").to_string().as_bytes());
    assert!(!result.is_allowed() || repo.held_files().is_empty(), "{result:?}");
}
