//! Commands on held files: give, force-release and blame.

use std::path::PathBuf;

use clap::Args;
use tenure_api::{Blame as Blamed, BlamedLine, FileForceReleaseRequest, FileGiveRequest};

use super::files::view;
use super::path_argument::absolute_path;
use crate::client::with_local_client;
use crate::failure::Failure;
use crate::output::Format;

/// Hands a file to another session of an agent: to one that waits for it, or to any that lives.
///
/// Whoever had it loses it at once, and is told when it next wants to change the file. `tenure files` shows the sessions. Only
/// for people: it is refused to whatever an agent started. The ledger keeps who did it.
///
/// Example: tenure give src/main.rs --to 7f3a
#[derive(Debug, Args)]
pub struct Give {
    /// Which file
    path: PathBuf,
    /// To which session: its name, or enough of its beginning
    #[arg(long, value_name = "SESSION")]
    to: String,
    #[command(flatten)]
    format: Format,
}

impl Give {
    /// Hands it over.
    pub fn run(self) -> Result<(), Failure> {
        let request = FileGiveRequest { path: absolute_path(&self.path)?, to: self.to };
        let file = with_local_client(async |client| client.give_file(&request).await)?;
        self.format.print(&file, |file| {
            let text = format!("{} has {} now.", view::format_owner(&file.owner), file.path);
            text.replace(char::is_control, " ") + "\n"
        })
    }
}

/// Takes a file from the agent that has it, so that anybody may have it.
///
/// What that agent has written stays as it is; it is told when it next wants to change the file. Only for people: it is
/// refused to whatever an agent started. The ledger keeps who did it, and why.
///
/// Example: tenure force-release src/main.rs --reason "it hangs"
#[derive(Debug, Args)]
pub struct ForceRelease {
    /// Which file
    path: PathBuf,
    /// Why, for people; it stands in the ledger
    #[arg(long, value_name = "TEXT", default_value = "by hand")]
    reason: String,
    #[command(flatten)]
    format: Format,
}

impl ForceRelease {
    /// Takes it.
    pub fn run(self) -> Result<(), Failure> {
        let force = FileForceReleaseRequest { path: absolute_path(&self.path)?, reason: self.reason };
        let file = with_local_client(async |client| client.force_release_file(&force).await)?;
        self.format.print(&file, |file| {
            let text = format!("{} was taken from {}.", file.path, view::format_owner(&file.owner));
            text.replace(char::is_control, " ") + "\n"
        })
    }
}

/// The most letters of a session that stand before a line.
const SESSION: usize = 12;

/// Shows which agent session wrote the lines of a file that are not committed yet.
///
/// Before each line stands who wrote it: an agent and the beginning of its session, `committed` for a line that is in HEAD,
/// or `?` where nobody was seen writing it (a person, or a program that Tenure does not gate).
///
/// Example: tenure blame src/main.rs
#[derive(Debug, Args)]
pub struct Blame {
    /// Which file
    path: PathBuf,
    #[command(flatten)]
    format: Format,
}

impl Blame {
    /// Asks and prints.
    pub fn run(self) -> Result<(), Failure> {
        let path = absolute_path(&self.path)?;
        let blamed = with_local_client(async |client| client.blame(&path).await)?;
        self.format.print(&blamed, text)
    }
}

fn text(blamed: &Blamed) -> String {
    let writers: Vec<String> = blamed.lines.iter().map(writer).collect();
    let width = writers.iter().map(|writer| writer.chars().count()).max().unwrap_or(0);
    let digits = blamed.lines.last().map_or(1, |line| line.number.to_string().len());
    let lines = blamed.lines.iter().zip(writers).map(|(line, writer)| {
        let content = line.text.replace('\t', "    ").replace(char::is_control, " ");
        format!("{writer:<width$}  {:>digits$}  {content}", line.number).trim_end().to_owned() + "\n"
    });
    lines.collect()
}

fn writer(line: &BlamedLine) -> String {
    match (line.by.as_str(), &line.agent, &line.session) {
        ("session", Some(agent), Some(session)) => {
            let session: String = session.chars().take(SESSION).collect();
            format!("{agent} {session}").replace(char::is_control, " ")
        }
        ("committed", ..) => "committed".to_owned(),
        _ => "?".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blame_prefixes_each_line_with_its_writer() {
        let line = |number, by: &str, session: Option<&str>| BlamedLine {
            number,
            text: format!("line\t{number}\x1b"),
            by: by.to_owned(),
            agent: session.map(|_| "claude".to_owned()),
            session: session.map(str::to_owned),
            at: None,
        };
        let lines = vec![
            line(9, "committed", None),
            line(10, "session", Some("0123456789abcdef")),
            line(11, "unknown", None),
        ];
        let blamed = Blamed { path: "a".to_owned(), owner: None, lines };
        let expected = "\
committed             9  line    9
claude 0123456789ab  10  line    10
?                    11  line    11
";
        assert_eq!(text(&blamed), expected);
    }
}
