//! Real coding agents edit with their own tools. Nobody tells them of locks; only a model is played by the test.

use tenure_testkit::milliseconds;

use crate::real_model::Step;
use crate::real_stage::{Kind, RealStage, without_shell};

/// After how many seconds the one retry is due.
const SOON: u32 = 3;
/// The same where the owner has to be done by then.
const LATER: u32 = 15;

const LOOK: Step = Step::Read("a.txt");
const FIRST: Step = Step::Edit { file: "a.txt", from: "first", to: "of the first agent" };
const SECOND: Step = Step::Edit { file: "a.txt", from: "second", to: "of the second agent" };

const FIRST_ALONE: &str = "of the first agent\nsecond\n";
const BOTH: &str = "of the first agent\nof the second agent\n";

// S4-15, S4-55
#[test]
fn codex_retries_once_and_is_stopped_by_a_file_that_claude_holds() {
    second_is_stopped(Kind::Claude, Kind::Codex);
}

// S4-15, S4-55
#[test]
fn claude_retries_once_and_is_stopped_by_a_file_that_codex_holds() {
    second_is_stopped(Kind::Codex, Kind::Claude);
}

/// `one` edits the file and stays in its turn. `two` waits for its one retry and is stopped, with a report; when `one` is
/// done, it goes on.
fn second_is_stopped(one: Kind, two: Kind) {
    let Some(stage) = RealStage::new(SOON) else { return };
    stage.install(one);
    stage.install(two);
    let first = stage.model(&[LOOK, FIRST, Step::Hold]);
    let mut owner = stage.start(one, &first);
    owner.comes_to_the_hold(&first);
    assert_eq!(stage.text(), FIRST_ALONE);

    let second = stage.model(&[LOOK, SECOND, Step::Hold, SECOND]);
    let mut blocked = stage.start(two, &second);
    if two == Kind::Claude {
        // The denial ends its turn. Its model hears of it when the person says something.
        blocked.is_stopped();
        blocked.tell("Go on.");
    }
    blocked.comes_to_the_hold(&second);
    let heard = second.heard().pop().unwrap();
    let [report] = &stage.reports()[..] else { panic!("one report: {:?}", stage.reports()) };
    let id = report["id"].as_str().unwrap();
    for part in
        ["`a.txt` was not changed", one.name(), "waiting_for_instruction", id, "Do not go around this"]
    {
        assert!(heard.contains(part), "{part}: {heard}");
    }
    assert_eq!(report["blockedFile"], "a.txt", "{report}");
    let time = |name: &str| milliseconds(report[name].as_str().unwrap());
    assert!(time("blockedAt") - time("askedAt") >= i64::from(SOON) * 1_000, "it waited: {report}");
    assert_eq!(report["state"], "waiting_for_instruction", "{report}");
    assert_eq!(stage.text(), FIRST_ALONE);

    first.go_on();
    let said = owner.ends();
    assert_eq!((said.code, first.is_done()), (Some(0), true), "{said:?}");
    second.go_on();
    let said = blocked.ends();
    assert_eq!((said.code, second.is_done()), (Some(0), true), "{said:?}");
    assert_eq!(stage.text(), BOTH, "{:?}", second.heard());
    assert_eq!(stage.reports().len(), 1);
    // What it goes on with is not committed; it knows whose that is.
    assert!(second.told().contains("has changes that are not committed"), "{}", second.told());
}

// S4-15, S4-55
#[test]
fn waiting_agent_gets_the_file_after_the_owner_is_done() {
    let Some(stage) = RealStage::new(LATER) else { return };
    stage.install(Kind::Claude);
    stage.install(Kind::Codex);
    let first = stage.model(&[LOOK, FIRST, Step::Hold]);
    let mut owner = stage.start(Kind::Claude, &first);
    owner.comes_to_the_hold(&first);
    let second = stage.model(&[LOOK, SECOND]);
    let waiting = stage.start(Kind::Codex, &second);
    stage.somebody_waits();
    first.go_on();
    owner.ends();
    let said = waiting.ends();
    assert_eq!((said.code, second.is_done()), (Some(0), true), "{said:?}");
    assert_eq!(stage.text(), BOTH, "{:?}", second.heard());
    assert!(stage.reports().is_empty());
    assert_eq!(stage.stage.ledger("lease.issued").len(), 2, "each edited what it had");
}

// S4-16, S4-62
#[test]
fn uncontended_edit_of_a_real_agent_is_unaffected_by_tenure() {
    for kind in [Kind::Claude, Kind::Codex] {
        let mut heard = Vec::new();
        for is_installed in [false, true] {
            let Some(stage) = RealStage::new(LATER) else { return };
            if is_installed {
                stage.install(kind);
            }
            let model = stage.model(&[LOOK, FIRST, SECOND, Step::Shell("git diff --stat")]);
            let said = stage.start(kind, &model).ends();
            assert_eq!((said.code, model.is_done()), (Some(0), true), "{said:?}");
            assert_eq!(stage.text(), BOTH, "{:?}", model.heard());
            // Its own words and the hooks' are all that the model has.
            let told = without_shell(&model.told());
            assert!(!told.contains("tenure"), "{told}");
            let is_leased = stage.stage.daemon().is_some() && !stage.stage.ledger("lease.issued").is_empty();
            assert_eq!(is_leased, is_installed, "{kind:?}");
            let folder = stage.stage.path("");
            heard.push(
                model.heard().iter().map(|text| plain(text, folder.to_str().unwrap())).collect::<Vec<_>>(),
            );
        }
        assert_eq!(heard[0].len(), 4, "{heard:?}");
        assert_eq!(heard[0], heard[1], "{kind:?}");
    }
}

/// What a tool said, without what is another each time: where it was, and how long it took.
fn plain(text: &str, folder: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("Wall time:") && !line.starts_with("Chunk ID:"));
    lines.collect::<Vec<_>>().join("\n").replace(folder, "")
}
