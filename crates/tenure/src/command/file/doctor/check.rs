//! Checks of the doctor, and how each is shown.

use serde::Serialize;

use crate::output::Table;
use crate::terminal_message::wrap_paragraph;

/// How it stands with one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckStatus {
    /// It was tried, and does what it should.
    Ok,
    /// Changes of files get past it.
    Gap,
    /// Nobody put it in place, so nobody relies on it.
    NotInstalled,
    Unknown,
}

impl CheckStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            CheckStatus::Ok => "ok",
            CheckStatus::Gap => "gap",
            CheckStatus::NotInstalled => "not installed",
            CheckStatus::Unknown => "not known",
        }
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What: words with dots between them, from the large to the small. It stays the same.
    pub name: String,
    pub status: CheckStatus,
    /// What was seen; for a gap also what that means.
    pub detail: String,
    /// The one thing to do that helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Check {
    pub fn ok(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { name: name.into(), status: CheckStatus::Ok, detail: detail.into(), fix: None }
    }

    /// Something gets past it; this helps.
    pub fn gap(name: impl Into<String>, detail: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { name: name.into(), status: CheckStatus::Gap, detail: detail.into(), fix: Some(fix.into()) }
    }

    pub fn not_installed(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { name: name.into(), status: CheckStatus::NotInstalled, detail: detail.into(), fix: None }
    }

    /// It could not be tried, for this reason.
    pub fn unknown(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { name: name.into(), status: CheckStatus::Unknown, detail: detail.into(), fix: None }
    }

    /// The same, with what to do about it.
    pub fn with_fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    pub fn is_gap(&self) -> bool {
        self.status == CheckStatus::Gap
    }
}

/// One line for each check, under each gap what it means and what helps, and a last line that says how it is.
pub fn text(checks: &[Check]) -> String {
    let shown: Vec<&Check> = checks.iter().filter(|check| is_shown(checks, check)).collect();
    let mut table = Table::with_header(&["CHECK", "STATUS", "DETAIL"]);
    for check in &shown {
        let detail = if says_more(check) { "" } else { &check.detail };
        table.row([title(check), check.status.as_str().to_owned(), detail.to_owned()]);
    }
    let table = table.to_string();
    let mut lines = table.lines();
    let mut text = String::new();
    text.extend(lines.next().map(|heads| format!("{heads}\n")));
    for (line, check) in lines.zip(&shown) {
        text.push_str(&format!("{line}\n"));
        if says_more(check) {
            text.push_str(&wrap_paragraph("    ", &plain(&check.detail), "    "));
        }
        text.extend(check.fix.iter().map(|fix| wrap_paragraph("    -> ", &plain(fix), "       ")));
    }
    text.push_str(&format!("\n{}\n", sum(checks)));
    text
}

/// What does not fit beside the others stands below.
fn says_more(check: &Check) -> bool {
    check.status == CheckStatus::Gap || check.status == CheckStatus::Unknown
}

/// Where an agent has nothing in place, one line says it, and not one for each scope.
fn is_shown(all: &[Check], check: &Check) -> bool {
    let Some((agent, "hooks")) = scoped(check) else { return true };
    let same = |other: &&Check| scoped(other).is_some_and(|(name, last)| name == agent && last == "hooks");
    let mut hooks = all.iter().filter(same);
    if check.status != CheckStatus::NotInstalled {
        return true;
    }
    let is_first = hooks.clone().next() == Some(check);
    is_first && hooks.all(|other| other.status == CheckStatus::NotInstalled)
}

/// The agent and the last word of `agent.scope.what`.
fn scoped(check: &Check) -> Option<(&str, &str)> {
    let mut words = check.name.split('.');
    let (agent, _, last) = (words.next()?, words.next()?, words.next()?);
    Some((agent, last))
}

fn title(check: &Check) -> String {
    match (check.status, scoped(check)) {
        (CheckStatus::NotInstalled, Some((agent, _))) => agent.to_owned(),
        _ => check.name.replace('.', " "),
    }
}

fn sum(checks: &[Check]) -> String {
    let count = |status| checks.iter().filter(|check| check.status == status).count();
    let unknown = match count(CheckStatus::Unknown) {
        0 => String::new(),
        1 => " One thing could not be tried.".to_owned(),
        more => format!(" {more} things could not be tried."),
    };
    match count(CheckStatus::Gap) {
        0 => format!("No gap was found.{unknown}"),
        1 => format!("One gap.{unknown}"),
        more => format!("{more} gaps.{unknown}"),
    }
}

/// Nothing that others wrote steers a terminal.
fn plain(text: &str) -> String {
    text.replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_show_meaning_and_fix_and_uninstalled_agents_take_one_line() {
        let checks = [
            Check::ok("server", "answers on /run/x"),
            Check::not_installed("codex.project.hooks", "nothing of Tenure"),
            Check::not_installed("codex.user.hooks", "nothing of Tenure"),
            Check::not_installed("claude.project.hooks", "nothing of Tenure"),
            Check::gap("claude.user.hooks", "the program is\x1b[2J gone", "tenure install claude --user"),
            Check::unknown("codex.trust", "it cannot be asked").with_fix("start `codex`, open `/hooks`"),
        ];
        let expected = "\
CHECK              STATUS         DETAIL
server             ok             answers on /run/x
codex              not installed  nothing of Tenure
claude user hooks  gap
    the program is [2J gone
    -> tenure install claude --user
codex trust        not known
    it cannot be asked
    -> start `codex`, open `/hooks`

One gap. One thing could not be tried.
";
        assert_eq!(text(&checks), expected);
    }

    #[test]
    fn summary_says_that_no_gap_was_found() {
        assert!(text(&[Check::ok("server", "x")]).ends_with("\nNo gap was found.\n"));
    }
}
