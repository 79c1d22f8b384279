//! What was installed is found again, with what is wrong about it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use tenure_hooks::install::{
    InstallScope, InstallTarget, UnreadableSettings, UserFolders, git_hook_status, install_status,
    plan_install,
};
use tenure_host::coding_agent::CodingAgent;

use crate::git_support::Repository;
use crate::install::support::TestProject;

#[test]
fn install_status_reports_the_program_of_every_agent() {
    for agent in CodingAgent::ALL {
        let mut project = TestProject::new();
        let before = install_status(agent, &project.context).unwrap();
        assert!(before.programs.is_empty() && before.hooks.is_empty() && !before.is_complete, "{agent}");
        project.install(InstallTarget::Agent(agent));
        let found = install_status(agent, &project.context).unwrap();
        assert_eq!(
            (found.programs.as_slice(), found.is_complete),
            (&[project.context.program.clone()][..], true)
        );
        assert_eq!(found.hooks.is_empty(), agent == CodingAgent::OpenCode, "a plugin has no commands");
        // Somebody else asks, who is another program: what is there is what counts.
        let first = std::mem::replace(&mut project.context.program, "/elsewhere/tenure".into());
        let found = install_status(agent, &project.context).unwrap();
        assert_eq!((found.programs.as_slice(), found.is_complete), (&[first][..], true), "{agent}");
        project.uninstall(InstallTarget::Agent(agent));
        assert!(install_status(agent, &project.context).unwrap().programs.is_empty(), "{agent}");
    }
}

#[test]
fn install_status_reports_missing_events_and_switches() {
    let project = TestProject::new();
    project.install(InstallTarget::Agent(CodingAgent::Claude));
    let text = project.read(".claude/settings.json");
    project.write(".claude/settings.json", text.replace("\"SessionEnd\"", "\"Elsewhen\""));
    let found = install_status(CodingAgent::Claude, &project.context).unwrap();
    assert!(!found.is_complete && found.command("SessionEnd").is_none());
    assert!(found.command("PreToolUse").is_some_and(|command| command.ends_with(" hook claude")));
    project.write(".claude/settings.json", text.replacen('{', "{\"disableAllHooks\": true,", 1));
    assert_eq!(
        install_status(CodingAgent::Claude, &project.context).unwrap().switches,
        [("disableAllHooks", true)]
    );
    project.write(".claude/settings.json", "{ not JSON");
    let found = install_status(CodingAgent::Claude, &project.context).unwrap();
    assert!(found.programs.is_empty() && found.unreadable.is_none(), "nothing of ours is in it: {found:?}");
}

#[test]
fn install_status_reports_unreadable_settings_with_own_hooks() {
    let project = TestProject::new();
    project.install(InstallTarget::Agent(CodingAgent::Gemini));
    let text = project.read(".gemini/settings.json");
    let unreadable = || install_status(CodingAgent::Gemini, &project.context).unwrap().unreadable;
    assert_eq!(unreadable(), None);
    project.write(".gemini/settings.json", format!("\n// mine\n{text}"));
    assert_eq!(unreadable(), Some(UnreadableSettings::Comments { line: 2 }));
    let refused =
        plan_install(InstallTarget::Agent(CodingAgent::Gemini), &project.context).unwrap_err().to_string();
    assert!(refused.contains("cannot be read: it has comments (line 2)"), "{refused}");
    project.write(".gemini/settings.json", text.replacen('{', "{,", 1));
    assert_eq!(unreadable(), Some(UnreadableSettings::NotJson { line: 1 }));
}

#[test]
fn install_status_reports_hooks_disabled_by_name_in_gemini() {
    let project = TestProject::new();
    project.install(InstallTarget::Agent(CodingAgent::Gemini));
    let text = project.read(".gemini/settings.json");
    let switches = |more: &str| {
        project.write(".gemini/settings.json", text.replacen('{', &format!("{{{more},"), 1));
        install_status(CodingAgent::Gemini, &project.context).unwrap().switches
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
    let found = install_status(CodingAgent::Gemini, &project.context).unwrap();
    assert_eq!((found.switches.as_slice(), found.is_complete), (&[("hooks.disabled", true)][..], true));
}

#[test]
fn install_status_is_complete_regardless_of_the_shell() {
    let mut project = TestProject::new();
    project.install(InstallTarget::Agent(CodingAgent::Claude));
    project.context.chosen_shell = Some("/bin/zsh".into());
    assert!(install_status(CodingAgent::Claude, &project.context).unwrap().is_complete);
    fs::remove_dir_all(project.context.backups.join("bin")).unwrap();
    assert!(install_status(CodingAgent::Claude, &project.context).unwrap().is_complete);
}

#[test]
fn user_hooks_are_installed_in_the_configured_agent_folder() {
    for (agent, variable, file) in [
        (CodingAgent::Claude, "CLAUDE_CONFIG_DIR", "settings.json"),
        (CodingAgent::Codex, "CODEX_HOME", "hooks.json"),
        (CodingAgent::OpenCode, "XDG_CONFIG_HOME", "opencode/plugins/tenure.js"),
    ] {
        let mut project = TestProject::new();
        let folder = project.context.root.join("else where");
        project.context.scope = InstallScope::User;
        let variables = |name: &str| match name {
            "HOME" => Some("/nowhere".into()),
            name => (name == variable).then(|| folder.clone().into()),
        };
        project.context.user_folders = UserFolders::new(variables);
        project.install(InstallTarget::Agent(agent));
        assert!(folder.join(file).exists(), "{agent}");
        assert_eq!(install_status(agent, &project.context).unwrap().path, folder.join(file));
        project.uninstall(InstallTarget::Agent(agent));
        assert!(!folder.exists(), "{agent}");
    }
}

#[test]
fn git_hook_status_follows_core_hooks_path() {
    let repository = Repository::new();
    let project = TestProject::at_root(&repository.root);
    assert_eq!(git_hook_status(&project.context).unwrap().missing.len(), 3);
    project.install(InstallTarget::Git);
    let found = git_hook_status(&project.context).unwrap();
    assert!(found.is_complete && found.missing.is_empty());
    let program = Some(project.context.program.clone());
    assert!(found.installed.iter().all(|hook| hook.is_executable && hook.program == program), "{found:?}");
    fs::set_permissions(&found.installed[0].path, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(!git_hook_status(&project.context).unwrap().installed[0].is_executable);
    repository.git(&["config", "core.hooksPath", "elsewhere"]);
    let found = git_hook_status(&project.context).unwrap();
    assert!(found.installed.is_empty() && found.missing.len() == 3 && !found.is_complete);
}
