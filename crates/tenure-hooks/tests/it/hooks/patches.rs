//! Patches of Codex, in its own tool and in shell commands that it carries out itself.

use serde_json::{Value, json};
use tenure_hooks::{HookEvent, PayloadErrorKind};
use tenure_host::coding_agent::CodingAgent;

use super::{before, paths, read_json};

const PATCH: &str = "*** Begin Patch\n*** Update File: f\n@@\n-cd x\n+cd y\n*** End Patch\n";

fn event(command: &Value) -> Result<HookEvent, PayloadErrorKind> {
    let payload = before(CodingAgent::Codex, "Bash", &json!({"command": command}));
    let payload = read_json(CodingAgent::Codex, &payload);
    payload.map(|payload| payload.event).map_err(|unheard| {
        assert!(unheard.is_pre_tool_use());
        unheard.kind().clone()
    })
}

/// `command`, with the patch where `PATCH` stands, changes these files.
fn check(command: &str, names: &[&str]) {
    let command = command.replace("PATCH\n", PATCH);
    let expected = HookEvent::BeforeWrite { paths: paths(names), replaces_content: false };
    assert_eq!(event(&json!(command)), Ok(expected), "{command}");
}

fn unclear(command: &str) {
    let command = command.replace("PATCH\n", PATCH);
    assert_eq!(event(&json!(command)), Err(PayloadErrorKind::UnclearPatch), "{command}");
}

fn nothing(command: &str) {
    assert_eq!(event(&json!(command)), Ok(HookEvent::BeforeToolCall), "{command}");
}

// S4-15: no shell sees these edits, so the hook has to.
#[test]
fn a_patch_in_a_shell_command_is_found() {
    check("apply_patch <<'EOF'\nPATCH\nEOF", &["f"]);
    check("applypatch <<'EOF'\nPATCH\nEOF\n", &["f"]);
    check("apply_patch << \"END OF IT\"\nPATCH\nEND OF IT\n", &["f"]);
    check("apply_patch <<\\EOF\nPATCH\nEOF", &["f"]);
    check("apply_patch <<EOF\nPATCH\nEOF", &["f"]);
    check("apply_patch <<-'EOF'\nPATCH\n\tEOF", &["f"]);
    check("/usr/bin/apply_patch <<'EOF'\nPATCH\nEOF", &["f"]);
    check("LANG=C apply_patch 2>&1 <<'EOF' >/dev/null\nPATCH\nEOF", &["f"]);
    check("apply_patch '*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n*** End Patch'", &["f"]);
    check("apply_patch \"*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n*** End Patch\"", &["f"]);
    check("cat <<'EOF' | apply_patch\nPATCH\nEOF", &["f"]);
    check("apply_patch <<< '*** Begin Patch\n*** Update File: f\n-a\n*** End Patch'", &["f"]);
    check("set -e\n# apply it\napply_patch <<'EOF'\nPATCH\nEOF\ngit status", &["f"]);
    // Cut off: the shell would take what there is.
    check("apply_patch <<'EOF'\nPATCH\n", &["f"]);
}

#[test]
fn several_patches_in_one_command_are_all_found() {
    let second = "*** Begin Patch\n*** Delete File: g\n*** Update File: h\n*** Move to: i/j\n*** End Patch\n";
    check(&format!("apply_patch <<'A'\nPATCH\nA\napply_patch <<'B'\n{second}B\n"), &["f", "g", "h", "i/j"]);
    check(&format!("apply_patch <<'A' && apply_patch <<'B'\nPATCH\nA\n{second}B\n"), &["f", "g", "h", "i/j"]);
}

#[test]
fn patch_paths_are_relative_to_the_folder_of_the_command() {
    check("cd sub && apply_patch <<'EOF'\nPATCH\nEOF", &["sub/f"]);
    check("cd 'a b' && apply_patch <<'EOF'\nPATCH\nEOF", &["a b/f"]);
    check("cd \"a b\" && apply_patch <<'EOF'\nPATCH\nEOF", &["a b/f"]);
    check("cd a && cd ../b && apply_patch <<'EOF'\nPATCH\nEOF", &["a/../b/f"]);
    check("cd /else && apply_patch <<'EOF'\nPATCH\nEOF", &["/else/f"]);
    check("cd -- sub 2>/dev/null && apply_patch <<'EOF'\nPATCH\nEOF", &["sub/f"]);
    check("(cd sub && apply_patch <<'EOF'\nPATCH\nEOF\n)", &["sub/f"]);
    check("(cd sub && make) && apply_patch <<'EOF'\nPATCH\nEOF", &["f"]);
    check("bash -lc 'cd sub && apply_patch <<EOF\nPATCH\nEOF'", &["sub/f"]);
    check("bash <<'X'\ncd sub && apply_patch <<'EOF'\nPATCH\nEOF\nX", &["sub/f"]);
    check("cd sub &&\n\n  apply_patch <<'EOF'\nPATCH\nEOF", &["sub/f"]);
    check("cd sub &&\\\n  apply_patch <<'EOF'\nPATCH\nEOF", &["sub/f"]);
}

#[test]
fn all_possible_files_are_reported_if_the_folder_is_uncertain() {
    check("cd sub; apply_patch <<'EOF'\nPATCH\nEOF", &["sub/f", "f"]);
    check("cd sub & apply_patch <<'EOF'\nPATCH\nEOF", &["sub/f", "f"]);
    check("true ||\ncd sub && apply_patch <<'EOF'\nPATCH\nEOF", &["sub/f", "f"]);
    check("cd sub\napply_patch <<'EOF'\nPATCH\nEOF", &["sub/f", "f"]);
    check("cd sub || exit 1; apply_patch <<'EOF'\nPATCH\nEOF", &["sub/f", "f"]);
    check("make || cd sub && apply_patch <<'EOF'\nPATCH\nEOF", &["sub/f", "f"]);
    check("cd sub && make || apply_patch <<'EOF'\nPATCH\nEOF", &["sub/f", "f"]);
    check("cd a && true; cd b && apply_patch <<'EOF'\nPATCH\nEOF", &["a/b/f", "b/f"]);
}

#[test]
fn patches_with_files_only_the_shell_knows_are_denied() {
    unclear("cd $DIR && apply_patch <<'EOF'\nPATCH\nEOF");
    unclear("cd \"$(git rev-parse --show-toplevel)\" && apply_patch <<'EOF'\nPATCH\nEOF");
    unclear("cd `pwd`/sub && apply_patch <<'EOF'\nPATCH\nEOF");
    unclear("cd && apply_patch <<'EOF'\nPATCH\nEOF");
    unclear("cd - && apply_patch <<'EOF'\nPATCH\nEOF");
    unclear("cd ~/x && apply_patch <<'EOF'\nPATCH\nEOF");
    unclear("cd a\\ b && apply_patch <<'EOF'\nPATCH\nEOF");
    unclear("cd s* && apply_patch <<'EOF'\nPATCH\nEOF");
    unclear("popd && apply_patch <<'EOF'\nPATCH\nEOF");
    unclear("for d in a b; do cd $d; apply_patch <<'EOF'\nPATCH\nEOF\ndone");
    unclear("if true; then cd sub; fi; apply_patch <<'EOF'\nPATCH\nEOF");
    unclear("env -C sub apply_patch <<'EOF'\nPATCH\nEOF");
    unclear("command cd sub && apply_patch <<'EOF'\nPATCH\nEOF");
    unclear("ssh host <<'X'\ncd sub && apply_patch <<'EOF'\nPATCH\nEOF\nX");
    unclear("apply_patch <<EOF\n*** Begin Patch\n*** Delete File: $NAME\n*** End Patch\nEOF");
    unclear("apply_patch \"*** Begin Patch\n*** Delete File: $NAME\n*** End Patch\"");
    unclear("apply_patch < some.patch");
    unclear("cat some.patch | apply_patch");
    unclear("timeout 5 apply_patch some.patch");
    unclear("printf '*** Begin Patch\\n*** Delete File: f\\n*** End Patch\\n' | apply_patch");
    unclear(
        "apply_patch <<'EOF'\nPATCH\nEOF\nprintf '*** Begin Patch\\n*** Delete File: g\\n' | apply_patch",
    );
    unclear("apply_patch \"$(cd sub && apply_patch <<'EOF'\nPATCH\nEOF\n)\"");
    unclear("apply_patch $'*** Begin Patch\\n*** Delete File: f\\n*** End Patch'");
}

#[test]
fn a_dollar_in_a_quoted_patch_is_literal() {
    check(
        "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: $id.tsx\n-a\n*** End Patch\nEOF",
        &["$id.tsx"],
    );
    check("apply_patch '*** Begin Patch\n*** Update File: $id.tsx\n-a\n*** End Patch'", &["$id.tsx"]);
}

#[test]
fn patches_in_nested_commands_are_found() {
    check(
        "apply_patch \"$(cat <<'EOF'\n*** Begin Patch\n*** Update File: f\n-say \"x\"\n*** End Patch\nEOF\n)\"",
        &["f"],
    );
    check("{ apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: f\n-a\n*** End Patch\nEOF\n}", &["f"]);
    check(
        "echo 'unfinished; apply_patch <<EOF\n*** Begin Patch\n*** Update File: f\n-a\n*** End Patch\nEOF",
        &["f"],
    );
}

#[test]
fn mentioning_apply_patch_is_not_a_patch() {
    nothing("grep -rn apply_patch src");
    nothing("which apply_patch; echo applypatch");
    nothing("git log --grep 'apply_patch <<EOF'");
    nothing("# apply_patch <<EOF\nls");
    nothing("cat <<'EOF' > notes.md\n*** Begin Patch\n*** Add File: f\n*** End Patch\nEOF");
}

#[test]
fn pathological_commands_are_handled_in_bounded_time() {
    let patch = format!("apply_patch <<'EOF'\n{PATCH}EOF\n");
    let max = 1024 * 1024 - patch.len();
    for part in
        ["cd a && ", "cd a; ", "(", "cd a || (", "A=1 <<x ", "\"", "bash -c \"", "cd a |\n", "\\\n", "<<x\n"]
    {
        let command = part.repeat(max / part.len()) + &patch;
        let event = event(&json!(command));
        assert!(
            matches!(event, Err(PayloadErrorKind::UnclearPatch) | Ok(HookEvent::BeforeWrite { .. })),
            "{part}: {event:?}"
        );
    }
    assert_eq!(event(&json!(" ".repeat(max + 1) + &patch)), Err(PayloadErrorKind::UnclearPatch));
}

#[test]
fn command_arrays_are_parsed() {
    let heredoc = format!("cd sub && apply_patch <<'EOF'\n{PATCH}EOF");
    let expected = |name: &str| Ok(HookEvent::BeforeWrite { paths: paths(&[name]), replaces_content: false });
    assert_eq!(event(&json!(["bash", "-lc", heredoc])), expected("sub/f"));
    assert_eq!(event(&json!(["apply_patch", PATCH])), expected("f"));
}

#[test]
fn a_patch_without_files_is_denied() {
    for input in [
        json!({}),
        json!({"command": ""}),
        json!({"command": "*** Begin Patch\n*** End Patch"}),
        json!({"command": 7}),
    ] {
        let unheard = read_json(CodingAgent::Codex, &before(CodingAgent::Codex, "apply_patch", &input))
            .expect_err("no file");
        assert_eq!(unheard.kind(), &PayloadErrorKind::EmptyPatch, "{input}");
        assert!(unheard.is_pre_tool_use());
    }
}

#[test]
fn a_patch_that_did_not_apply_is_reported_as_failed() {
    let mut payload = before(CodingAgent::Codex, "apply_patch", &json!({"command": PATCH}));
    payload["hook_event_name"] = json!("PostToolUse");
    for (response, failed) in
        [("Exit code: 0\nOutput:\n", false), ("Exit code: 1\nOutput:\n", true), ("", false)]
    {
        payload["tool_response"] = json!(response);
        let parsed = read_json(CodingAgent::Codex, &payload).expect("a patch");
        assert_eq!(parsed.event, HookEvent::AfterWrite { paths: paths(&["f"]), failed }, "{response}");
    }
}
