//! Whether Codex trusts our hooks: those that it does not trust it never runs, and says nothing.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};
use tenure_client::boot_microseconds as now;
use tenure_guard::end_with_descendants;

use super::agent_hooks::AgentHooks;
use super::check::Check;

const NAME: &str = "codex.trust";
const TRUST_FIX: &str = "start `codex`, open `/hooks`, and trust those of Tenure";
/// How long Codex may take to answer, in microseconds.
const TIMEOUT_MICROSECONDS: u64 = 8_000_000;
/// Which of its answers is the list.
const LIST_REQUEST_ID: u64 = 2;

/// Asks Codex itself, if its hooks are installed. It is only asked, and nothing is trusted in the person's place.
pub fn check(codex: &AgentHooks, folder: &Path) -> Option<Check> {
    let commands: Vec<&str> = codex
        .installed()
        .flat_map(|(_, found)| found.hooks.iter().map(|(_, command)| command.as_str()))
        .collect();
    if commands.is_empty() {
        return None;
    }
    Some(match list(folder) {
        Ok(listed) => judged(&listed, &commands),
        Err(why) => Check::unknown(
            NAME,
            format!("Codex cannot be asked ({why}); hooks that it does not trust never run, and nothing is printed"),
        )
        .with_fix(TRUST_FIX),
    })
}

/// What the list means for these commands.
fn judged(listed: &Value, commands: &[&str]) -> Check {
    let mut hooks = Vec::new();
    collect(listed, &mut hooks);
    let text =
        |hook: &Value, name: &str| hook.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    hooks.retain(|hook| commands.contains(&&*text(hook, "command")));
    if hooks.is_empty() {
        let what = "Codex does not list them, so it does not run them: this folder is not trusted, or `features.hooks` is off";
        let fix = "start `codex` here, trust the folder and its `/hooks`, and see that `features.hooks` is on in its config.toml";
        return Check::gap(NAME, what, fix);
    }
    let off = hooks.iter().filter(|hook| hook.get("enabled") == Some(&Value::Bool(false)));
    let off: Vec<String> = off.map(|hook| text(hook, "eventName")).collect();
    if !off.is_empty() {
        let what = format!(
            "{} of {} hooks are switched off in Codex, and never run ({})",
            off.len(),
            hooks.len(),
            off.join(", ")
        );
        return Check::gap(NAME, what, "start `codex`, open `/hooks`, and switch those of Tenure on");
    }
    let is_trusted = |hook: &&&Value| matches!(&*text(hook, "trustStatus"), "trusted" | "managed");
    let trusted = hooks.iter().filter(is_trusted).count();
    if trusted == hooks.len() {
        return Check::ok(NAME, format!("all {trusted} of them are trusted"));
    }
    let other = hooks.iter().find(|hook| !is_trusted(hook));
    let (event, status) =
        other.map(|hook| (text(hook, "eventName"), text(hook, "trustStatus"))).unwrap_or_default();
    let what = format!(
        "{} of {} hooks are not trusted, and never run ({event} is {status})",
        hooks.len() - trusted,
        hooks.len()
    );
    Check::gap(NAME, what, TRUST_FIX)
}

/// All hooks in the answer, wherever they stand in it.
fn collect<'a>(value: &'a Value, hooks: &mut Vec<&'a Value>) {
    match value {
        Value::Object(members) if members.contains_key("trustStatus") => hooks.push(value),
        Value::Object(members) => members.values().for_each(|value| collect(value, hooks)),
        Value::Array(items) => items.iter().for_each(|value| collect(value, hooks)),
        _ => {}
    }
}

/// What `codex app-server` lists for this folder.
fn list(folder: &Path) -> Result<Value, String> {
    let mut command = Command::new("codex");
    command.arg("app-server").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut process = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => "there is no `codex` in PATH".to_owned(),
        _ => error.to_string(),
    })?;
    let answer = ask(&mut process, folder);
    end_with_descendants(vec![process.id()]);
    let _ = process.wait();
    answer
}

fn ask(process: &mut Child, folder: &Path) -> Result<Value, String> {
    let mut input = process.stdin.take().ok_or("it does not listen")?;
    let output = process.stdout.take().ok_or("it says nothing")?;
    let (sender, lines) = channel();
    let read = move || {
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        lines
            .filter_map(|line| serde_json::from_str::<Value>(&line).ok())
            .all(|value| sender.send(value).is_ok())
    };
    std::thread::Builder::new().spawn(read).map_err(|error| error.to_string())?;
    let version = env!("CARGO_PKG_VERSION");
    let client = json!({"clientInfo": {"name": "tenure-doctor", "version": version}});
    let mut say = |line: Value| writeln!(input, "{line}").map_err(|error| error.to_string());
    let until = now() + TIMEOUT_MICROSECONDS;
    say(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}))?;
    answer(&lines, 1, until)?;
    say(json!({"jsonrpc": "2.0", "method": "initialized"}))?;
    say(
        json!({"jsonrpc": "2.0", "id": LIST_REQUEST_ID, "method": "hooks/list", "params": {"cwds": [folder]}}),
    )?;
    answer(&lines, LIST_REQUEST_ID, until)
}

fn answer(lines: &Receiver<Value>, id: u64, until: u64) -> Result<Value, String> {
    loop {
        let remaining = Duration::from_micros(until.saturating_sub(now()));
        let line = lines.recv_timeout(remaining).map_err(|_| "it does not answer".to_owned())?;
        if line.get("id").and_then(Value::as_u64) != Some(id) {
            continue;
        }
        if let Some(result) = line.get("result") {
            return Ok(result.clone());
        }
        let why = line.pointer("/error/message").and_then(Value::as_str).unwrap_or("it refuses to say");
        return Err(why.chars().filter(|letter| !letter.is_control()).take(200).collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::file::doctor::check::CheckStatus;

    #[test]
    fn untrusted_codex_hooks_are_a_gap_and_foreign_hooks_are_ignored() {
        let hook = |command: &str, status: &str| json!({"eventName": "preToolUse", "command": command, "trustStatus": status});
        let judge = |hooks: Vec<Value>| judged(&json!({"data": [{"cwd": "/x", "hooks": hooks}]}), &["ours"]);
        assert_eq!(judge(vec![hook("ours", "trusted"), hook("theirs", "untrusted")]).status, CheckStatus::Ok);
        let gap = judge(vec![hook("ours", "trusted"), hook("ours", "modified")]);
        assert_eq!(gap.status, CheckStatus::Gap);
        assert_eq!(gap.detail, "1 of 2 hooks are not trusted, and never run (preToolUse is modified)");
        assert_eq!(
            judge(vec![hook("ours", "")]).status,
            CheckStatus::Gap,
            "what is not understood is not trusted"
        );
        assert_eq!(judge(vec![hook("theirs", "trusted")]).status, CheckStatus::Gap, "not listed is not run");
    }

    #[test]
    fn trusted_hook_that_is_switched_off_is_a_gap() {
        let hook = |is_on: bool| json!({"eventName": "preToolUse", "command": "ours", "trustStatus": "trusted", "enabled": is_on});
        assert_eq!(judged(&json!([hook(true)]), &["ours"]).status, CheckStatus::Ok);
        let gap = judged(&json!([hook(true), hook(false)]), &["ours"]);
        assert_eq!(gap.status, CheckStatus::Gap);
        assert_eq!(gap.detail, "1 of 2 hooks are switched off in Codex, and never run (preToolUse)");
        let gap = judged(&json!([]), &["ours"]);
        assert!(gap.status == CheckStatus::Gap && gap.detail.contains("`features.hooks` is off"), "{gap:?}");
    }
}
