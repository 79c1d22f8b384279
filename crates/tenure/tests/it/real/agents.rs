//! Real coding agents edit with their own tools. Nobody tells them of locks; only a model is played by the test.

use tenure_testkit::unix_milliseconds;

use crate::real::agent_fixture::{AgentKind, RealAgentFixture, without_shell_path};
use crate::scripted_model::ModelStep;

/// After how many seconds the one retry is due.
const SOON: u32 = 3;
/// The same where the owner has to be done by then.
const LATER: u32 = 15;

const LOOK: ModelStep = ModelStep::Read("a.txt");
const FIRST: ModelStep = ModelStep::Edit { file: "a.txt", from: "first", to: "of the first agent" };
const SECOND: ModelStep = ModelStep::Edit { file: "a.txt", from: "second", to: "of the second agent" };

const FIRST_ALONE: &str = "of the first agent\nsecond\n";
const BOTH: &str = "of the first agent\nof the second agent\n";

// S4-15, S4-55
#[test]
fn codex_retries_once_and_is_stopped_by_a_file_that_claude_holds() {
    second_is_stopped(AgentKind::Claude, AgentKind::Codex);
}

// S4-15, S4-55
#[test]
fn claude_retries_once_and_is_stopped_by_a_file_that_codex_holds() {
    second_is_stopped(AgentKind::Codex, AgentKind::Claude);
}

/// `one` edits the file and stays in its turn. `two` waits for its one retry and is stopped, with a report; when `one` is
/// done, it goes on.
fn second_is_stopped(one: AgentKind, two: AgentKind) {
    let Some(stage) = RealAgentFixture::new(SOON) else { return };
    stage.install(one);
    stage.install(two);
    let first = stage.model(&[LOOK, FIRST, ModelStep::Hold]);
    let mut owner = stage.start(one, &first);
    owner.wait_until_paused(&first);
    assert_eq!(stage.file_text(), FIRST_ALONE);

    let second = stage.model(&[LOOK, SECOND, ModelStep::Hold, SECOND]);
    let mut blocked = stage.start(two, &second);
    if two == AgentKind::Claude {
        // The denial ends its turn. Its model hears of it when the person says something.
        blocked.wait_until_stopped();
        blocked.send_message("Go on.");
    }
    blocked.wait_until_paused(&second);
    let results = second.tool_results().pop().unwrap();
    let [report] = &stage.reports()[..] else { panic!("one report: {:?}", stage.reports()) };
    let id = report["id"].as_str().unwrap();
    for part in
        ["`a.txt` was not changed", one.name(), "waiting_for_instruction", id, "Do not go around this"]
    {
        assert!(results.contains(part), "{part}: {results}");
    }
    assert_eq!(report["blockedFile"], "a.txt", "{report}");
    let time = |name: &str| unix_milliseconds(report[name].as_str().unwrap());
    assert!(time("blockedAt") - time("askedAt") >= i64::from(SOON) * 1_000, "it waited: {report}");
    assert_eq!(report["state"], "waiting_for_instruction", "{report}");
    assert_eq!(stage.file_text(), FIRST_ALONE);

    first.resume();
    let result = owner.wait();
    assert_eq!((result.code, first.is_done()), (Some(0), true), "{result:?}");
    second.resume();
    let result = blocked.wait();
    assert_eq!((result.code, second.is_done()), (Some(0), true), "{result:?}");
    assert_eq!(stage.file_text(), BOTH, "{:?}", second.tool_results());
    assert_eq!(stage.reports().len(), 1);
    // What it goes on with is not committed; it knows whose that is.
    assert!(
        second.last_request().contains("has changes that are not committed"),
        "{}",
        second.last_request()
    );
}

// S4-15, S4-55
#[test]
fn waiting_agent_gets_the_file_after_the_owner_is_done() {
    let Some(stage) = RealAgentFixture::new(LATER) else { return };
    stage.install(AgentKind::Claude);
    stage.install(AgentKind::Codex);
    let first = stage.model(&[LOOK, FIRST, ModelStep::Hold]);
    let mut owner = stage.start(AgentKind::Claude, &first);
    owner.wait_until_paused(&first);
    let second = stage.model(&[LOOK, SECOND]);
    let waiting = stage.start(AgentKind::Codex, &second);
    stage.wait_for_waiter();
    first.resume();
    owner.wait();
    let result = waiting.wait();
    assert_eq!((result.code, second.is_done()), (Some(0), true), "{result:?}");
    assert_eq!(stage.file_text(), BOTH, "{:?}", second.tool_results());
    assert!(stage.reports().is_empty());
    assert_eq!(stage.repository.ledger_events("lease.issued").len(), 2, "each edited what it had");
}

// S4-16, S4-62
#[test]
fn uncontended_edit_of_a_real_agent_is_unaffected_by_tenure() {
    for kind in [AgentKind::Claude, AgentKind::Codex] {
        let mut tool_results = Vec::new();
        for is_installed in [false, true] {
            let Some(stage) = RealAgentFixture::new(LATER) else { return };
            if is_installed {
                stage.install(kind);
            }
            let model = stage.model(&[LOOK, FIRST, SECOND, ModelStep::Shell("git diff --stat")]);
            let result = stage.start(kind, &model).wait();
            assert_eq!((result.code, model.is_done()), (Some(0), true), "{result:?}");
            assert_eq!(stage.file_text(), BOTH, "{:?}", model.tool_results());
            // Its own words and the hooks' are all that the model has.
            let prompt = without_shell_path(&model.last_request());
            assert!(!prompt.contains("tenure"), "{prompt}");
            let is_leased = stage.repository.daemon_pid().is_some()
                && !stage.repository.ledger_events("lease.issued").is_empty();
            assert_eq!(is_leased, is_installed, "{kind:?}");
            let folder = stage.repository.path("");
            tool_results.push(
                model
                    .tool_results()
                    .iter()
                    .map(|text| plain(text, folder.to_str().unwrap()))
                    .collect::<Vec<_>>(),
            );
        }
        assert_eq!(tool_results[0].len(), 4, "{tool_results:?}");
        assert_eq!(tool_results[0], tool_results[1], "{kind:?}");
    }
}

/// What a tool said, without what is another each time: where it was, and how long it took.
fn plain(text: &str, folder: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("Wall time:") && !line.starts_with("Chunk ID:"));
    lines.collect::<Vec<_>>().join("\n").replace(folder, "")
}
