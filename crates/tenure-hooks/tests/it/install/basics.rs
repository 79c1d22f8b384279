//! Hooks in the settings of agents: what is there stays, what we add is known, and all of it comes out exactly.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};
use tenure_hooks::install::{
    InstallContext, InstallError, InstallScope, InstallTarget, PlannedChange, apply_plan, plan_install,
    plan_uninstall,
};
use tenure_hooks::interception_coverage::InterceptionMechanism;
use tenure_host::coding_agent::CodingAgent;

use crate::install::support::TestProject;

/// Agents with a settings file, and the file.
const SETTINGS: [(CodingAgent, &str); 4] = [
    (CodingAgent::Claude, ".claude/settings.json"),
    (CodingAgent::Codex, ".codex/hooks.json"),
    (CodingAgent::Gemini, ".gemini/settings.json"),
    (CodingAgent::Cursor, ".cursor/hooks.json"),
];

/// Settings as people have them.
const CORPUS: [&str; 16] = [
    "{}",
    "{}\n",
    "{ }",
    "{\n}\n",
    "",
    "\n",
    "{\"model\":\"x\"}",
    "{ \"model\": \"x\", \"n\": 1e3 }",
    "{\n  \"model\": \"x\",\n  \"hooks\": {}\n}\n",
    "{\n    \"hooks\": {\n        \"PreToolUse\": [],\n        \"Stop\": []\n    },\n    \"after\": [1, 2.50, -0]\n}",
    "{\r\n\t\"permissions\": {\"allow\": [\"Bash(git *)\"]},\r\n\t\"env\": {\"A\": \"\\u00e9\\ud83d\\ude00\"}\r\n}\r\n",
    "{\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\"matcher\": \"Bash\", \"hooks\": [{\"type\": \"command\", \"command\": \"lint\"}]}\n    ],\n    \"preToolUse\": [{\"command\": \"./check.sh\"}],\n    \"BeforeTool\": [ {\"hooks\": [ {\"type\":\"command\",\"command\":\"other hook gemini\"} ]} ]\n  },\n  \"version\": 1\n}\n",
    "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"other hook claude\"}]}]}}",
    "\n\n  {\n  \"z\" : null ,\n\n\n  \"a\" : { \"hooks\" : [ ] }\n  }  \n\n",
    "{\n \"one\": true\n}\n",
    "{\"version\": 7}",
];

// S4-1, S4-10, S4-16, S4-62
#[test]
fn uninstalling_restores_settings_byte_by_byte() {
    for (agent, path) in SETTINGS {
        for original in CORPUS {
            let project = TestProject::new();
            project.write(path, original);
            let before = project.snapshot();
            project.install(InstallTarget::Agent(agent));
            let installed = project.read(path);
            assert!(installed.contains(&format!("hook {agent}")), "{agent}: {original:?}");
            assert!(serde_json::from_str::<Value>(&installed).is_ok(), "{agent}: {installed}");
            assert_eq!(project.install(InstallTarget::Agent(agent)).changes, [], "{agent}: the second time");
            assert_eq!(project.read(path), installed);
            project.uninstall(InstallTarget::Agent(agent));
            assert_eq!(project.snapshot(), before, "{agent}: {original:?}");
            assert!(project.has_no_records());
            assert_eq!(project.uninstall(InstallTarget::Agent(agent)).changes, []);
        }
    }
}

#[test]
fn uninstalling_removes_created_files_and_folders() {
    for agent in CodingAgent::ALL {
        let project = TestProject::new();
        let before = project.snapshot();
        let plan = project.install(InstallTarget::Agent(agent));
        assert!(plan.changes.iter().any(|change| matches!(change, PlannedChange::MakeFolder { .. })));
        assert!(!plan.notes.is_empty());
        assert_eq!(project.install(InstallTarget::Agent(agent)).changes, []);
        project.uninstall(InstallTarget::Agent(agent));
        assert_eq!(project.snapshot(), before, "{agent}");
        assert!(project.has_no_records());
    }
}

#[test]
fn a_shared_folder_is_removed_with_the_last_file() {
    for order in [[InstallScope::Project, InstallScope::Local], [InstallScope::Local, InstallScope::Project]]
    {
        let project = TestProject::new();
        let before = project.snapshot();
        let local = InstallContext { scope: order[1], ..project.context.clone() };
        let first = InstallContext { scope: order[0], ..project.context.clone() };
        let what = InstallTarget::Agent(CodingAgent::Claude);
        for place in [&first, &local] {
            apply_plan(&plan_install(what, place).unwrap()).unwrap();
        }
        assert!(project.context.root.join(".claude/settings.local.json").exists());
        for place in [&first, &local] {
            apply_plan(&plan_uninstall(what, place).unwrap()).unwrap();
        }
        assert_eq!(project.snapshot(), before);
    }
}

/// What others have is not touched when only ours is taken out of a file that changed meanwhile.
#[test]
fn uninstalling_keeps_later_changes() {
    for (agent, path) in SETTINGS {
        for original in CORPUS {
            let project = TestProject::new();
            project.write(path, original);
            project.install(InstallTarget::Agent(agent));
            // The person adds a key at the front, by hand.
            let installed = project.read(path);
            let comma = if installed.trim() == "{}" { "" } else { "," };
            let changed = installed.replacen('{', &format!("{{\"mine\": [\"x\"]{comma}"), 1);
            project.write(path, &changed);
            assert_eq!(project.install(InstallTarget::Agent(agent)).changes, [], "{agent}: still complete");
            project.uninstall(InstallTarget::Agent(agent));
            let remaining: Value = serde_json::from_str(&project.read(path)).unwrap();
            let mut expected: Value = serde_json::from_str(original.trim()).unwrap_or_else(|_| json!({}));
            expected["mine"] = json!(["x"]);
            assert_eq!(remaining, expected, "{agent}: {original:?}");
            assert!(project.has_no_records());
        }
    }
}

#[test]
fn uninstalling_keeps_hooks_of_other_tools() {
    let project = TestProject::new();
    let path = ".claude/settings.json";
    project.install(InstallTarget::Agent(CodingAgent::Claude));
    let mut settings: Value = serde_json::from_str(&project.read(path)).unwrap();
    let theirs = json!({"type": "command", "command": "theirs"});
    settings["hooks"]["PreToolUse"][0]["hooks"].as_array_mut().unwrap().insert(0, theirs.clone());
    settings["hooks"]["Stop"].as_array_mut().unwrap().insert(0, json!({"hooks": [theirs]}));
    settings["hooks"]["Notification"] = json!([{"hooks": [theirs]}]);
    project.write(path, settings.to_string());
    project.uninstall(InstallTarget::Agent(CodingAgent::Claude));
    let remaining: Value = serde_json::from_str(&project.read(path)).unwrap();
    let group = json!([{"hooks": [theirs]}]);
    let expected = json!({"hooks": {
        "PreToolUse": [{"matcher": "*", "hooks": [theirs]}], "Stop": group, "Notification": group,
    }});
    assert_eq!(remaining, expected);
}

#[test]
fn reinstalling_replaces_the_program_path() {
    for (agent, path) in SETTINGS {
        let mut project = TestProject::new();
        project.write(path, "{\n  \"model\": \"x\"\n}\n");
        let before = project.snapshot();
        project.context.program = "/old/build/tenure-0.1".into();
        project.install(InstallTarget::Agent(agent));
        project.context.program = "/new/tenure".into();
        project.install(InstallTarget::Agent(agent));
        let settings = project.read(path);
        assert!(settings.contains("/new/tenure hook") && !settings.contains("/old/"), "{settings}");
        assert_eq!(project.install(InstallTarget::Agent(agent)).changes, []);
        project.uninstall(InstallTarget::Agent(agent));
        assert_eq!(project.snapshot(), before);
    }
}

#[test]
fn invalid_settings_are_rejected_with_line_and_column_and_not_modified() {
    for (agent, path) in SETTINGS {
        for (content, place) in [
            (b"{\n  \"a\": 1,\n}\n".as_slice(), "not JSON (line 3, column 1)"),
            (b"{\n  // a comment\n}\n", "it has comments (line 2)"),
            (b"{\"secret\": \"s3cr3t\"", "line 1, column 19"),
            (b"{\"a\": \"\xff\"}", "line 1, column 8"),
        ] {
            let project = TestProject::new();
            project.write(path, content);
            let before = project.snapshot();
            let refused = plan_install(InstallTarget::Agent(agent), &project.context).unwrap_err();
            assert!(refused.to_string().contains(place), "{refused}");
            assert!(!refused.to_string().contains("s3cr3t"));
            assert!(plan_uninstall(InstallTarget::Agent(agent), &project.context).is_err());
            assert_eq!(project.snapshot(), before);
            assert!(project.has_no_records());
        }
        for strange in [
            "[]",
            "7",
            "{\"hooks\": []}",
            "{\"hooks\": {}, \"hooks\": {}}",
            "{\"hooks\": {\"x\": [], \"x\": []}}",
        ] {
            let project = TestProject::new();
            project.write(path, strange);
            let refused = plan_install(InstallTarget::Agent(agent), &project.context);
            assert!(matches!(refused, Err(InstallError::UnexpectedShape { .. })), "{strange}: {refused:?}");
        }
    }
    let project = TestProject::new();
    project.write(".claude/settings.json", "{\"hooks\": {\"Stop\": {}}}");
    let refused = plan_install(InstallTarget::Agent(CodingAgent::Claude), &project.context).unwrap_err();
    assert!(refused.to_string().contains("`hooks.Stop` is no array"), "{refused}");
}

#[test]
fn symlinks_and_file_modes_are_preserved() {
    let project = TestProject::new();
    let what = InstallTarget::Agent(CodingAgent::Gemini);
    project.write("dotfiles/gemini.json", "{\n  \"a\": 1\n}\n");
    let target = project.context.root.join("dotfiles/gemini.json");
    fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).unwrap();
    fs::create_dir(project.context.root.join(".gemini")).unwrap();
    symlink("../dotfiles/gemini.json", project.context.root.join(".gemini/settings.json")).unwrap();
    let before = project.snapshot();
    project.install(what);
    assert!(project.context.root.join(".gemini/settings.json").symlink_metadata().unwrap().is_symlink());
    assert!(project.read("dotfiles/gemini.json").contains("hook gemini"));
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o7777, 0o600);
    project.uninstall(what);
    assert_eq!(project.snapshot(), before);

    // A link to where nothing is yet.
    fs::remove_file(&target).unwrap();
    let before = project.snapshot();
    project.install(what);
    assert!(target.exists());
    project.uninstall(what);
    assert_eq!(project.snapshot(), before);
}

#[test]
fn backups_are_readable_by_the_owner_only() {
    let project = TestProject::new();
    project.write(".claude/settings.json", "{\"env\": {\"KEY\": \"s3cr3t\"}}");
    project.install(InstallTarget::Agent(CodingAgent::Claude));
    let kept: Vec<_> =
        fs::read_dir(&project.context.backups).unwrap().map(|entry| entry.unwrap().path()).collect();
    let kept: Vec<_> = kept.into_iter().filter(|path| path.is_file()).collect();
    assert_eq!(kept.len(), 2);
    for path in kept {
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o077, 0);
    }
}

#[test]
fn each_install_target_is_parsed_by_name() {
    for agent in CodingAgent::ALL {
        assert_eq!(agent.as_str().parse(), Ok(InstallTarget::Agent(agent)));
    }
    assert_eq!("git".parse(), Ok(InstallTarget::Git));
    let unknown = "svn".parse::<InstallTarget>().unwrap_err();
    assert!(unknown.contains("`svn`") && unknown.ends_with("opencode, and git"), "{unknown}");
}

#[test]
fn applying_a_plan_fails_if_the_file_changed_meanwhile() {
    let project = TestProject::new();
    project.write(".codex/hooks.json", "{}");
    let plan = plan_install(InstallTarget::Agent(CodingAgent::Codex), &project.context).unwrap();
    project.write(".codex/hooks.json", "{\"theirs\": 1}");
    let before = project.snapshot();
    assert!(matches!(apply_plan(&plan), Err(InstallError::Changed { .. })));
    assert_eq!(project.snapshot(), before);
    assert!(project.has_no_records(), "nothing is written down for what was not done");
}

#[test]
fn an_interrupted_installation_can_be_uninstalled() {
    let project = TestProject::new();
    let path = ".claude/settings.json";
    project.write(path, "{\n  \"a\": 1\n}\n");
    let before = project.snapshot();
    project.install(InstallTarget::Agent(CodingAgent::Claude));
    // Only what is written down first was done.
    project.write(path, "{\n  \"a\": 1\n}\n");
    project.uninstall(InstallTarget::Agent(CodingAgent::Claude));
    assert_eq!(project.snapshot(), before);
    assert!(project.has_no_records());

    // What was written down is lost or damaged: then ours is taken out by what it looks like.
    project.install(InstallTarget::Agent(CodingAgent::Claude));
    for entry in fs::read_dir(&project.context.backups).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::write(path, "damaged").unwrap();
        }
    }
    project.uninstall(InstallTarget::Agent(CodingAgent::Claude));
    assert_eq!(project.snapshot(), before);
}

#[test]
fn a_disk_failure_reports_the_changes_already_made() {
    let project = TestProject::new();
    let plan = plan_install(InstallTarget::Agent(CodingAgent::Claude), &project.context).unwrap();
    // A name that is taken and leads nowhere: there can be no folder.
    std::os::unix::fs::symlink("nowhere", project.context.root.join(".claude")).unwrap();
    let error = apply_plan(&plan).unwrap_err();
    let InstallError::PartiallyApplied { done, .. } = &error else { panic!("{error}") };
    assert!(matches!(done.as_slice(), [link] if link.contains("tenure-bash a link to")), "{error}");
    assert!(std::error::Error::source(&error).is_none(), "it is all said at once");
    assert_eq!(error.to_string().matches("os error").count(), 1, "{error}");
}

#[test]
fn an_unwritable_folder_is_reported() {
    let project = TestProject::new();
    // A file where the folder should be: as good as a file system that cannot be written, also for root.
    project.write(".claude", "a file");
    let plan = plan_install(InstallTarget::Agent(CodingAgent::Claude), &project.context);
    let refused = plan.and_then(|plan| apply_plan(&plan)).unwrap_err();
    assert!(matches!(refused, InstallError::Disk { .. }), "{refused}");
    assert_eq!(project.read(".claude"), "a file");
}

#[test]
fn each_agent_gets_its_hook_entries() {
    let project = TestProject::new();
    for (agent, _) in SETTINGS {
        project.install(InstallTarget::Agent(agent));
    }
    let read = |path: &str| serde_json::from_str::<Value>(&project.read(path)).unwrap()["hooks"].clone();
    let command = |agent: CodingAgent| format!("'/opt/with space/tenure' hook {agent}");

    let claude = read(".claude/settings.json");
    let before = json!([{"matcher": "*", "hooks": [{
        "type": "command", "command": command(CodingAgent::Claude), "timeout": 240, "onFailure": "block",
    }]}]);
    assert_eq!(claude["PreToolUse"], before);
    for event in [
        "PostToolUse",
        "PostToolUseFailure",
        "UserPromptSubmit",
        "SessionStart",
        "Stop",
        "SubagentStart",
        "SubagentStop",
    ] {
        let run = json!([{"type": "command", "command": command(CodingAgent::Claude)}]);
        assert_eq!(claude[event][0]["hooks"], run, "{event}: nothing but the gate may block");
    }

    let farewell = json!([{"type": "command", "command": command(CodingAgent::Claude), "timeout": 10}]);
    assert_eq!(claude["SessionEnd"][0]["hooks"], farewell);

    let codex = read(".codex/hooks.json");
    assert_eq!(codex["SessionEnd"][0]["hooks"][0]["timeout"], 3, "more is refused");
    assert_eq!(codex["PreToolUse"][0]["hooks"][0]["timeout"], 240);
    let gate = codex["PreToolUse"][0]["hooks"][0]["command"].as_str().unwrap();
    assert!(gate.contains("exit 2") && gate.ends_with("'/opt/with space/tenure'"), "{gate}");
    for event in [
        "PostToolUse",
        "UserPromptSubmit",
        "SessionStart",
        "SessionEnd",
        "Stop",
        "SubagentStart",
        "SubagentStop",
    ] {
        assert_eq!(codex[event][0]["hooks"][0]["command"], command(CodingAgent::Codex), "{event}");
    }

    let gemini = read(".gemini/settings.json");
    assert_eq!(gemini["BeforeTool"][0]["hooks"][0]["timeout"], 240_000);
    for event in ["AfterTool", "BeforeAgent", "AfterAgent", "SessionStart", "SessionEnd"] {
        assert_eq!(gemini[event][0]["hooks"][0]["command"], command(CodingAgent::Gemini), "{event}");
    }

    let cursor = read(".cursor/hooks.json");
    let gate = json!([{"command": command(CodingAgent::Cursor), "matcher": "Write|Delete", "timeout": 240, "failClosed": true}]);
    assert_eq!(cursor["preToolUse"], gate);
    for event in ["afterFileEdit", "beforeReadFile", "stop", "sessionStart", "sessionEnd"] {
        assert_eq!(cursor[event], json!([{"command": command(CodingAgent::Cursor)}]), "{event}");
    }
    assert!(project.read(".cursor/hooks.json").starts_with("{\n  \"version\": 1,\n"));

    let notes =
        plan_install(InstallTarget::Agent(CodingAgent::Codex), &project.context).unwrap().notes.join(" ");
    assert!(notes.contains("/hooks") && notes.contains("trust"), "{notes}");
}

#[test]
fn disabled_hooks_are_reported() {
    for (agent, path, settings, is_off) in [
        (CodingAgent::Claude, ".claude/settings.json", r#"{"disableAllHooks": true}"#, true),
        (CodingAgent::Claude, ".claude/settings.json", r#"{"disableAllHooks": false}"#, false),
        (CodingAgent::Gemini, ".gemini/settings.json", r#"{"hooksConfig": {"enabled": false}}"#, true),
        (CodingAgent::Gemini, ".gemini/settings.json", r#"{"hooksConfig": {"enabled": true}}"#, false),
        (CodingAgent::Gemini, ".gemini/settings.json", r#"{"hooks": {"enabled": false}}"#, true),
        (CodingAgent::Gemini, ".gemini/settings.json", r#"{"tools": {"enableHooks": false}}"#, true),
    ] {
        let project = TestProject::new();
        project.write(path, settings);
        for _ in 0..2 {
            let plan = project.install(InstallTarget::Agent(agent));
            let notes = plan.notes.join(" ");
            assert_eq!(notes.contains("no edit is guarded"), is_off, "{settings}: {notes}");
            assert_eq!(
                plan.coverage[0].mechanisms.contains(&InterceptionMechanism::Hook),
                !is_off,
                "{settings}"
            );
        }
        project.uninstall(InstallTarget::Agent(agent));
        assert_eq!(project.read(path), settings);
    }
}

#[test]
fn user_scope_installs_into_the_home_folder() {
    for (agent, path) in [
        (CodingAgent::Claude, ".claude/settings.json"),
        (CodingAgent::Codex, ".codex/hooks.json"),
        (CodingAgent::Gemini, ".gemini/settings.json"),
        (CodingAgent::Cursor, ".cursor/hooks.json"),
        (CodingAgent::OpenCode, ".config/opencode/plugins/tenure.js"),
    ] {
        let mut project = TestProject::new();
        project.context.scope = InstallScope::User;
        project.install(InstallTarget::Agent(agent));
        let home = project.context.user_folders.home.clone().unwrap();
        assert!(home.join(path).exists(), "{agent}");
        project.context.scope = InstallScope::Local;
        let local = plan_install(InstallTarget::Agent(agent), &project.context);
        assert_eq!(local.is_ok(), agent == CodingAgent::Claude, "{local:?}");
    }
    let mut project = TestProject::new();
    project.context.program = "tenure".into();
    for what in [InstallTarget::Agent(CodingAgent::Claude), InstallTarget::Agent(CodingAgent::OpenCode)] {
        assert!(matches!(plan_install(what, &project.context), Err(InstallError::Program)));
    }
}
