//! Judges the evidence about a change.

use std::collections::HashSet;

use tenure_core::kernel::{Holder, Resource, Tick, TickDuration};
use tenure_host::watch::ChangeKind;

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

/// From the first violation on, so long it is one burst. Where one follows the other, each lasts twice as long as the one before:
/// a program that writes all day fills no ledger.
const INITIAL_DURATION: TickDuration = TickDuration::from_secs(10);
const MAX_DURATION: TickDuration = TickDuration::from_secs(3_600);
/// After so long a silence, or one that is as long as the last burst, the next one is the first again.
const RESET_AFTER: TickDuration = TickDuration::from_secs(300);
/// So many of it are told one by one.
const MAX_REPORTED: usize = 200;

/// What was told of a burst.
#[derive(Debug)]
pub(super) struct ViolationBurst {
    lasts: TickDuration,
    since: Option<Tick>,
    /// When the one before was over.
    ended: Option<Tick>,
    /// A file that somebody changes again and again is told once.
    reported: HashSet<(Resource, Option<Holder>)>,
    more: usize,
    last: Option<Resource>,
}

impl Default for ViolationBurst {
    fn default() -> Self {
        Self {
            lasts: INITIAL_DURATION,
            since: None,
            ended: None,
            reported: HashSet::new(),
            more: 0,
            last: None,
        }
    }
}

impl ViolationBurst {
    /// Whether this one is to be told. Who changed it, if that is known.
    pub(super) fn should_report(&mut self, resource: &Resource, session: Option<&Holder>, now: Tick) -> bool {
        if self.since.is_none() {
            let follows = self.ended.is_some_and(|ended| now.since(ended) < self.lasts.max(RESET_AFTER));
            self.lasts = if follows {
                TickDuration(self.lasts.0.saturating_mul(2)).min(MAX_DURATION)
            } else {
                INITIAL_DURATION
            };
            self.since = Some(now);
        }
        if self.reported.len() < MAX_REPORTED && self.reported.insert((resource.clone(), session.cloned())) {
            return true;
        }
        self.more += 1;
        self.last = Some(resource.clone());
        false
    }

    /// Ends a burst when its time is over: the last file of it, and how many changes were not told.
    pub(super) fn finish(&mut self, now: Tick) -> Option<(Resource, usize)> {
        let since = self.since.filter(|since| now.since(*since) >= self.lasts)?;
        let ended = Some(Tick(since.0.saturating_add(self.lasts.0)));
        let before = std::mem::replace(self, Self { lasts: self.lasts, ended, ..Self::default() });
        before.last.map(|last| (last, before.more))
    }

    /// Whether something is left to be said.
    pub(super) fn has_unreported(&self) -> bool {
        self.more > 0
    }
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

    fn at(seconds: u64) -> Tick {
        Tick(TickDuration::from_secs(seconds).0)
    }

    fn file(number: usize) -> Resource {
        Resource::parse(&format!("FILE:t/{number}")).unwrap()
    }

    #[test]
    fn the_first_violations_of_a_burst_are_reported_and_the_rest_counted() {
        let mut burst = ViolationBurst::default();
        let reported = (0..2_000).filter(|number| burst.should_report(&file(*number), None, at(1))).count();
        assert_eq!(reported, MAX_REPORTED);
        assert!(burst.has_unreported());
        assert_eq!(burst.finish(at(5)), None);
        assert_eq!(burst.finish(at(11)), Some((file(1_999), 2_000 - MAX_REPORTED)));
        assert!(
            !burst.has_unreported() && burst.should_report(&file(1), None, at(12)),
            "the next one is told again"
        );
        assert_eq!(burst.finish(at(31)), None, "it lasts longer than the one before");
        assert_eq!((burst.finish(at(32)), burst.since), (None, None), "all of it was told");
        assert!(burst.should_report(&file(1), None, at(400)));
        assert_eq!(burst.lasts, INITIAL_DURATION, "after a silence, all is as at first");
    }

    #[test]
    fn repeated_violations_of_the_same_files_are_reported_at_a_bounded_rate() {
        let mut burst = ViolationBurst::default();
        let mut reported_at = Vec::new();
        for now in (0..86_400).step_by(5).map(at) {
            reported_at.extend(burst.finish(now).map(|_| now));
            reported_at
                .extend((0..95).filter(|number| burst.should_report(&file(*number), None, now)).map(|_| now));
        }
        let until = |end: Tick| reported_at.iter().filter(|now| **now <= end).count();
        assert!((95..=300).contains(&until(at(41))), "{}", until(at(41)));
        assert!((1_000..4_000).contains(&reported_at.len()), "{} in a day", reported_at.len());
    }

    #[test]
    fn a_change_by_another_session_is_reported_as_well() {
        let mut burst = ViolationBurst::default();
        let (one, two) = (Holder::parse("one").unwrap(), Holder::parse("two").unwrap());
        assert!(
            burst.should_report(&file(1), Some(&one), at(1))
                && burst.should_report(&file(1), Some(&two), at(7))
        );
        assert!(
            !burst.should_report(&file(1), Some(&one), at(8)) && burst.should_report(&file(2), None, at(8))
        );
        assert_eq!(burst.finish(at(20)), Some((file(1), 1)));
    }
}
