//! Lease modes, and which of them are compatible: one table.

crate::text_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum LeaseMode {
        Exclusive = "exclusive",
        /// Together with others that only look.
        Shared = "shared",
        /// An agent makes something that others may already rely on.
        Provides = "PROVIDES",
        /// An agent reads.
        Consumes = "CONSUMES",
        /// An agent relies on it being there.
        DependsOn = "DEPENDS_ON",
        Mutates = "MUTATES",
        Deletes = "DELETES",
        Renames = "RENAMES",
    }
}

/// A set of modes, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ModeSet(u8);

/// Which modes may be held at once on one resource: row and column in the order of [`LeaseMode::ALL`].
///
/// A plain shared lease looks, as an agent that consumes does; an exclusive one goes with nothing.
#[rustfmt::skip]
const COMPATIBLE: [[u8; 8]; 8] = [
    // E  S  P  C  D  M  X  R
    [  0, 0, 0, 0, 0, 0, 0, 0 ], // Exclusive
    [  0, 1, 1, 1, 1, 0, 0, 0 ], // Shared
    [  0, 1, 0, 1, 1, 0, 0, 0 ], // Provides
    [  0, 1, 1, 1, 1, 0, 0, 0 ], // Consumes
    [  0, 1, 1, 1, 1, 0, 0, 0 ], // DependsOn
    [  0, 0, 0, 0, 0, 0, 0, 0 ], // Mutates
    [  0, 0, 0, 0, 0, 0, 0, 0 ], // Deletes
    [  0, 0, 0, 0, 0, 0, 0, 0 ], // Renames
];

/// For each mode those that do not go with it, one bit each.
const CONFLICTING: [u8; 8] = {
    let mut conflicts = [0; 8];
    let mut place = 0;
    while place < 64 {
        let (mode, other) = (place / 8, place % 8);
        conflicts[mode] |= (1 - COMPATIBLE[mode][other]) << other;
        place += 1;
    }
    conflicts
};

impl LeaseMode {
    /// Whether a lease in this mode and one in `other` may both live on one resource.
    pub const fn is_compatible(self, other: LeaseMode) -> bool {
        COMPATIBLE[self as usize][other as usize] == 1
    }

    /// Whether this mode keeps out everything that `other` keeps out.
    pub fn covers(self, other: LeaseMode) -> bool {
        ModeSet::conflicting_with(other).is_subset(ModeSet::conflicting_with(self))
    }

    /// Whether an agent asks for this in order to change what is there.
    pub const fn is_mutating(self) -> bool {
        matches!(self, LeaseMode::Mutates | LeaseMode::Deletes | LeaseMode::Renames)
    }

    /// Whether only agents have leases in this mode.
    pub const fn is_agent_mode(self) -> bool {
        !matches!(self, LeaseMode::Exclusive | LeaseMode::Shared)
    }

    /// Whether at most one lease in this mode can live on a resource.
    pub const fn is_self_conflicting(self) -> bool {
        !self.is_compatible(self)
    }

    /// The mode with this name, in any case.
    pub fn parse(name: &str) -> Option<LeaseMode> {
        LeaseMode::ALL.into_iter().find(|mode| mode.as_str().eq_ignore_ascii_case(name))
    }
}

impl ModeSet {
    /// The modes that do not go with `mode`.
    pub const fn conflicting_with(mode: LeaseMode) -> ModeSet {
        ModeSet(CONFLICTING[mode as usize])
    }

    /// The modes that do not go with one of these.
    pub fn conflicting_modes(self) -> ModeSet {
        let members = LeaseMode::ALL.into_iter().filter(|mode| self.contains(*mode));
        members.map(ModeSet::conflicting_with).fold(ModeSet::default(), ModeSet::union)
    }

    pub fn with(self, mode: LeaseMode) -> ModeSet {
        ModeSet(self.0 | 1 << mode as u8)
    }

    pub fn union(self, other: ModeSet) -> ModeSet {
        ModeSet(self.0 | other.0)
    }

    pub fn contains(self, mode: LeaseMode) -> bool {
        self.0 & (1 << mode as u8) != 0
    }

    pub const fn difference(self, those: ModeSet) -> ModeSet {
        ModeSet(self.0 & !those.0)
    }

    /// Whether some mode is in both sets.
    pub const fn intersects(self, other: ModeSet) -> bool {
        self.0 & other.0 != 0
    }

    /// How many there are. Of two modes the one that keeps out more keeps out what the other does.
    pub(crate) fn count(self) -> u8 {
        self.0.count_ones().try_into().expect("there are eight modes")
    }

    pub fn is_all(self) -> bool {
        self.0 == u8::MAX
    }

    /// Whether all of these are in the other set too.
    pub fn is_subset(self, other: ModeSet) -> bool {
        self.0 & !other.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mode_compatibility_is_symmetric() {
        for one in LeaseMode::ALL {
            for other in LeaseMode::ALL {
                assert_eq!(one.is_compatible(other), other.is_compatible(one), "{one:?} and {other:?}");
            }
        }
    }

    #[test]
    fn conflicting_modes_are_the_incompatible_ones() {
        for one in LeaseMode::ALL {
            let kept_out = ModeSet::conflicting_with(one);
            for other in LeaseMode::ALL {
                assert_eq!(kept_out.contains(other), !one.is_compatible(other), "{one:?} and {other:?}");
                let both = kept_out.union(ModeSet::conflicting_with(other));
                assert_eq!(ModeSet::default().with(one).with(other).conflicting_modes(), both);
            }
        }
    }

    #[test]
    fn mode_with_more_conflicts_covers_the_other() {
        for one in LeaseMode::ALL {
            for other in LeaseMode::ALL {
                let keeps_out_more =
                    ModeSet::conflicting_with(one).count() >= ModeSet::conflicting_with(other).count();
                assert_eq!(one.covers(other), keeps_out_more, "{one:?} and {other:?}");
            }
        }
    }

    #[test]
    fn exclusive_is_compatible_with_nothing_and_shared_with_readers() {
        assert!(LeaseMode::ALL.into_iter().all(|mode| !LeaseMode::Exclusive.is_compatible(mode)));
        let with_shared: Vec<_> =
            LeaseMode::ALL.into_iter().filter(|mode| LeaseMode::Shared.is_compatible(*mode)).collect();
        assert_eq!(
            with_shared,
            [LeaseMode::Shared, LeaseMode::Provides, LeaseMode::Consumes, LeaseMode::DependsOn]
        );
    }

    #[test]
    fn exclusive_covers_every_mode_and_shared_does_not_cover_exclusive() {
        assert!(LeaseMode::ALL.into_iter().all(|mode| LeaseMode::Exclusive.covers(mode)));
        assert!(!LeaseMode::Shared.covers(LeaseMode::Exclusive));
        assert!(
            LeaseMode::Provides.covers(LeaseMode::Consumes)
                && !LeaseMode::Consumes.covers(LeaseMode::Provides)
        );
    }

    #[test]
    fn mode_names_parse_case_insensitively() {
        for mode in LeaseMode::ALL {
            assert_eq!(LeaseMode::parse(mode.as_str()), Some(mode));
            assert_eq!(LeaseMode::parse(&mode.as_str().to_uppercase()), Some(mode));
        }
        assert_eq!(LeaseMode::parse("write"), None);
    }
}
