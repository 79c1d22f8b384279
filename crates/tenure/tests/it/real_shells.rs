//! Real coding agents change files with their shells. What `tenure install` put in, or `tenure guard`, meets each change.

use crate::real_model::Step;
use crate::real_stage::{Kind, RealStage, without_shell};

/// After how many seconds the one retry is due. A shell does not wait for it.
const LATE: u32 = 60;

const LOOK: Step = Step::Read("a.txt");
const EDIT: Step = Step::Edit { file: "a.txt", from: "first", to: "of the first agent" };
const APPEND: Step = Step::Shell("echo of the second agent >> a.txt");
const REPLACE: Step = Step::Shell("sed -i 's/^second$/of the second agent/' a.txt");

const FIRST_ALONE: &str = "of the first agent\nsecond\n";
const BOTH: &str = "of the first agent\nof the second agent\nof the second agent\n";

/// How a command of the second agent comes under the guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// By what `tenure install` put into its settings.
    Installed,
    /// The whole agent runs under `tenure guard`.
    Guarded,
}

impl Way {
    /// The way of this agent: not every shell can be named.
    fn of(kind: Kind) -> Self {
        if kind == Kind::Claude { Way::Installed } else { Way::Guarded }
    }

    fn through(self) -> &'static [&'static str] {
        match self {
            Way::Installed => &[],
            Way::Guarded => &[env!("CARGO_BIN_EXE_tenure"), "guard", "--"],
        }
    }
}

// S4-15, S4-55
#[test]
fn shell_of_claude_cannot_change_a_file_that_codex_holds() {
    second_shell_fails(Kind::Codex, Kind::Claude, Way::Installed);
}

// S4-15, S4-55
#[test]
fn guarded_shell_of_codex_cannot_change_a_file_that_claude_holds() {
    second_shell_fails(Kind::Claude, Kind::Codex, Way::Guarded);
}

/// `one` edits the file and stays in its turn. The shell of `two` fails at once, and its model reads why; when `one` is
/// done, the same commands pass.
fn second_shell_fails(one: Kind, two: Kind, way: Way) {
    let Some(stage) = RealStage::new(LATE) else { return };
    stage.install(one);
    if way == Way::Installed {
        stage.install(two);
    }
    let first = stage.model(&[LOOK, EDIT, Step::Hold]);
    let mut owner = stage.start(one, &first);
    owner.comes_to_the_hold(&first);
    assert_eq!(stage.text(), FIRST_ALONE);

    let second = stage.model(&[APPEND, REPLACE, Step::Hold, APPEND, REPLACE]);
    let mut blocked = stage.start_through(way.through(), two, &second);
    blocked.comes_to_the_hold(&second);
    let heard = second.heard();
    assert_eq!(heard.len(), 2, "{heard:?}");
    for text in &heard {
        for part in
            ["Device or resource busy", "`a.txt`", one.name(), "has held it for", "Do not go around this"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    assert_eq!(stage.text(), FIRST_ALONE);

    first.go_on();
    let said = owner.ends();
    assert_eq!((said.code, first.is_done()), (Some(0), true), "{said:?}");
    second.go_on();
    let said = blocked.ends();
    assert_eq!((said.code, second.is_done()), (Some(0), true), "{said:?}");
    assert_eq!(stage.text(), BOTH, "{:?}", second.heard());
}

// S4-15, S4-55
#[test]
fn file_changed_by_a_real_shell_is_held_against_the_tool_of_another_agent() {
    for (one, two) in [(Kind::Claude, Kind::Codex), (Kind::Codex, Kind::Claude)] {
        let Some(stage) = RealStage::new(3) else { return };
        stage.install(one);
        stage.install(two);
        let first = stage.model(&[Step::Shell("sed -i 's/first/of the first agent/' a.txt"), Step::Hold]);
        let mut owner = stage.start_through(Way::of(one).through(), one, &first);
        owner.comes_to_the_hold(&first);
        assert_eq!(stage.text(), FIRST_ALONE, "{:?}", first.heard());
        let second =
            stage.model(&[LOOK, Step::Edit { file: "a.txt", from: "second", to: "of the second agent" }]);
        let blocked = stage.start(two, &second);
        let said = blocked.ends();
        assert_eq!(stage.reports().len(), 1, "{said:?}");
        assert_eq!(stage.text(), FIRST_ALONE);
    }
}

// S4-16, S4-62
#[test]
fn uncontended_command_of_a_real_agent_mentions_no_locks() {
    for kind in [Kind::Claude, Kind::Codex] {
        let Some(stage) = RealStage::new(LATE) else { return };
        stage.install(kind);
        let line = "echo third >> a.txt; echo new > b.txt; git add b.txt; git -c user.name=t -c user.email=t@example commit -qm b; cat a.txt b.txt";
        let model = stage.model(&[Step::Shell(line)]);
        let said = stage.start_through(Way::of(kind).through(), kind, &model).ends();
        assert_eq!((said.code, model.is_done()), (Some(0), true), "{said:?}");
        let heard = model.heard().pop().unwrap();
        assert!(heard.trim_end().ends_with("first\nsecond\nthird\nnew"), "{heard}");
        let told = without_shell(&model.told());
        assert!(!told.contains("tenure"), "{told}");
        assert_eq!(stage.text(), "first\nsecond\nthird\n");
    }
}
