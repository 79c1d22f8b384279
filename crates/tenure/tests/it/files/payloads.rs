//! What real agents send before they write, each answered in the form that it obeys.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tenure_hooks::{HookEvent, HookWaitPolicy};
use tenure_host::coding_agent::CodingAgent;
use tenure_testkit::{CommandOutput, FakeAgent, TestRepository};

/// What an agent sent before it wrote, in this repo's repository.
struct RecordedPayload {
    agent: CodingAgent,
    name: String,
    payload: Value,
    files: Vec<PathBuf>,
    is_waiting: bool,
}

fn sent(repo: &TestRepository) -> Vec<RecordedPayload> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tenure-hooks/tests/fixtures/hooks");
    let mut texts = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if let Ok(agent) = name.split('-').next().unwrap().parse::<CodingAgent>() {
            texts.push((agent, name, fs::read_to_string(entry.path()).unwrap()));
        }
    }
    let cursor = json!({
        "conversation_id": "c1", "generation_id": "g1", "hook_event_name": "preToolUse", "tool_name": "Write",
        "tool_input": {"file_path": "/repo/a.txt"}, "workspace_roots": ["/repo"], "cwd": "/repo",
    });
    texts.push((CodingAgent::Cursor, "cursor-preToolUse-Write".to_owned(), cursor.to_string()));
    let root = repo.file("");
    let root = root.to_str().unwrap().trim_end_matches('/');
    let mut found = Vec::new();
    for (agent, name, text) in texts {
        let text = text.replace("/repo", root);
        let Ok(parsed) = tenure_hooks::parse_payload(agent, text.as_bytes()) else { continue };
        let HookEvent::BeforeWrite { paths, .. } = parsed.event else { continue };
        let cwd = parsed.cwd.unwrap_or_else(|| root.into());
        let files = paths.iter().map(|path| cwd.join(path)).collect();
        let is_waiting = parsed.wait_policy == HookWaitPolicy::WaitForRetry;
        found.push(RecordedPayload {
            agent,
            name,
            payload: serde_json::from_str(&text).unwrap(),
            files,
            is_waiting,
        });
    }
    assert!(found.len() > 15, "{}", found.len());
    for agent in CodingAgent::ALL {
        assert!(found.iter().any(|sent| sent.agent == agent), "{agent}");
    }
    found
}

/// How each agent is told that it may not, and its turn is over where a hook can end it.
fn is_stopped(agent: CodingAgent, result: &CommandOutput) -> bool {
    let answer: Value = serde_json::from_str(&result.output).unwrap_or_default();
    let specific = &answer["hookSpecificOutput"]["permissionDecision"];
    result.code == Some(0)
        && match agent {
            CodingAgent::Claude => specific == "deny" && answer["continue"] == false,
            // With `continue` beside it Codex would make the edit.
            CodingAgent::Codex => specific == "deny" && answer.get("continue").is_none(),
            CodingAgent::Gemini => answer["decision"] == "deny" && answer["continue"] == false,
            CodingAgent::OpenCode => answer["decision"] == "deny" && answer["stop"] == true,
            CodingAgent::Cursor => answer["permission"] == "deny",
        }
}

fn is_allowed(agent: CodingAgent, result: &CommandOutput) -> bool {
    let answer: Value = serde_json::from_str(&result.output).unwrap_or_default();
    result.code == Some(0)
        && match agent {
            // An answer that allows would approve in the person's place, or count as a failure.
            CodingAgent::Claude | CodingAgent::Codex | CodingAgent::Gemini => result.output.is_empty(),
            CodingAgent::OpenCode => answer["decision"] == "allow",
            // Silence is a denial to a hook that fails closed.
            CodingAgent::Cursor => answer["permission"] == "allow",
        }
}

// S4-1, S4-11
#[test]
fn every_recorded_write_is_allowed_and_leased_if_the_file_is_free() {
    let repo = TestRepository::with_retry_and_idle(1, 30);
    for (number, sent) in sent(&repo).iter().enumerate() {
        let mut agent = FakeAgent::start_kind(&repo, &format!("agent-{number}"), sent.agent.as_str());
        let result = agent.run_hook(&sent.payload);
        assert!(is_allowed(sent.agent, &result), "{}: {result:?}", sent.name);
        for file in &sent.files {
            let holder = repo.json(&["who", file.to_str().unwrap(), "--json"]);
            assert_eq!(holder["file"]["owner"]["pid"], agent.process_id(), "{}: {holder}", sent.name);
            assert_eq!(holder["file"]["owner"]["agent"], sent.agent.as_str(), "{}", sent.name);
        }
    }
}

// S4-19, S4-27
#[test]
fn every_recorded_write_is_stopped_if_the_file_is_held() {
    let repo = TestRepository::with_retry_and_idle(1, 30);
    let all = sent(&repo);
    let mut owner = FakeAgent::start(&repo, "owner");
    for file in all.iter().flat_map(|sent| &sent.files) {
        let mut edit = repo.edit_payload("owner", "a");
        edit["tool_input"]["file_path"] = json!(file);
        let result = owner.run_hook(&edit);
        assert!(result.is_allowed(), "{result:?}");
    }
    for (number, sent) in all.iter().enumerate() {
        let mut agent = FakeAgent::start_kind(&repo, &format!("agent-{number}"), sent.agent.as_str());
        let result = agent.run_hook(&sent.payload);
        if sent.is_waiting {
            assert!(is_stopped(sent.agent, &result), "{}: {result:?}", sent.name);
            assert!(result.output.contains("waiting_for_instruction"), "{}: {result:?}", sent.name);
            assert_eq!(result.errors.matches("contention").count(), 1, "{}: {result:?}", sent.name);
        } else {
            assert!(is_stopped(sent.agent, &result), "{}: {result:?}", sent.name);
            assert!(result.output.contains("once more in 1 s"), "{}: {result:?}", sent.name);
        }
    }
}

// S4-25, S4-26, S4-48
#[test]
fn codex_retry_is_granted_if_the_file_is_free_by_then() {
    let repo = TestRepository::with_retry_and_idle(2, 30);
    let (mut one, mut two) = (FakeAgent::start(&repo, "one"), FakeAgent::start_kind(&repo, "two", "codex"));
    assert!(one.run_hook(&repo.edit_payload("s1", "a")).is_allowed());
    for _ in 0..3 {
        let result = two.run_hook(&repo.patch_payload("s2", "a"));
        assert!(result.denial_reason().contains("once more in"), "{result:?}");
    }
    assert_eq!(repo.ledger_events("file.contended").len(), 1, "one ticket, however often it is asked");
    one.run_hook(&repo.event_payload("s1", "SessionEnd"));
    let result = two.run_hook(&repo.patch_payload("s2", "a"));
    assert!(result.is_allowed() && result.output.is_empty(), "{result:?}");
    assert_eq!(repo.owner_session("a").as_deref(), Some("s2"));
    assert_eq!(repo.json(&["report", "list", "--json"]), json!({"reports": []}));
}
