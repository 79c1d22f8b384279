//! The command that a hook runs, and how it is known again.

use std::path::Path;

use super::InstallError;

/// `PROGRAM hook WHO`, quoted for a shell.
pub fn hook_command(program: &Path, who: &str) -> Result<String, InstallError> {
    Ok(format!("{} hook {who}", quoted(program)?))
}

/// The program as one word of a shell.
pub fn quoted(program: &Path) -> Result<String, InstallError> {
    let path = named(program)?;
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+@%=:,".contains(letter);
    if path.chars().all(is_plain) {
        return Ok(path.to_owned());
    }
    Ok(format!("'{}'", path.replace('\'', r"'\''")))
}

/// The program's path as text.
pub fn named(program: &Path) -> Result<&str, InstallError> {
    let path = program.to_str().ok_or(InstallError::Program)?;
    if !program.is_absolute() || path.chars().any(char::is_control) {
        return Err(InstallError::Program);
    }
    Ok(path)
}

/// Whether we wrote this command: it is the one that is known, or that of a `tenure` somewhere else.
///
/// Other tools have a `hook` of their own; theirs stay.
pub fn is_ours(command: &str, known: &[String], who: &str) -> bool {
    if known.iter().any(|known| known == command) {
        return true;
    }
    let Some(program) = command.strip_suffix(&format!(" hook {who}")) else { return false };
    let program = match program.strip_prefix('\'').and_then(|inner| inner.strip_suffix('\'')) {
        Some(inner) => inner.replace(r"'\''", "'"),
        None if program.contains([' ', '\'', '"', '\\', ';', '|', '&']) => return false,
        None => program.to_owned(),
    };
    Path::new(&program).file_name().is_some_and(|name| name == "tenure")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_one_word_and_two_more_for_any_shell() {
        for program in ["/usr/bin/tenure", "/with space/tenure", "/it's/$(here)/`x`/tenure", "/ü/*/tenure"] {
            let command = hook_command(Path::new(program), "claude").unwrap();
            let script = format!("printf '%s\\n' {command}");
            let said = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(said.stdout).unwrap(), format!("{program}\nhook\nclaude\n"));
            assert!(is_ours(&command, &[], "claude"), "{command}");
            assert!(!is_ours(&command, &[], "codex"));
        }
        for program in ["tenure", "/a\nb/tenure", ""] {
            assert!(matches!(hook_command(Path::new(program), "claude"), Err(InstallError::Program)));
        }
    }

    #[test]
    fn the_commands_of_others_are_theirs() {
        for command in [
            "/usr/bin/other hook claude",
            "tenure-like hook claude",
            "echo; /usr/bin/tenure hook claude",
            "x /usr/bin/tenure hook claude",
            "/usr/bin/tenure hook claude --more",
            "/usr/bin/tenure",
        ] {
            assert!(!is_ours(command, &[], "claude"), "{command}");
        }
        assert!(is_ours(
            "/build/tenure-1 hook claude",
            &["/build/tenure-1 hook claude".to_owned()],
            "claude"
        ));
    }
}
