//! What was installed is found again, with what is wrong about it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use tenure_gate::agent::Agent;
use tenure_gate::install::{What, git_hooks, installed};

use crate::git_support::Repository;
use crate::install_support::Project;

#[test]
fn every_agents_hooks_are_found_with_the_program_that_they_run() {
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
fn an_event_that_is_missing_and_a_switch_are_found() {
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
    assert!(installed(Agent::Claude, &project.place).unwrap().programs.is_empty());
}

#[test]
fn hooks_of_git_are_found_where_git_looks_and_only_there() {
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
