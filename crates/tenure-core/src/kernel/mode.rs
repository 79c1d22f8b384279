//! How a lease is held, and which modes go together: one table.

crate::text_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum Mode {
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
pub struct Modes(u8);

/// Which modes may be held at once on one resource: row and column in the order of [`Mode::ALL`].
///
/// A plain shared lease looks, as an agent that consumes does; an exclusive one goes with nothing.
#[rustfmt::skip]
const TOGETHER: [[u8; 8]; 8] = [
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
const APART: [u8; 8] = {
    let mut apart = [0; 8];
    let mut place = 0;
    while place < 64 {
        let (mode, other) = (place / 8, place % 8);
        apart[mode] |= (1 - TOGETHER[mode][other]) << other;
        place += 1;
    }
    apart
};

impl Mode {
    /// Whether a lease in this mode and one in `other` may both live on one resource.
    pub const fn goes_with(self, other: Mode) -> bool {
        TOGETHER[self as usize][other as usize] == 1
    }

    /// Whether this mode keeps out everything that `other` keeps out.
    pub fn covers(self, other: Mode) -> bool {
        Modes::kept_out_by(other).is_within(Modes::kept_out_by(self))
    }

    /// Whether an agent asks for this in order to change what is there.
    pub const fn changes(self) -> bool {
        matches!(self, Mode::Mutates | Mode::Deletes | Mode::Renames)
    }

    /// Whether only agents have leases in this mode.
    pub const fn is_of_agents(self) -> bool {
        !matches!(self, Mode::Exclusive | Mode::Shared)
    }

    /// Whether at most one lease in this mode can live on a resource.
    pub const fn is_alone(self) -> bool {
        !self.goes_with(self)
    }

    /// The mode with this name, in any case.
    pub fn parse(name: &str) -> Option<Mode> {
        Mode::ALL.into_iter().find(|mode| mode.as_str().eq_ignore_ascii_case(name))
    }
}

impl Modes {
    /// The modes that do not go with `mode`.
    pub const fn kept_out_by(mode: Mode) -> Modes {
        Modes(APART[mode as usize])
    }

    /// The modes that do not go with one of these.
    pub fn kept_out(self) -> Modes {
        let members = Mode::ALL.into_iter().filter(|mode| self.contains(*mode));
        members.map(Modes::kept_out_by).fold(Modes::default(), Modes::union)
    }

    pub fn with(self, mode: Mode) -> Modes {
        Modes(self.0 | 1 << mode as u8)
    }

    pub fn union(self, other: Modes) -> Modes {
        Modes(self.0 | other.0)
    }

    pub fn contains(self, mode: Mode) -> bool {
        self.0 & (1 << mode as u8) != 0
    }

    pub const fn except(self, those: Modes) -> Modes {
        Modes(self.0 & !those.0)
    }

    /// Whether some mode is in both sets.
    pub const fn meets(self, other: Modes) -> bool {
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
    pub fn is_within(self, other: Modes) -> bool {
        self.0 & !other.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mode_compatibility_is_symmetric() {
        for one in Mode::ALL {
            for other in Mode::ALL {
                assert_eq!(one.goes_with(other), other.goes_with(one), "{one:?} and {other:?}");
            }
        }
    }

    #[test]
    fn conflicting_modes_are_the_incompatible_ones() {
        for one in Mode::ALL {
            let kept_out = Modes::kept_out_by(one);
            for other in Mode::ALL {
                assert_eq!(kept_out.contains(other), !one.goes_with(other), "{one:?} and {other:?}");
                let both = kept_out.union(Modes::kept_out_by(other));
                assert_eq!(Modes::default().with(one).with(other).kept_out(), both);
            }
        }
    }

    #[test]
    fn mode_with_more_conflicts_covers_the_other() {
        for one in Mode::ALL {
            for other in Mode::ALL {
                let keeps_out_more = Modes::kept_out_by(one).count() >= Modes::kept_out_by(other).count();
                assert_eq!(one.covers(other), keeps_out_more, "{one:?} and {other:?}");
            }
        }
    }

    #[test]
    fn exclusive_is_compatible_with_nothing_and_shared_with_readers() {
        assert!(Mode::ALL.into_iter().all(|mode| !Mode::Exclusive.goes_with(mode)));
        let with_shared: Vec<_> =
            Mode::ALL.into_iter().filter(|mode| Mode::Shared.goes_with(*mode)).collect();
        assert_eq!(with_shared, [Mode::Shared, Mode::Provides, Mode::Consumes, Mode::DependsOn]);
    }

    #[test]
    fn exclusive_covers_every_mode_and_shared_does_not_cover_exclusive() {
        assert!(Mode::ALL.into_iter().all(|mode| Mode::Exclusive.covers(mode)));
        assert!(!Mode::Shared.covers(Mode::Exclusive));
        assert!(Mode::Provides.covers(Mode::Consumes) && !Mode::Consumes.covers(Mode::Provides));
    }

    #[test]
    fn mode_names_parse_case_insensitively() {
        for mode in Mode::ALL {
            assert_eq!(Mode::parse(mode.as_str()), Some(mode));
            assert_eq!(Mode::parse(&mode.as_str().to_uppercase()), Some(mode));
        }
        assert_eq!(Mode::parse("write"), None);
    }
}
