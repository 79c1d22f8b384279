//! `tenure blame`.

use std::path::PathBuf;

use clap::Args;
use tenure_api::{Blame as Blamed, BlamedLine};

use super::path::absolute;
use crate::failure::Failure;
use crate::output::Format;
use crate::server::ask_here;

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
        let path = absolute(&self.path)?;
        let blamed = ask_here(async |client| client.blame(&path).await)?;
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
    fn before_each_line_stands_who_wrote_it() {
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
