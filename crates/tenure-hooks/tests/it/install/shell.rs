//! The shell that agents are given: a link that is never taken away, and never in the place of one that a person chose.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tenure_hooks::install::{
    ConfiguredShell, InstallContext, InstallError, InstallPlan, InstallScope, InstallTarget, PlannedChange,
    apply_plan, configured_shell, plan_install, plan_uninstall,
};
use tenure_hooks::interception_coverage::{ChangeMethod, InterceptionMechanism};
use tenure_host::coding_agent::CodingAgent;

use crate::install::support::TestProject;

const CLAUDE: InstallTarget = InstallTarget::Agent(CodingAgent::Claude);
const OPENCODE: InstallTarget = InstallTarget::Agent(CodingAgent::OpenCode);
const SETTINGS: &str = ".claude/settings.json";

fn shell(project: &TestProject) -> PathBuf {
    project.context.backups.join("bin/tenure-bash")
}

fn leads_to(project: &TestProject) -> Option<PathBuf> {
    fs::read_link(shell(project)).ok()
}

fn env(project: &TestProject) -> Value {
    serde_json::from_str::<Value>(&project.read(SETTINGS)).unwrap()["env"].clone()
}

fn covers_shells(plan: &InstallPlan) -> Vec<InterceptionMechanism> {
    plan.coverage.iter().find(|covered| covered.method == ChangeMethod::Shell).unwrap().mechanisms.clone()
}

#[test]
fn installing_links_the_shell_and_names_it_in_the_settings() {
    let project = TestProject::new();
    project.write(SETTINGS, "{\n  \"env\": {\n    \"A\": \"1\"\n  }\n}\n");
    let before = project.snapshot();
    let plan = project.install(CLAUDE);
    assert!(matches!(&plan.changes[0], PlannedChange::Link { before: None, .. }), "{:?}", plan.changes);
    assert_eq!(leads_to(&project), Some(project.context.program.clone()));
    assert_eq!(env(&project), json!({"A": "1", "CLAUDE_CODE_SHELL": shell(&project)}));
    assert_eq!(covers_shells(&plan), [InterceptionMechanism::Shim]);
    project.uninstall(CLAUDE);
    assert_eq!(project.snapshot(), before);
    assert!(project.has_no_records());
}

#[test]
fn only_agents_with_a_configurable_shell_get_one() {
    for agent in CodingAgent::ALL {
        let project = TestProject::new();
        let plan = project.install(InstallTarget::Agent(agent));
        let gets_one = matches!(agent, CodingAgent::Claude | CodingAgent::OpenCode);
        assert_eq!(leads_to(&project).is_some(), gets_one, "{agent}");
        assert_eq!(covers_shells(&plan) == [InterceptionMechanism::Shim], gets_one, "{agent}");
    }
    let project = TestProject::new();
    project.install(OPENCODE);
    let line = format!("const SHELL = {}\n", json!(shell(&project)));
    assert!(project.read(".opencode/plugins/tenure.js").contains(&line));
}

// A worktree or a clone may have committed settings that name it, of which nothing is known here. Claude Code takes a shell that is
// gone for none, and runs the plain one without a word.
#[test]
fn uninstalling_keeps_the_shell() {
    for what in [CLAUDE, OPENCODE] {
        let project = TestProject::new();
        project.install(what);
        let plan = project.uninstall(what);
        assert_eq!(leads_to(&project), Some(project.context.program.clone()), "{what:?}");
        assert!(project.has_no_records(), "{what:?}");
        let message = plan.notes.iter().find(|message| message.contains(" stays: ")).expect("it is said");
        assert!(message.contains("tenure-bash"), "{message}");
        assert_eq!(project.uninstall(what).notes, Vec::<String>::new(), "{what:?}");
    }
}

#[test]
fn without_seccomp_no_agent_gets_the_shell() {
    for what in [CLAUDE, OPENCODE] {
        let mut project = TestProject::new();
        project.install(what);
        project.context.interception_unavailable = Some("EPERM".to_owned());
        let plan = project.install(what);
        assert_eq!(covers_shells(&plan), [InterceptionMechanism::Audit], "{what:?}");
        let message = plan.notes.iter().find(|message| message.contains("(EPERM)")).expect("it is said");
        assert!(message.contains("their own shell"), "{message}");
        assert!(
            !plan.notes.iter().any(|message| message.contains("run in Tenure's bash")),
            "{:?}",
            plan.notes
        );
        let file = if what == CLAUDE { SETTINGS } else { ".opencode/plugins/tenure.js" };
        assert!(!project.read(file).contains("tenure-bash"), "{what:?}");
        assert_eq!(project.install(what).changes, [], "{what:?}");
        project.context.interception_unavailable = None;
        project.install(what);
        assert!(project.read(file).contains("tenure-bash"), "{what:?}");
        project.uninstall(what);
        assert!(!project.context.root.join(file).exists(), "{what:?}");
    }
}

#[test]
fn a_login_shell_other_than_bash_is_reported() {
    for (shell, is_warned) in [(Some("/bin/bash"), false), (Some("/usr/bin/zsh"), true), (None, false)] {
        let mut project = TestProject::new();
        project.context.login_shell = shell.map(PathBuf::from);
        let notes = project.install(CLAUDE).notes;
        assert_eq!(notes.iter().any(|message| message.contains("Your own shell is")), is_warned, "{notes:?}");
    }
}

#[test]
fn a_shell_configured_in_opencode_is_respected() {
    let project = TestProject::new();
    let home = project.context.user_folders.folder(CodingAgent::OpenCode).unwrap();
    fs::create_dir_all(&home).unwrap();
    for path in [project.context.root.join("opencode.json"), home.join("opencode.json")] {
        fs::write(&path, "{\"shell\": \"/bin/zsh\"}").unwrap();
        let plan = project.install(OPENCODE);
        assert_eq!(covers_shells(&plan), [InterceptionMechanism::Guard, InterceptionMechanism::Audit]);
        let by = format!("(`shell` in {})", path.display());
        assert!(plan.notes.iter().any(|message| message.contains(&by)), "{:?}", plan.notes);
        fs::write(&path, "{ // mine\n\"shell\": \"/bin/zsh\"}").unwrap();
        let plan = project.install(OPENCODE);
        assert!(plan.notes.iter().any(|message| message.contains("cannot be read")), "{:?}", plan.notes);
        fs::write(&path, "{ // mine\n\"share\": \"disabled\"}").unwrap();
        assert_eq!(configured_shell(CodingAgent::OpenCode, &project.context), ConfiguredShell::Unset);
    }
    assert_eq!(covers_shells(&project.install(OPENCODE)), [InterceptionMechanism::Shim]);
}

#[test]
fn a_missing_or_wrong_shell_link_is_repaired() {
    let mut project = TestProject::new();
    project.install(CLAUDE);
    fs::remove_file(shell(&project)).unwrap();
    let plan = project.install(CLAUDE);
    assert!(matches!(plan.changes.as_slice(), [PlannedChange::Link { .. }]), "{:?}", plan.changes);
    assert_eq!(project.install(CLAUDE).changes, []);
    project.context.program = "/new/tenure".into();
    project.install(OPENCODE);
    assert_eq!(leads_to(&project), Some("/new/tenure".into()));
    assert_eq!(
        fs::read_dir(shell(&project).parent().unwrap()).unwrap().count(),
        1,
        "nothing is left beside it"
    );
}

#[test]
fn installing_fails_if_a_foreign_file_has_the_shell_path() {
    let project = TestProject::new();
    let path = shell(&project);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "mine").unwrap();
    let before = project.snapshot();
    assert!(matches!(plan_install(CLAUDE, &project.context), Err(InstallError::Taken { .. })));
    assert_eq!(project.snapshot(), before);
    assert_eq!(plan_uninstall(CLAUDE, &project.context).unwrap().changes, []);
    assert_eq!(fs::read_to_string(path).unwrap(), "mine");
}

#[test]
fn applying_a_plan_fails_if_the_link_changed_meanwhile() {
    let project = TestProject::new();
    let plan = plan_install(CLAUDE, &project.context).unwrap();
    fs::create_dir_all(shell(&project).parent().unwrap()).unwrap();
    symlink("/other/tenure", shell(&project)).unwrap();
    assert!(matches!(apply_plan(&plan), Err(InstallError::Changed { .. })));
    assert!(!project.context.root.join(SETTINGS).exists());
}

/// A project whose person chose a shell, and where that is said to be.
fn check_user_shell(
    choose: impl Fn(&mut InstallContext, &dyn Fn(&Path)),
    scope: InstallScope,
) -> (TestProject, String) {
    let mut project = TestProject::new();
    project.context.scope = scope;
    let write = |path: &Path| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "{\"env\": {\"CLAUDE_CODE_SHELL\": \"/bin/zsh\"}}").unwrap();
    };
    choose(&mut project.context, &write);
    let before = project.snapshot();
    let plan = project.install(CLAUDE);
    assert_eq!(covers_shells(&plan), [InterceptionMechanism::Guard, InterceptionMechanism::Audit]);
    assert_eq!(leads_to(&project), None);
    assert_eq!(project.install(CLAUDE).changes, []);
    let message =
        plan.notes.iter().find(|message| message.contains("chosen a shell")).expect("a note").clone();
    assert!(message.contains("`tenure guard -- claude`"), "{message}");
    project.uninstall(CLAUDE);
    assert_eq!(project.snapshot(), before);
    (project, message)
}

fn of_person(place: &InstallContext) -> PathBuf {
    place.user_folders.folder(CodingAgent::Claude).unwrap().join("settings.json")
}

#[test]
fn a_shell_set_by_the_user_is_respected_in_every_settings_file() {
    let (project, message) =
        check_user_shell(|place, write| write(&place.root.join(SETTINGS)), InstallScope::Project);
    assert!(message.contains(SETTINGS), "{message}");
    assert_eq!(env(&project), json!({"CLAUDE_CODE_SHELL": "/bin/zsh"}));
    let (_, message) = check_user_shell(|place, write| write(&of_person(place)), InstallScope::Project);
    assert!(message.contains("home/.claude/settings.json"), "{message}");
    let local = ".claude/settings.local.json";
    let (_, message) = check_user_shell(|place, write| write(&place.root.join(local)), InstallScope::Project);
    assert!(message.contains(local), "{message}");
    check_user_shell(|place, write| write(&place.root.join(SETTINGS)), InstallScope::Local);
    check_user_shell(|place, write| write(&of_person(place)), InstallScope::User);
    let (_, message) =
        check_user_shell(|place, _| place.chosen_shell = Some("/bin/zsh".into()), InstallScope::Project);
    assert!(message.contains("your environment"), "{message}");
}

#[test]
fn a_shell_set_by_the_user_later_replaces_the_installed_one() {
    let mut project = TestProject::new();
    project.install(CLAUDE);
    let ours = shell(&project);
    // What runs in our shell, or has no shell at all, chose none.
    for none in [ours.clone(), PathBuf::new()] {
        project.context.chosen_shell = Some(none);
        assert_eq!(project.install(CLAUDE).changes, []);
    }
    project.context.chosen_shell = Some("/bin/zsh".into());
    project.install(CLAUDE);
    assert_eq!(env(&project), Value::Null);
    project.context.chosen_shell = None;
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
fn malformed_env_settings_are_not_modified() {
    for strange in ["{\"env\": []}", "{\"env\": 7}", "{\"env\": {}, \"env\": {}}"] {
        let project = TestProject::new();
        project.write(SETTINGS, strange);
        let plan = project.install(CLAUDE);
        assert_eq!(
            covers_shells(&plan),
            [InterceptionMechanism::Guard, InterceptionMechanism::Audit],
            "{strange}"
        );
        project.uninstall(CLAUDE);
        assert_eq!(project.read(SETTINGS), strange);
    }
}

#[test]
fn an_unprintable_state_folder_is_rejected_with_a_hint() {
    let mut project = TestProject::new();
    project.context.backups = project.context.backups.join("a\nb");
    for what in [CLAUDE, OPENCODE] {
        let refused = plan_install(what, &project.context).unwrap_err();
        assert!(matches!(refused, InstallError::State { .. }), "{refused}");
        assert!(refused.to_string().contains("XDG_STATE_HOME"), "{refused}");
    }
    assert!(plan_install(InstallTarget::Agent(CodingAgent::Codex), &project.context).is_ok());
}
