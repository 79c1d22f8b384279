//! What was installed is found again, with what is wrong about it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use tenure_gate::agent::Agent;
use tenure_gate::install::{Person, Scope, Unreadable, What, git_hooks, installed, plan_install};

use crate::git_support::Repository;
use crate::install_support::Project;

#[test]
fn install_status_reports_the_program_of_every_agent() {
    for agent in Agent::ALL {
        let mut project = Project::new();
        let before = installed(agent, &project.place).unwrap();
        assert!(before.programs.is_empty() && before.hooks.is_empty() && !before.is_complete, "{agent}");
        project.install(What::Agent(agent));
        let found = installed(agent, &project.place).unwrap();
        assert_eq!(
            (found.programs.as_slice(), found.is_complete),
            (&[project.place.program.clone()][..], true)
        );
        assert_eq!(found.hooks.is_empty(), agent == Agent::OpenCode, "a plugin has no commands");
        // Somebody else asks, who is another program: what is there is what counts.
        let first = std::mem::replace(&mut project.place.program, "/elsewhere/tenure".into());
        let found = installed(agent, &project.place).unwrap();
        assert_eq!((found.programs.as_slice(), found.is_complete), (&[first][..], true), "{agent}");
        project.uninstall(What::Agent(agent));
        assert!(installed(agent, &project.place).unwrap().programs.is_empty(), "{agent}");
    }
}

#[test]
fn install_status_reports_missing_events_and_switches() {
    let project = Project::new();
    project.install(What::Agent(Agent::Claude));
    let text = project.read(".claude/settings.json");
    project.write(".claude/settings.json", text.replace("\"SessionEnd\"", "\"Elsewhen\""));
    let found = installed(Agent::Claude, &project.place).unwrap();
    assert!(!found.is_complete && found.command("SessionEnd").is_none());
    assert!(found.command("PreToolUse").is_some_and(|command| command.ends_with(" hook claude")));
    project.write(".claude/settings.json", text.replacen('{', "{\"disableAllHooks\": true,", 1));
    assert_eq!(installed(Agent::Claude, &project.place).unwrap().switches, [("disableAllHooks", true)]);
    project.write(".claude/settings.json", "{ not JSON");
    let found = installed(Agent::Claude, &project.place).unwrap();
    assert!(found.programs.is_empty() && found.unreadable.is_none(), "nothing of ours is in it: {found:?}");
}

#[test]
fn install_status_reports_unreadable_settings_with_own_hooks() {
    let project = Project::new();
    project.install(What::Agent(Agent::Gemini));
    let text = project.read(".gemini/settings.json");
    let unreadable = || installed(Agent::Gemini, &project.place).unwrap().unreadable;
    assert_eq!(unreadable(), None);
    project.write(".gemini/settings.json", format!("\n// mine\n{text}"));
    assert_eq!(unreadable(), Some(Unreadable::Comments { line: 2 }));
    let refused = plan_install(What::Agent(Agent::Gemini), &project.place).unwrap_err().to_string();
    assert!(refused.contains("cannot be read: it has comments (line 2)"), "{refused}");
    project.write(".gemini/settings.json", text.replacen('{', "{,", 1));
    assert_eq!(unreadable(), Some(Unreadable::NotJson { line: 1 }));
}

#[test]
fn install_status_reports_hooks_disabled_by_name_in_gemini() {
    let project = Project::new();
    project.install(What::Agent(Agent::Gemini));
    let text = project.read(".gemini/settings.json");
    let switches = |more: &str| {
        project.write(".gemini/settings.json", text.replacen('{', &format!("{{{more},"), 1));
        installed(Agent::Gemini, &project.place).unwrap().switches
    };
    assert_eq!(
        switches(r#""hooksConfig": {"disabled": ["other", "tenure"]}"#),
        [("hooksConfig.disabled", true)]
    );
    assert_eq!(switches(r#""hooksConfig": {"disabled": ["other"]}"#), []);
    project.write(
        ".gemini/settings.json",
        text.replacen("\"hooks\": {", "\"hooks\": {\"disabled\": [\"tenure\"],", 1),
    );
    let found = installed(Agent::Gemini, &project.place).unwrap();
    assert_eq!((found.switches.as_slice(), found.is_complete), (&[("hooks.disabled", true)][..], true));
}

#[test]
fn install_status_is_complete_regardless_of_the_shell() {
    let mut project = Project::new();
    project.install(What::Agent(Agent::Claude));
    project.place.chosen_shell = Some("/bin/zsh".into());
    assert!(installed(Agent::Claude, &project.place).unwrap().is_complete);
    fs::remove_dir_all(project.place.backups.join("bin")).unwrap();
    assert!(installed(Agent::Claude, &project.place).unwrap().is_complete);
}

#[test]
fn user_hooks_are_installed_in_the_configured_agent_folder() {
    for (agent, variable, file) in [
        (Agent::Claude, "CLAUDE_CONFIG_DIR", "settings.json"),
        (Agent::Codex, "CODEX_HOME", "hooks.json"),
        (Agent::OpenCode, "XDG_CONFIG_HOME", "opencode/plugins/tenure.js"),
    ] {
        let mut project = Project::new();
        let folder = project.place.root.join("else where");
        project.place.scope = Scope::User;
        let said = |name: &str| match name {
            "HOME" => Some("/nowhere".into()),
            name => (name == variable).then(|| folder.clone().into()),
        };
        project.place.person = Person::new(said);
        project.install(What::Agent(agent));
        assert!(folder.join(file).exists(), "{agent}");
        assert_eq!(installed(agent, &project.place).unwrap().path, folder.join(file));
        project.uninstall(What::Agent(agent));
        assert!(!folder.exists(), "{agent}");
    }
}

#[test]
fn git_hook_status_follows_core_hooks_path() {
    let repository = Repository::new();
    let project = Project::at(&repository.root);
    assert_eq!(git_hooks(&project.place).unwrap().missing.len(), 3);
    project.install(What::Git);
    let found = git_hooks(&project.place).unwrap();
    assert!(found.is_complete && found.missing.is_empty());
    let program = Some(project.place.program.clone());
    assert!(found.ours.iter().all(|hook| hook.is_executable && hook.program == program), "{found:?}");
    fs::set_permissions(&found.ours[0].path, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(!git_hooks(&project.place).unwrap().ours[0].is_executable);
    repository.git(&["config", "core.hooksPath", "elsewhere"]);
    let found = git_hooks(&project.place).unwrap();
    assert!(found.ours.is_empty() && found.missing.len() == 3 && !found.is_complete);
}
