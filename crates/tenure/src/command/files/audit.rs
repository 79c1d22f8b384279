//! What is watched, as people read it.

use tenure_api::AuditedWorktree;

use crate::output::Table;

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
}
