//! What settings say, as the agents read them.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::json;
use tenure_testkit::{CommandOutput, TestRepository};

use crate::doctor::fixture::{PROGRAM, edit_settings, parse_checks, repository_with, run_doctor};

#[test]
fn hooks_disabled_in_gemini_are_gaps() {
    let repo = repository_with(&["gemini"]);
    assert!(!run_doctor(&repo).gaps().contains(&"gemini.project.hooks"));
    // Lists of several files add up, also where the nearer file says something else.
    let (home, project) = (repo.path(".gemini/settings.json"), repo.file(".gemini/settings.json"));
    edit_settings(&home, |settings| settings["hooksConfig"] = json!({"disabled": ["tenure"]}));
    edit_settings(&project, |settings| settings["hooksConfig"] = json!({"enabled": true}));
    let found = run_doctor(&repo);
    assert_eq!(found.status("gemini.project.hooks"), "gap");
    assert!(found.detail("gemini.project.hooks").contains("`hooksConfig.disabled`"), "{:?}", found.1);
    fs::remove_file(&home).unwrap();
    let root = fs::canonicalize(repo.file("")).unwrap();
    let trust = repo.path(".gemini/trustedFolders.json");
    edit_settings(&trust, |rules| rules[root.to_str().unwrap()] = json!("DO_NOT_TRUST"));
    let found = run_doctor(&repo);
    assert_eq!(found.status("gemini.trust"), "gap", "{:?}", found.1);
    fs::write(&trust, "{ // mine\n}").unwrap();
    assert_eq!(run_doctor(&repo).status("gemini.trust"), "unknown");
}

#[test]
fn settings_with_comments_are_unknown_and_not_a_gap() {
    let repo = repository_with(&["gemini"]);
    let path = repo.file(".gemini/settings.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("// mine\n{text}")).unwrap();
    let found = run_doctor(&repo);
    assert_eq!(found.status("gemini.project.hooks"), "unknown");
    assert!(found.detail("gemini.project.hooks").contains("it has comments (line 1)"), "{:?}", found.1);
    let result = repo.run(&["install", "gemini"]);
    assert!(result.code == Some(1) && result.errors.contains("take the comments out"), "{result:?}");
}

#[test]
fn user_hooks_are_installed_where_the_agent_looks_for_them() {
    let repo = TestRepository::new();
    let run = |arguments: &[&str]| {
        let mut command = repo.command(arguments);
        command.env("CLAUDE_CONFIG_DIR", repo.path("else")).env("CODEX_HOME", repo.path("codex"));
        CommandOutput::from_output(command.output().unwrap())
    };
    for agent in ["claude", "codex"] {
        assert_eq!(run(&["install", agent, "--user"]).code, Some(0));
    }
    assert!(repo.path("else/settings.json").exists() && repo.path("codex/hooks.json").exists());
    assert!(!repo.path(".claude").exists() && !repo.path(".codex").exists());
    let found = parse_checks(run(&["doctor", "--json"]));
    assert_eq!(
        (found.status("claude.user.hooks"), found.status("codex.user.hooks")),
        ("ok", "ok"),
        "{:?}",
        found.1
    );
    assert_eq!(
        run_doctor(&repo).status("claude.user.hooks"),
        "not_installed",
        "who looks elsewhere finds none"
    );
    let result = run(&["uninstall", "claude"]);
    assert_eq!(
        result.output,
        "Nothing to do: there are no hooks of Tenure in this project; your user settings have them: add --user.\n"
    );
    let result = run(&["uninstall", "claude", "--user", "--json"]);
    assert!(result.output.contains("\"changes\":[\"remove "), "{result:?}");
    assert!(!repo.path("else/settings.json").exists());
}

#[test]
fn missing_agent_shell_is_a_gap_and_reinstalling_restores_it() {
    let repo = repository_with(&["claude"]);
    let output = repo.command(&["doctor", "--json"]).env("CLAUDE_CODE_SHELL", "/bin/zsh").output().unwrap();
    let found = parse_checks(CommandOutput::from_output(output));
    assert_eq!(found.gaps(), Vec::<&str>::new(), "{:?}", found.1);
    fs::remove_dir_all(repo.path(".local/state/tenure-installed/bin")).unwrap();
    let found = run_doctor(&repo);
    assert_eq!(found.gaps(), ["claude.shell"], "{:?}", found.1);
    assert_eq!(found.find("claude.shell")["fix"], "tenure install claude");
    assert_eq!(repo.run(&["install", "claude"]).code, Some(0));
    assert_eq!(run_doctor(&repo).gaps(), Vec::<&str>::new());
}

#[test]
fn shell_in_the_opencode_configuration_is_a_gap() {
    let repo = repository_with(&["opencode"]);
    assert_eq!(run_doctor(&repo).status("opencode.shell"), "ok");
    fs::write(repo.file("opencode.json"), "{\"shell\": \"/bin/zsh\"}").unwrap();
    let found = run_doctor(&repo);
    assert_eq!(found.status("opencode.shell"), "gap");
    assert!(found.detail("opencode.shell").contains("`shell` in "), "{:?}", found.1);
    let result = repo.run(&["install", "opencode"]);
    assert!(result.output.contains("You have chosen a shell yourself"), "{result:?}");
    fs::write(repo.file("opencode.json"), "{ // mine\n\"shell\": \"/bin/zsh\"}").unwrap();
    assert_eq!(run_doctor(&repo).status("opencode.shell"), "unknown");
}

#[test]
fn working_copy_of_the_program_is_no_gap() {
    let repo = TestRepository::new();
    let copy = repo.path("opt/tenure");
    fs::create_dir(repo.path("opt")).unwrap();
    assert!(Command::new("cp").arg(PROGRAM).arg(&copy).status().unwrap().success());
    // Other bytes, and as good.
    fs::OpenOptions::new().append(true).open(&copy).unwrap().write_all(b"more").unwrap();
    let mut command = Command::new(&copy);
    let environment = repo.command(&[]);
    command.env_clear().envs(environment.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let result = CommandOutput::from_output(
        command.current_dir(repo.file("")).args(["install", "claude"]).output().unwrap(),
    );
    assert_eq!(result.code, Some(0), "{result:?}");
    let found = run_doctor(&repo);
    assert_eq!(found.gaps(), Vec::<&str>::new(), "{:?}", found.1);
    assert!(found.detail("claude.project.hooks").contains("another program"), "{:?}", found.1);
}

#[test]
fn hooks_name_the_link_by_which_the_program_was_called() {
    let repo = TestRepository::new();
    let link = repo.path("bin/tenure");
    fs::create_dir(repo.path("bin")).unwrap();
    symlink(PROGRAM, &link).unwrap();
    let path = format!("{}:/usr/bin:/bin", repo.path("bin").display());
    for (line, agent) in
        [("tenure install codex", "codex/hooks"), ("../bin/tenure install gemini", "gemini/settings")]
    {
        let result =
            CommandOutput::from_output(repo.shell_command(line).env("PATH", &path).output().unwrap());
        assert_eq!(result.code, Some(0), "{result:?}");
        let text = fs::read_to_string(repo.file(&format!(".{agent}.json"))).unwrap();
        // One that is not absolute leads elsewhere from elsewhere.
        let named = if agent.starts_with("codex") { link.to_str().unwrap() } else { PROGRAM };
        assert!(text.contains(named), "{text}");
    }
}

#[test]
fn agent_hooks_are_installed_without_git_hooks_and_the_effect_is_reported() {
    let repo = TestRepository::new();
    assert_eq!(repo.shell("git config core.hooksPath /dev/null").code, Some(0));
    let found = run_doctor(&repo);
    assert_eq!((found.gaps(), found.status("git.hooks")), (vec![], "not_installed"), "{:?}", found.1);
    let result = repo.run(&["install", "claude"]);
    assert_eq!(result.code, Some(0), "{result:?}");
    assert!(
        result.output.contains("The hooks of git are not in place") && result.output.contains("30 s"),
        "{result:?}"
    );
    let found = run_doctor(&repo);
    assert_eq!(found.gaps(), ["git.hooks"], "{:?}", found.1);
    assert!(found.find("git.hooks")["fix"].as_str().unwrap().contains("core.hooksPath"), "{:?}", found.1);
    assert_eq!(repo.run(&["install", "git"]).code, Some(1));
}

#[test]
fn partial_installation_is_reported_with_the_command_to_undo_it() {
    let repo = TestRepository::new();
    // Nobody can make a folder there, root neither; that is seen when it is tried.
    assert_eq!(repo.shell("git config core.hooksPath /proc/hooks").code, Some(0));
    let result = repo.run(&["install", "claude"]);
    assert_eq!(result.code, Some(1), "{result:?}");
    assert!(
        result.errors.starts_with("tenure: only a part was done: ")
            && !result.errors.contains("stay as they are"),
        "{result:?}"
    );
    assert!(result.errors.contains(".claude/settings.json"), "{result:?}");
    let help = "`tenure uninstall claude` takes it out again, `tenure uninstall git` the hooks of git.\n";
    assert!(result.errors.ends_with(help), "{result:?}");
    assert_eq!(result.errors.matches("os error").count(), 1, "{result:?}");
    assert_eq!(repo.run(&["uninstall", "claude"]).code, Some(0));
    assert!(!repo.file(".claude").exists());
}
