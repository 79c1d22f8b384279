//! What nobody should send, and places where nobody should work: a clear answer, and nothing left locked.

use std::fs;

use serde_json::json;

use crate::hook_stage::{FakeAgent, Said, Stage};

fn patch_of(stage: &Stage, session: &str, names: &[String]) -> serde_json::Value {
    let files: String = names.iter().map(|name| format!("*** Add File: {name}\n+new\n")).collect();
    let mut payload = stage.patch(session, "a");
    payload["tool_input"]["command"] = json!(format!("*** Begin Patch\n{files}*** End Patch\n"));
    payload
}

#[test]
fn a_name_with_a_newline_is_one_file_and_is_shown_on_one_line() {
    let stage = Stage::with_seconds(1, 30);
    let (mut one, mut two) = (FakeAgent::start(&stage, "one"), FakeAgent::start(&stage, "two"));
    let name = "new\nline \u{1b}[2J";
    one.edits(&stage, "s1", name, "two\n");
    let said = two.hook(&stage.edit("s2", name));
    assert!(!said.allows() && said.errors.lines().count() == 1, "{said:?}");
    assert!(!said.reason().contains(char::is_control), "{said:?}");
    let table = stage.run(&["files"]).output;
    assert_eq!(table.lines().count(), 2, "{table:?}");
    assert!(!table.contains('\u{1b}'), "{table:?}");
    assert_eq!(stage.held().len(), 1);
    let list = stage.run(&["report", "list"]).output;
    assert!(list.lines().count() == 2 && !list.contains('\u{1b}'), "{list:?}");
    one.hook(&stage.event("s1", "SessionEnd"));
    assert!(stage.held().is_empty());
}

// S4-15
#[test]
fn of_several_files_all_are_leased_or_none() {
    let stage = Stage::with_seconds(1, 30);
    let mut one = FakeAgent::start(&stage, "one");
    let mut two = FakeAgent::of_kind(&stage, "two", "codex");
    assert!(one.hook(&stage.edit("s1", "b")).allows());
    let names: Vec<String> = ["a", "b", "c"].map(str::to_owned).into();
    assert!(!two.hook(&patch_of(&stage, "s2", &names)).allows());
    assert_eq!(stage.held(), ["b"], "nothing of it is leased");
}

#[test]
fn a_call_of_very_many_files_is_granted_or_denied_and_never_let_through_unseen() {
    let stage = Stage::with_seconds(1, 30);
    let mut agent = FakeAgent::of_kind(&stage, "one", "codex");
    // The small segments of these tests would not hold so many leases at once.
    assert_eq!(agent.run("unset TENURE_LEDGER_SEGMENT_SIZE").code, Some(0));
    let names = |count: usize| (0..count).map(|number| format!("new-{number}")).collect::<Vec<_>>();
    let said = agent.hook(&patch_of(&stage, "s1", &names(1_001)));
    // With words beside it this code stops Codex.
    assert!(said.code == Some(2) && said.errors.contains("more than 1,000 files"), "{said:?}");
    let said = agent.hook(&patch_of(&stage, "s1", &names(1_000)));
    assert!(said.allows(), "{said:?}");
    assert_eq!(stage.held().len(), 1_000);
}

#[test]
fn a_very_large_file_may_be_written() {
    let stage = Stage::with_seconds(1, 30);
    let mut payload = stage.edit("s1", "a");
    payload["tool_name"] = json!("Write");
    payload["tool_input"] = json!({"file_path": stage.repository("a"), "content": "x".repeat(12 << 20)});
    let said = stage.hook("claude", payload.to_string().as_bytes());
    assert!(said.allows(), "{said:?}");
    assert_eq!(stage.held(), ["a"]);
}

#[test]
fn without_git_files_still_have_owners() {
    let stage = Stage::with_seconds(1, 30);
    let (mut one, mut two) = (FakeAgent::start(&stage, "one"), FakeAgent::start(&stage, "two"));
    for agent in [&mut one, &mut two] {
        assert_eq!(agent.run("export PATH=/nowhere").code, Some(0));
    }
    one.edits(&stage, "s1", "a", "two\n");
    let said = two.hook(&stage.edit("s2", "a"));
    assert!(said.reason().contains("session s1"), "{said:?}");
    one.hook(&stage.event("s1", "SessionEnd"));
    let said = two.hook(&stage.edit("s2", "a"));
    assert!(said.allows(), "{said:?}");
    let said = two.run("\"$TENURE\" hook git post-commit");
    assert!(said.code == Some(0) && said.errors.contains("not known to Tenure"), "{said:?}");
}

#[test]
fn in_a_tree_that_cannot_be_written_nothing_is_and_files_have_owners() {
    let stage = Stage::with_seconds(1, 30);
    let before = stage.shell("find . | sort").output;
    fs::write(stage.path("payload"), stage.edit("s1", "a").to_string()).unwrap();
    let tree = stage.repository("");
    let tree = tree.to_str().unwrap().trim_end_matches('/');
    // The server is started in there too, and so sees what the agent sees.
    let line = format!(
        "unshare --mount sh -c 'mount --bind {tree} {tree} && mount -o remount,bind,ro {tree} && cd {tree} && \
         ! touch c 2> /dev/null && \"$TENURE\" hook claude < ../payload'"
    );
    let mut one = FakeAgent::start(&stage, "one");
    let said = one.run(&line);
    assert!(said.allows() && said.output.is_empty(), "{said:?}");
    let mut two = FakeAgent::start(&stage, "two");
    assert!(!two.hook(&stage.edit("s2", "a")).allows());
    assert_eq!(stage.shell("find . | sort").output, before);
}

#[test]
fn a_socket_that_is_none_denies() {
    let stage = Stage::with_seconds(1, 30);
    fs::create_dir_all(stage.path("tenure/tenure.sock/full")).unwrap();
    let said: Said = stage.hook("claude", stage.edit("s1", "a").to_string().as_bytes());
    assert!(said.reason().contains("Nothing was changed"), "{said:?}");
    assert!(stage.servers().is_empty());
}

#[test]
fn paths_that_cannot_be_are_denied() {
    let stage = Stage::with_seconds(1, 30);
    let long = "x/".repeat(5_000);
    for path in ["", "a\0b", &*long] {
        let mut payload = stage.edit("s1", "a");
        payload["tool_input"]["file_path"] = json!(path);
        let said = stage.hook("claude", payload.to_string().as_bytes());
        assert!(!said.allows(), "{path:?}: {said:?}");
    }
    // A folder is no file, and nobody can have it.
    let said = stage.hook("claude", stage.edit("s1", "").to_string().as_bytes());
    assert!(!said.allows() || stage.held().is_empty(), "{said:?}");
}
