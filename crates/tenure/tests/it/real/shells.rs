//! Real coding agents change files with their shells. What `tenure install` put in, or `tenure guard`, meets each change.

use crate::real::agent_fixture::{AgentKind, RealAgentFixture, without_shell_path};
use crate::scripted_model::ModelStep;

/// After how many seconds the one retry is due. A shell does not wait for it.
const LATE: u32 = 60;

const LOOK: ModelStep = ModelStep::Read("a.txt");
const EDIT: ModelStep = ModelStep::Edit { file: "a.txt", from: "first", to: "of the first agent" };
const APPEND: ModelStep = ModelStep::Shell("echo of the second agent >> a.txt");
const REPLACE: ModelStep = ModelStep::Shell("sed -i 's/^second$/of the second agent/' a.txt");

const FIRST_ALONE: &str = "of the first agent\nsecond\n";
const BOTH: &str = "of the first agent\nof the second agent\nof the second agent\n";

/// How a command of the second agent comes under the guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GuardMode {
    /// By what `tenure install` put into its settings.
    Installed,
    /// The whole agent runs under `tenure guard`.
    Guarded,
}

impl GuardMode {
    /// The way of this agent: not every shell can be named.
    fn of(kind: AgentKind) -> Self {
        if kind == AgentKind::Claude { GuardMode::Installed } else { GuardMode::Guarded }
    }

    fn through(self) -> &'static [&'static str] {
        match self {
            GuardMode::Installed => &[],
            GuardMode::Guarded => &[env!("CARGO_BIN_EXE_tenure"), "guard", "--"],
        }
    }
}

// S4-15, S4-55
#[test]
fn shell_of_claude_cannot_change_a_file_that_codex_holds() {
    second_shell_fails(AgentKind::Codex, AgentKind::Claude, GuardMode::Installed);
}

// S4-15, S4-55
#[test]
fn guarded_shell_of_codex_cannot_change_a_file_that_claude_holds() {
    second_shell_fails(AgentKind::Claude, AgentKind::Codex, GuardMode::Guarded);
}

/// `one` edits the file and stays in its turn. The shell of `two` fails at once, and its model reads why; when `one` is
/// done, the same commands pass.
fn second_shell_fails(one: AgentKind, two: AgentKind, way: GuardMode) {
    let Some(stage) = RealAgentFixture::new(LATE) else { return };
    stage.install(one);
    if way == GuardMode::Installed {
        stage.install(two);
    }
    let first = stage.model(&[LOOK, EDIT, ModelStep::Hold]);
    let mut owner = stage.start(one, &first);
    owner.wait_until_paused(&first);
    assert_eq!(stage.file_text(), FIRST_ALONE);

    let second = stage.model(&[APPEND, REPLACE, ModelStep::Hold, APPEND, REPLACE]);
    let mut blocked = stage.start_wrapped(way.through(), two, &second);
    blocked.wait_until_paused(&second);
    let results = second.tool_results();
    assert_eq!(results.len(), 2, "{results:?}");
    for text in &results {
        for part in
            ["Device or resource busy", "`a.txt`", one.name(), "has held it for", "Do not go around this"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    assert_eq!(stage.file_text(), FIRST_ALONE);

    first.resume();
    let result = owner.wait();
    assert_eq!((result.code, first.is_done()), (Some(0), true), "{result:?}");
    second.resume();
    let result = blocked.wait();
    assert_eq!((result.code, second.is_done()), (Some(0), true), "{result:?}");
    assert_eq!(stage.file_text(), BOTH, "{:?}", second.tool_results());
}

// S4-15, S4-55
#[test]
fn file_changed_by_a_real_shell_is_held_against_the_tool_of_another_agent() {
    for (one, two) in [(AgentKind::Claude, AgentKind::Codex), (AgentKind::Codex, AgentKind::Claude)] {
        let Some(stage) = RealAgentFixture::new(3) else { return };
        stage.install(one);
        stage.install(two);
        let first =
            stage.model(&[ModelStep::Shell("sed -i 's/first/of the first agent/' a.txt"), ModelStep::Hold]);
        let mut owner = stage.start_wrapped(GuardMode::of(one).through(), one, &first);
        owner.wait_until_paused(&first);
        assert_eq!(stage.file_text(), FIRST_ALONE, "{:?}", first.tool_results());
        let second = stage
            .model(&[LOOK, ModelStep::Edit { file: "a.txt", from: "second", to: "of the second agent" }]);
        let blocked = stage.start(two, &second);
        let result = blocked.wait();
        assert_eq!(stage.reports().len(), 1, "{result:?}");
        assert_eq!(stage.file_text(), FIRST_ALONE);
    }
}

// S4-16, S4-62
#[test]
fn uncontended_command_of_a_real_agent_mentions_no_locks() {
    for kind in [AgentKind::Claude, AgentKind::Codex] {
        let Some(stage) = RealAgentFixture::new(LATE) else { return };
        stage.install(kind);
        let line = "echo third >> a.txt; echo new > b.txt; git add b.txt; git -c user.name=t -c user.email=t@example commit -qm b; cat a.txt b.txt";
        let model = stage.model(&[ModelStep::Shell(line)]);
        let result = stage.start_wrapped(GuardMode::of(kind).through(), kind, &model).wait();
        assert_eq!((result.code, model.is_done()), (Some(0), true), "{result:?}");
        let tool_result = model.tool_results().pop().unwrap();
        assert!(tool_result.trim_end().ends_with("first\nsecond\nthird\nnew"), "{tool_result}");
        let prompt = without_shell_path(&model.last_request());
        assert!(!prompt.contains("tenure"), "{prompt}");
        assert_eq!(stage.file_text(), "first\nsecond\nthird\n");
    }
}
