//! The plugin for OpenCode: its file, and what it does when it runs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use tenure_hooks::install::{InstallError, InstallTarget, plan_install};
use tenure_host::coding_agent::CodingAgent;

use crate::install::support::TestProject;

const PLUGIN: &str = ".opencode/plugins/tenure.js";
/// A program that says nothing for a long time.
const NEVER: &str = "exec sleep 600";
const WHAT: InstallTarget = InstallTarget::Agent(CodingAgent::OpenCode);

#[test]
fn installing_fails_if_a_foreign_plugin_file_exists() {
    let project = TestProject::new();
    project.write(PLUGIN, "export const Mine = 1\n");
    assert!(matches!(plan_install(WHAT, &project.context), Err(InstallError::Taken { .. })));
    assert_eq!(project.uninstall(WHAT).changes, []);
    assert_eq!(project.read(PLUGIN), "export const Mine = 1\n");
}

#[test]
fn a_modified_plugin_is_kept_under_another_name() {
    let project = TestProject::new();
    project.install(WHAT);
    let changed = project.read(PLUGIN) + "// mine\n";
    project.write(PLUGIN, &changed);
    project.uninstall(WHAT);
    assert!(!project.context.root.join(PLUGIN).exists());
    assert_eq!(project.read(".opencode/plugins/tenure.js.changed"), changed);
}

#[test]
fn reinstalling_writes_the_new_program_into_the_plugin() {
    let mut project = TestProject::new();
    project.install(WHAT);
    project.context.program = "/new \"quoted\"\\/tenure".into();
    project.install(WHAT);
    assert!(project.read(PLUGIN).contains(r#"const PROGRAM = "/new \"quoted\"\\/tenure""#));
    assert_eq!(project.install(WHAT).changes, []);
}

/// Runs the plugin as OpenCode would, with a `tenure` that is this shell script; says what became of one call.
fn call(tenure: Option<&str>, tool: &str) -> Option<String> {
    if Command::new("node").arg("--version").output().is_err() {
        eprintln!("no `node` here, so the plugin is not run");
        return None;
    }
    let mut project = TestProject::new();
    let program = project.context.root.join("bin dir/tenure");
    project.context.program = program.clone();
    if let Some(script) = tenure {
        project.write(
            "bin dir/tenure",
            format!("#!/bin/sh\ncd '{}'\n{script}\n", project.context.root.display()),
        );
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    project.install(WHAT);
    // A module by its name. One that never answers is not waited for as long as in earnest.
    let patience = if tenure == Some(NEVER) { "300" } else { "240_000" };
    project.write("tenure.mjs", project.read(PLUGIN).replace("240_000", patience));
    project.write(
        "call.mjs",
        format!(
            r#"
            import {{ Tenure }} from "./tenure.mjs"
            const client = {{ session: {{ abort: async (what) => console.log("abort", what.path.id) }} }}
            const hooks = await Tenure({{ directory: "/repo", client }})
            const input = {{ tool: "{tool}", sessionID: "ses_1", callID: "call_1" }}
            try {{
                await hooks["tool.execute.before"](input, {{ args: {{ filePath: "a.txt" }} }})
                const output = {{ output: "done" }}
                await hooks["tool.execute.after"]({{ ...input, args: {{}} }}, output)
                console.log("passed:", output.output)
            }} catch (error) {{
                console.log("thrown:", error.message)
            }}
            await hooks.event({{ event: {{ type: "session.idle", properties: {{ sessionID: "ses_1" }} }} }})
            await hooks.event({{ event: {{ type: "message.updated", properties: {{}} }} }})
            "#
        ),
    );
    let run = Command::new("node").arg("call.mjs").current_dir(&project.context.root).output().unwrap();
    let output = String::from_utf8(run.stdout).unwrap() + &String::from_utf8(run.stderr).unwrap();
    let recorded_input = fs::read_to_string(project.context.root.join("heard")).unwrap_or_default();
    Some(output + &recorded_input)
}

#[test]
fn the_plugin_obeys_hook_responses() {
    let Some(output) =
        call(Some("echo \"$@\" >> heard; cat >> heard; echo '{\"decision\":\"allow\"}'"), "edit")
    else {
        return;
    };
    assert!(output.starts_with("passed: done\n"), "{output}");
    let before = r#"{"event":"tool.execute.before","input":{"tool":"edit","sessionID":"ses_1","callID":"call_1"},"output":{"args":{"filePath":"a.txt"}},"directory":"/repo"}"#;
    assert!(output.contains(&format!("hook opencode\n{before}")), "{output}");
    assert!(output.contains(r#"{"event":"tool.execute.after","input":{"#), "{output}");
    assert!(
        output.contains(r#"{"event":"session.idle","input":{"type":"session.idle","properties":{"#),
        "{output}"
    );
    assert!(!output.contains("message.updated"), "{output}");

    let output = call(Some(r#"echo '{"decision":"allow","note":"mind the gap"}'"#), "edit").unwrap();
    assert!(output.starts_with("passed: done\n\nmind the gap\n"), "{output}");
    let output = call(Some(r#"echo '{"decision":"deny","reason":"held by another"}'"#), "edit").unwrap();
    assert!(output.starts_with("thrown: held by another\n"), "{output}");
    let output =
        call(Some(r#"echo '{"decision":"deny","reason":"stop here","stop":true}'"#), "read").unwrap();
    assert!(output.starts_with("abort ses_1\nthrown: stop here\n"), "{output}");
}

// S4-15
#[test]
fn the_plugin_denies_if_tenure_fails() {
    for tenure in [
        None,
        Some("exit 1"),
        Some("echo '{\"decision\":\"allow\"}'; exit 3"),
        Some("kill -SEGV $$"),
        Some("echo hello"),
        Some("echo '{}'"),
        Some("echo '{\"decision\":\"maybe\"}'"),
        Some(NEVER),
        Some("exec yes"),
    ] {
        let Some(output) = call(tenure, "edit") else { return };
        assert!(output.starts_with("thrown: Tenure could not be asked"), "{tenure:?}: {output}");
    }
    for tool in ["write", "bash", "something_new"] {
        assert!(call(None, tool).unwrap().starts_with("thrown: Tenure could not be asked"), "{tool}");
    }
    assert!(call(None, "read").unwrap().starts_with("passed: done"));
}

/// What a command sees of itself when OpenCode runs it, where the person's shell is `shell`.
fn environment(shell: Option<&str>) -> Option<String> {
    if Command::new("node").arg("--version").output().is_err() {
        eprintln!("no `node` here, so the plugin is not run");
        return None;
    }
    let project = TestProject::new();
    project.install(WHAT);
    project.write("tenure.mjs", project.read(PLUGIN));
    project.write(
        "call.mjs",
        r#"
        import { Tenure } from "./tenure.mjs"
        const hooks = await Tenure({ directory: "/repo", client: {} })
        await Tenure({ directory: "/repo", client: {} })
        const output = { env: {} }
        await hooks["shell.env"]({ cwd: "/repo", sessionID: "ses_1", callID: "call_1" }, output)
        const nobodys = { env: {} }
        await hooks["shell.env"]({ cwd: "/repo" }, nobodys)
        console.log(process.env.SHELL, JSON.stringify(output.env), JSON.stringify(nobodys.env))
        "#,
    );
    let mut command = Command::new("node");
    command.arg("call.mjs").current_dir(&project.context.root).env_remove("SHELL");
    command.envs(shell.map(|shell| ("SHELL", shell)));
    let output = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let ours = project.context.backups.join("bin/tenure-bash");
    Some(output.replace(ours.to_str().unwrap(), "OURS"))
}

#[test]
fn commands_run_in_the_agent_shell_and_see_the_users_shell() {
    let Some(output) = environment(Some("/bin/zsh")) else { return };
    let expected = r#"OURS {"TENURE_SESSION":"ses_1","SHELL":"/bin/zsh"} {"SHELL":"/bin/zsh"}"#;
    assert_eq!(output.trim_end(), expected);
    let output = environment(None).unwrap();
    assert_eq!(output.trim_end(), r#"OURS {"TENURE_SESSION":"ses_1"} {}"#);
}
