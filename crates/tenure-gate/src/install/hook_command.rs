//! The command that a hook runs, and how it is known again.

use std::path::{Path, PathBuf};

use super::InstallError;

/// `PROGRAM hook NAME`, quoted for a shell.
pub fn hook_command(program: &Path, hook_name: &str) -> Result<String, InstallError> {
    Ok(format!("{} hook {hook_name}", shell_quote(program)?))
}

/// The same command behind a shell that says no in its place if the program is gone, for an agent that would go on.
///
/// It names `sh`: whose shell an agent takes for its hooks is not known. Nothing stays between the agent and the program.
pub fn guarded_command(command: &str, hook_name: &str) -> String {
    let program = command.strip_suffix(&format!(" hook {hook_name}")).unwrap_or(command);
    format!("{}{program}", guard_prefix(hook_name))
}

fn guard_prefix(hook_name: &str) -> String {
    format!(
        "sh -c '[ -x \"$0\" ] || {{ echo \"Nothing was changed: $0 is gone, so nobody can say whether another agent is \
         editing this. Ask the person to run: tenure install {hook_name}\" >&2; exit 2; }}; \
         exec \"$0\" hook {hook_name}' "
    )
}

/// The program as one word of a shell.
pub fn shell_quote(program: &Path) -> Result<String, InstallError> {
    let path = program_path(program)?;
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+@%=:,".contains(letter);
    if path.chars().all(is_plain) {
        return Ok(path.to_owned());
    }
    Ok(format!("'{}'", path.replace('\'', r"'\''")))
}

pub fn program_path(program: &Path) -> Result<&str, InstallError> {
    let path = program.to_str().ok_or(InstallError::Program)?;
    if !program.is_absolute() || path.chars().any(char::is_control) {
        return Err(InstallError::Program);
    }
    Ok(path)
}

/// Whether we wrote this command: it is the one that is known, or that of a `tenure` somewhere else.
///
/// Other tools have a `hook` of their own; theirs stay.
pub fn is_own_command(command: &str, known: &[String], hook_name: &str) -> bool {
    let plain = without_guard(command, hook_name);
    if known.contains(&plain) {
        return true;
    }
    program_of(command, hook_name)
        .is_some_and(|program| program.file_name().is_some_and(|name| name == "tenure"))
}

/// The program that such a command runs. Nothing, if the command is not of that form.
pub fn program_of(command: &str, hook_name: &str) -> Option<PathBuf> {
    let plain = without_guard(command, hook_name);
    shell_unquote(plain.strip_suffix(&format!(" hook {hook_name}"))?)
}

/// The path in one word of a shell, as [`shell_quote`] writes it.
pub fn shell_unquote(word: &str) -> Option<PathBuf> {
    match word.strip_prefix('\'').and_then(|content| content.strip_suffix('\'')) {
        Some(content) => Some(content.replace(r"'\''", "'").into()),
        None if word.contains([' ', '\'', '"', '\\', ';', '|', '&']) => None,
        None => Some(word.into()),
    }
}

fn without_guard(command: &str, hook_name: &str) -> String {
    let program = command.strip_prefix(&guard_prefix(hook_name));
    program.map_or_else(|| command.to_owned(), |program| format!("{program} hook {hook_name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_path_is_quoted_as_one_shell_word() {
        for program in ["/usr/bin/tenure", "/with space/tenure", "/it's/$(here)/`x`/tenure", "/ü/*/tenure"] {
            let command = hook_command(Path::new(program), "claude").unwrap();
            let script = format!("printf '%s\\n' {command}");
            let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{program}\nhook\nclaude\n"));
            assert!(is_own_command(&command, &[], "claude"), "{command}");
            assert!(!is_own_command(&command, &[], "codex"));
            assert_eq!(program_of(&command, "claude").as_deref(), Some(Path::new(program)));
            assert_eq!(
                program_of(&guarded_command(&command, "claude"), "claude").as_deref(),
                Some(Path::new(program))
            );
        }
        for program in ["tenure", "/a\nb/tenure", ""] {
            assert!(matches!(hook_command(Path::new(program), "claude"), Err(InstallError::Program)));
        }
    }

    // S4-15
    #[test]
    fn a_guarded_command_blocks_with_a_reason_if_the_program_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("it's `a` $(b)/tenure");
        let command = guarded_command(&hook_command(&program, "codex").unwrap(), "codex");
        assert!(
            is_own_command(&command, &[], "codex") && !is_own_command(&command, &[], "claude"),
            "{command}"
        );
        let run = || std::process::Command::new("sh").args(["-c", &command]).output().unwrap();
        let output = run();
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), b"".as_slice()));
        assert!(String::from_utf8(output.stderr).unwrap().contains("tenure install codex"));
        std::fs::create_dir(program.parent().unwrap()).unwrap();
        std::fs::write(&program, "#!/bin/sh\necho \"$@\"\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&program, mode).unwrap();
        let output = run();
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), b"hook codex\n".as_slice()));
        let renamed = guarded_command("/build/tenure-1 hook codex", "codex");
        assert!(!is_own_command(&renamed, &[], "codex"));
        assert!(is_own_command(&renamed, &["/build/tenure-1 hook codex".to_owned()], "codex"));
    }

    #[test]
    fn commands_of_other_programs_are_not_taken_for_own() {
        for command in [
            "/usr/bin/other hook claude",
            "tenure-like hook claude",
            "echo; /usr/bin/tenure hook claude",
            "x /usr/bin/tenure hook claude",
            "/usr/bin/tenure hook claude --more",
            "/usr/bin/tenure",
        ] {
            assert!(!is_own_command(command, &[], "claude"), "{command}");
        }
        assert!(is_own_command(
            "/build/tenure-1 hook claude",
            &["/build/tenure-1 hook claude".to_owned()],
            "claude"
        ));
    }
}
