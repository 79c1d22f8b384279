//! `tenure files`.

pub mod view;

use std::path::{Path, PathBuf};

use clap::Args;
use tenure_api::{AuditedWorktree, Blame as Blamed, BlamedLine, FileForceReleaseRequest, FileGiveRequest};

use crate::client::with_local_client;
use crate::exit;
use crate::failure::Failure;
use crate::output::{Format, Table, write_json, write_table, write_text};

/// Shows which files coding agents are editing on this machine: who has each, since when, and who waits for it.
///
/// An agent gets a file by itself when it first changes it, and has it until it commits, ends, dies, or is silent for half a
/// minute after its turn. Whoever else wants it meanwhile tries once more after three minutes, and then stops and reports
/// (`tenure report list`).
///
/// FILE is below its working tree; the folder stands before it where there are several. LAST HEARD is when the owner last
/// did anything at all. WAITING says who wants the file, and when the one retry of each is due.
///
/// --audit shows the working trees that are watched for changes that no lease explains, and what of them is not. Such changes are
/// in the ledger (`tenure watch --type file.violated`).
///
/// Example: tenure files
/// Example: tenure files --json
/// Example: tenure files --audit
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct Files {
    #[command(flatten)]
    format: Format,
    /// Show which working trees are watched, instead of files
    #[arg(long)]
    audit: bool,
}

impl Files {
    /// Reads the list and prints it.
    pub fn run(self) -> Result<(), Failure> {
        let found = with_local_client(async |client| client.files().await)?;
        match (self.audit, self.format.json) {
            (true, true) => write_json(&found.audit)?,
            (true, false) if found.audit.is_empty() => write_text("No trees are watched.\n")?,
            (true, false) => write_table(&table(&found.audit))?,
            (false, true) => write_json(&found.files)?,
            (false, false) => {
                if found.files.is_empty() {
                    write_text("No files.\n")?;
                } else {
                    write_table(&view::table(&found.files))?;
                }
                write_text(&format_uncovered_trees(&found.audit))?;
            }
        }
        Ok(())
    }
}

pub fn table(trees: &[AuditedWorktree]) -> Table {
    let mut table = Table::with_header(&["TREE", "FOLDERS", "NOT WATCHED", "MISSED", "WHY"]);
    for tree in trees {
        table.row([
            tree.root.clone(),
            tree.folders.to_string(),
            tree.unwatched.to_string(),
            tree.missed.to_string(),
            tree.why.clone().unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    table
}

/// A line for each tree of which something is not covered.
pub fn format_uncovered_trees(trees: &[AuditedWorktree]) -> String {
    let lines = trees.iter().filter_map(|tree| {
        let why = tree.why.as_ref().map(|why| match (tree.folders, tree.unwatched) {
            (0, 0) => format!("not watched: {why}"),
            (_, unwatched) => format!("{unwatched} folders are not watched: {why}"),
        });
        let missed = (tree.missed > 0).then(|| format!("changes were missed {} times", tree.missed));
        let gaps: Vec<String> = why.into_iter().chain(missed).collect();
        let line = format!("Audit of {}: {}", tree.root, gaps.join("; "));
        (!gaps.is_empty()).then(|| line.replace(char::is_control, " ") + "\n")
    });
    lines.collect()
}

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

/// From where we are, as the server wants it. Which file that is, with all links, the server finds out.
pub fn absolute_path(path: &Path) -> Result<String, Failure> {
    let wrong = |what: &str| Failure::from_message(exit::USAGE, &format!("{}: {what}", path.display()));
    let whole = std::path::absolute(path).map_err(|error| wrong(&error.to_string()))?;
    whole.into_os_string().into_string().map_err(|_| wrong("this path is not UTF-8, so no agent can have it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(folders: u64, unwatched: u64, why: Option<&str>, missed: u64) -> AuditedWorktree {
        AuditedWorktree { root: "/repo".to_owned(), folders, unwatched, why: why.map(str::to_owned), missed }
    }

    #[test]
    fn only_audit_gaps_are_listed_below_the_files() {
        assert_eq!(format_uncovered_trees(&[tree(7, 0, None, 0)]), "");
        let trees = [
            tree(7, 2, Some("2 may not be read"), 0),
            tree(0, 0, Some("there\nis no room"), 0),
            tree(7, 0, None, 3),
        ];
        let expected = "\
Audit of /repo: 2 folders are not watched: 2 may not be read
Audit of /repo: not watched: there is no room
Audit of /repo: changes were missed 3 times
";
        assert_eq!(format_uncovered_trees(&trees), expected);
    }

    #[test]
    fn table_shows_watched_and_missed_folders_of_each_tree() {
        let expected = "\
TREE   FOLDERS  NOT WATCHED  MISSED  WHY
/repo  7        0            0       -
/repo  7        2            1       too many
";
        assert_eq!(table(&[tree(7, 0, None, 0), tree(7, 2, Some("too many"), 1)]).to_string(), expected);
    }

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
