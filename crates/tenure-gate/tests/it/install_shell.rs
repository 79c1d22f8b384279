//! The shell that agents are given: a link that is there as long as anybody's settings name it, and never in the place of one
//! that a person chose.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tenure_gate::agent::Agent;
use tenure_gate::coverage::{Means, Way};
use tenure_gate::install::{
    Change, InstallError, Place, Plan, Scope, What, carry_out, plan_install, plan_uninstall,
};

use crate::install_support::Project;

const CLAUDE: What = What::Agent(Agent::Claude);
const OPENCODE: What = What::Agent(Agent::OpenCode);
const SETTINGS: &str = ".claude/settings.json";

fn shell(project: &Project) -> PathBuf {
    project.place.backups.join("bin/tenure-bash")
}

fn leads_to(project: &Project) -> Option<PathBuf> {
    fs::read_link(shell(project)).ok()
}

fn env(project: &Project) -> Value {
    serde_json::from_str::<Value>(&project.read(SETTINGS)).unwrap()["env"].clone()
}

fn covers_shells(plan: &Plan) -> Vec<Means> {
    plan.coverage.iter().find(|covered| covered.way == Way::Shell).unwrap().by.clone()
}

#[test]
fn the_shell_is_a_link_to_the_program_and_the_settings_name_it() {
    let project = Project::new();
    project.write(SETTINGS, "{\n  \"env\": {\n    \"A\": \"1\"\n  }\n}\n");
    let before = project.snapshot();
    let plan = project.install(CLAUDE);
    assert!(matches!(&plan.changes[0], Change::Link { before: None, .. }), "{:?}", plan.changes);
    assert_eq!(leads_to(&project), Some(project.place.program.clone()));
    assert_eq!(env(&project), json!({"A": "1", "CLAUDE_CODE_SHELL": shell(&project)}));
    assert_eq!(covers_shells(&plan), [Means::Shim]);
    project.uninstall(CLAUDE);
    assert_eq!(project.snapshot(), before);
    assert!(project.has_forgotten());
}

#[test]
fn only_agents_whose_shell_can_be_chosen_get_one() {
    for agent in Agent::ALL {
        let project = Project::new();
        let plan = project.install(What::Agent(agent));
        let gets_one = matches!(agent, Agent::Claude | Agent::OpenCode);
        assert_eq!(leads_to(&project).is_some(), gets_one, "{agent}");
        assert_eq!(covers_shells(&plan) == [Means::Shim], gets_one, "{agent}");
    }
    let project = Project::new();
    project.install(OPENCODE);
    let line = format!("const SHELL = {}\n", json!(shell(&project)));
    assert!(project.read(".opencode/plugins/tenure.js").contains(&line));
}

#[test]
fn it_stays_until_nobodys_settings_name_it() {
    for order in [[CLAUDE, OPENCODE], [OPENCODE, CLAUDE]] {
        let project = Project::new();
        project.install(CLAUDE);
        project.install(OPENCODE);
        project.install(What::Agent(Agent::Codex));
        project.uninstall(order[0]);
        assert!(leads_to(&project).is_some(), "{order:?}");
        project.uninstall(order[1]);
        assert_eq!(leads_to(&project), None, "{order:?}");
        assert!(!project.has_forgotten(), "Codex has its hooks, and needs no shell");
        project.uninstall(What::Agent(Agent::Codex));
        assert!(project.has_forgotten());
    }
    // Also those of another project, and of one whose record cannot be read any more.
    for is_damaged in [false, true] {
        let (one, mut two) = (Project::new(), Project::new());
        two.place.backups.clone_from(&one.place.backups);
        one.install(CLAUDE);
        let record = fs::read_dir(&one.place.backups).unwrap().map(|entry| entry.unwrap().path());
        let record = record.into_iter().find(|path| path.is_file()).unwrap();
        two.install(CLAUDE);
        if is_damaged {
            fs::write(record, "damaged").unwrap();
        }
        two.uninstall(CLAUDE);
        assert!(leads_to(&one).is_some(), "damaged: {is_damaged}");
    }
}

#[test]
fn settings_that_were_deleted_need_no_shell() {
    let project = Project::new();
    project.install(CLAUDE);
    fs::remove_file(project.place.root.join(SETTINGS)).unwrap();
    project.uninstall(CLAUDE);
    assert_eq!(leads_to(&project), None);
    assert!(project.has_forgotten());
}

#[test]
fn a_link_that_leads_elsewhere_or_is_gone_is_put_right() {
    let mut project = Project::new();
    project.install(CLAUDE);
    fs::remove_file(shell(&project)).unwrap();
    let plan = project.install(CLAUDE);
    assert!(matches!(plan.changes.as_slice(), [Change::Link { .. }]), "{:?}", plan.changes);
    assert_eq!(project.install(CLAUDE).changes, []);
    project.place.program = "/new/tenure".into();
    project.install(OPENCODE);
    assert_eq!(leads_to(&project), Some("/new/tenure".into()));
    assert_eq!(
        fs::read_dir(shell(&project).parent().unwrap()).unwrap().count(),
        1,
        "nothing is left beside it"
    );
}

#[test]
fn what_has_its_name_and_is_no_link_is_left_alone() {
    let project = Project::new();
    let path = shell(&project);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "mine").unwrap();
    let before = project.snapshot();
    assert!(matches!(plan_install(CLAUDE, &project.place), Err(InstallError::Taken { .. })));
    assert_eq!(project.snapshot(), before);
    assert_eq!(plan_uninstall(CLAUDE, &project.place).unwrap().changes, []);
    assert_eq!(fs::read_to_string(path).unwrap(), "mine");
}

#[test]
fn whoever_was_quicker_with_the_link_is_not_overwritten() {
    let project = Project::new();
    let plan = plan_install(CLAUDE, &project.place).unwrap();
    fs::create_dir_all(shell(&project).parent().unwrap()).unwrap();
    symlink("/other/tenure", shell(&project)).unwrap();
    assert!(matches!(carry_out(&plan), Err(InstallError::Changed { .. })));
    assert!(!project.place.root.join(SETTINGS).exists());
    let plan = plan_uninstall(CLAUDE, &project.place).unwrap();
    fs::remove_file(shell(&project)).unwrap();
    fs::write(shell(&project), "theirs").unwrap();
    assert!(matches!(carry_out(&plan), Err(InstallError::Changed { .. })));
    assert_eq!(fs::read_to_string(shell(&project)).unwrap(), "theirs");
}

/// A project whose person chose a shell, and where that is said to be.
fn chosen(choose: impl Fn(&mut Place, &dyn Fn(&Path)), scope: Scope) -> (Project, String) {
    let mut project = Project::new();
    project.place.scope = scope;
    let write = |path: &Path| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "{\"env\": {\"CLAUDE_CODE_SHELL\": \"/bin/zsh\"}}").unwrap();
    };
    choose(&mut project.place, &write);
    let before = project.snapshot();
    let plan = project.install(CLAUDE);
    assert_eq!(covers_shells(&plan), [Means::Guard, Means::Audit]);
    assert_eq!(leads_to(&project), None);
    assert_eq!(project.install(CLAUDE).changes, []);
    let note = plan.notes.iter().find(|note| note.contains("chosen a shell")).expect("a note").clone();
    assert!(note.contains("`tenure guard -- claude`"), "{note}");
    project.uninstall(CLAUDE);
    assert_eq!(project.snapshot(), before);
    (project, note)
}

#[test]
fn a_shell_that_a_person_chose_stays_wherever_it_was_chosen() {
    let (project, note) = chosen(|place, write| write(&place.root.join(SETTINGS)), Scope::Project);
    assert!(note.contains(SETTINGS), "{note}");
    assert_eq!(env(&project), json!({"CLAUDE_CODE_SHELL": "/bin/zsh"}));
    let (_, note) = chosen(|place, write| write(&place.home.clone().unwrap().join(SETTINGS)), Scope::Project);
    assert!(note.contains("home/.claude/settings.json"), "{note}");
    let local = ".claude/settings.local.json";
    let (_, note) = chosen(|place, write| write(&place.root.join(local)), Scope::Project);
    assert!(note.contains(local), "{note}");
    chosen(|place, write| write(&place.root.join(SETTINGS)), Scope::Local);
    chosen(|place, write| write(&place.root.join(SETTINGS)), Scope::User);
    let (_, note) = chosen(|place, _| place.chosen_shell = Some("/bin/zsh".into()), Scope::Project);
    assert!(note.contains("your environment"), "{note}");
}

#[test]
fn a_shell_that_a_person_chooses_later_takes_the_place_of_ours() {
    let mut project = Project::new();
    project.install(CLAUDE);
    let ours = shell(&project);
    // What runs in our shell, or has no shell at all, chose none.
    for none in [ours.clone(), PathBuf::new()] {
        project.place.chosen_shell = Some(none);
        assert_eq!(project.install(CLAUDE).changes, []);
    }
    project.place.chosen_shell = Some("/bin/zsh".into());
    project.install(CLAUDE);
    assert_eq!(env(&project), Value::Null);
    assert_eq!(leads_to(&project), None);
    project.place.chosen_shell = None;
    project.install(CLAUDE);
    assert_eq!(env(&project), json!({"CLAUDE_CODE_SHELL": ours}));
    // By hand, in the file where ours was.
    let text = project.read(SETTINGS);
    project.write(SETTINGS, text.replace(ours.to_str().unwrap(), "/bin/zsh"));
    project.install(CLAUDE);
    assert_eq!(env(&project), json!({"CLAUDE_CODE_SHELL": "/bin/zsh"}));
    project.uninstall(CLAUDE);
    assert_eq!(project.read(SETTINGS).matches("CLAUDE_CODE_SHELL").count(), 1);
}

#[test]
fn variables_of_another_kind_are_left_to_the_person() {
    for strange in ["{\"env\": []}", "{\"env\": 7}", "{\"env\": {}, \"env\": {}}"] {
        let project = Project::new();
        project.write(SETTINGS, strange);
        let plan = project.install(CLAUDE);
        assert_eq!(covers_shells(&plan), [Means::Guard, Means::Audit], "{strange}");
        project.uninstall(CLAUDE);
        assert_eq!(project.read(SETTINGS), strange);
    }
}

#[test]
fn a_folder_that_settings_cannot_name_is_refused_with_what_to_do() {
    let mut project = Project::new();
    project.place.backups = project.place.backups.join("a\nb");
    for what in [CLAUDE, OPENCODE] {
        let refused = plan_install(what, &project.place).unwrap_err();
        assert!(matches!(refused, InstallError::State { .. }), "{refused}");
        assert!(refused.to_string().contains("XDG_STATE_HOME"), "{refused}");
    }
    assert!(plan_install(What::Agent(Agent::Codex), &project.place).is_ok());
}
