//! What follows from what is known of a change.

use tenure_core::kernel::Holder;
use tenure_gate::watch::ChangeKind;

/// What is known of a change.
#[derive(Debug)]
pub(super) struct ChangeEvidence {
    pub(super) kind: ChangeKind,
    /// Whether somebody has it, or had it a moment ago.
    pub(super) has_owner: bool,
    /// Whether git was at work for the whole tree.
    pub(super) by_git: bool,
    /// Who had it open for writing when it changed.
    pub(super) writers: Vec<WriterCandidate>,
}

/// Somebody who had a file open for writing when it changed.
#[derive(Debug)]
pub(super) struct WriterCandidate {
    pub(super) pid: u32,
    pub(super) name: String,
    /// In whose name it runs, if a session of an agent is known for it.
    pub(super) session: Option<Holder>,
    pub(super) origin: WriterOrigin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriterOrigin {
    /// The owner of the file, or it is that one itself.
    Owner,
    Other,
    /// Nobody can say: it has lost whoever started it.
    Unknown,
}

/// Somebody changed what was not theirs to change.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Violation {
    /// Whose session, if that is known.
    pub(super) session: Option<Holder>,
    pub(super) detail: String,
}

/// Whether it is a violation. Nobody is accused without having been seen.
pub(super) fn find_violation(facts: &ChangeEvidence) -> Option<Violation> {
    let ChangeEvidence { has_owner, by_git, writers, .. } = facts;
    // What git checks out is in commits.
    let is_explained = if *has_owner {
        writers.is_empty() || writers.iter().any(|writer| writer.origin == WriterOrigin::Owner)
    } else {
        *by_git
    };
    if is_explained {
        return None;
    }
    let other_writer = || writers.iter().find(|writer| writer.origin == WriterOrigin::Other);
    let known =
        writers.iter().find(|writer| writer.session.is_some()).or_else(other_writer).or(writers.first());
    let what = change_verb(facts.kind);
    let why = match known.map(|known| known.origin) {
        _ if !has_owner => "though no session had it",
        Some(WriterOrigin::Unknown) => "and whether its owner started that is not known",
        _ => "which its owner did not start",
    };
    let detail = match known {
        Some(WriterCandidate { pid, name, .. }) => {
            format!("it was {what} by {} (pid {pid}), {why}", strip_control_characters(name))
        }
        None => format!("it was {what}, though no session had it; nobody was seen doing it"),
    };
    Some(Violation { session: known.and_then(|known| known.session.clone()), detail })
}

fn change_verb(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Created => "made",
        ChangeKind::MovedIn => "put in its place",
        ChangeKind::Written => "written",
        ChangeKind::Attributes => "given another mode, owner or time",
        ChangeKind::Removed => "removed or moved away",
        ChangeKind::FolderMovedOut => "moved away with all that is in it",
    }
}

/// A program may call itself anything.
fn strip_control_characters(name: &str) -> String {
    name.chars().map(|character| if character.is_control() { ' ' } else { character }).take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suspect(pid: u32, session: Option<&str>, is_owner: bool) -> WriterCandidate {
        let session = session.map(|session| Holder::parse(session).unwrap());
        let origin = if is_owner { WriterOrigin::Owner } else { WriterOrigin::Other };
        WriterCandidate { pid, name: "sh\n".into(), session, origin }
    }

    fn judged(has_owner: bool, by_git: bool, writers: Vec<WriterCandidate>) -> Option<Violation> {
        find_violation(&ChangeEvidence { kind: ChangeKind::Written, has_owner, by_git, writers })
    }

    // S4-15
    #[test]
    fn a_change_of_an_unowned_file_is_a_violation_unless_git_made_it() {
        let unobserved = judged(false, false, Vec::new()).unwrap();
        assert_eq!(unobserved.session, None);
        assert_eq!(unobserved.detail, "it was written, though no session had it; nobody was seen doing it");
        let observed = judged(false, false, vec![suspect(7, None, false)]).unwrap();
        assert_eq!(observed.detail, "it was written by sh  (pid 7), though no session had it");
        let agent = judged(false, false, vec![suspect(7, None, false), suspect(8, Some("two"), false)]);
        assert_eq!(agent.unwrap().session, Some(Holder::parse("two").unwrap()));
        assert_eq!(judged(false, true, Vec::new()), None);
        assert_eq!(judged(false, true, vec![suspect(7, None, false)]), None);
    }

    // S4-15
    #[test]
    fn a_change_of_an_owned_file_is_a_violation_only_if_another_writer_was_observed() {
        assert_eq!(judged(true, false, Vec::new()), None);
        assert_eq!(judged(true, false, vec![suspect(7, Some("one"), true)]), None);
        assert_eq!(judged(true, false, vec![suspect(8, None, false), suspect(7, None, true)]), None);
        let foreign = judged(true, false, vec![suspect(8, Some("two"), false)]).unwrap();
        assert_eq!(foreign.session, Some(Holder::parse("two").unwrap()));
        assert_eq!(foreign.detail, "it was written by sh  (pid 8), which its owner did not start");
        assert!(judged(true, true, vec![suspect(8, None, false)]).is_some(), "git over what somebody has");
    }

    #[test]
    fn a_writer_without_known_parents_is_not_accused() {
        let unknown = || WriterCandidate { origin: WriterOrigin::Unknown, ..suspect(7, None, false) };
        let violation = judged(true, false, vec![unknown()]).unwrap();
        assert_eq!(violation.session, None);
        assert_eq!(
            violation.detail,
            "it was written by sh  (pid 7), and whether its owner started that is not known"
        );
        let violation = judged(true, false, vec![unknown(), suspect(8, None, false)]).unwrap();
        assert_eq!(violation.detail, "it was written by sh  (pid 8), which its owner did not start");
        assert_eq!(judged(true, false, vec![unknown(), suspect(8, None, true)]), None);
    }
}
