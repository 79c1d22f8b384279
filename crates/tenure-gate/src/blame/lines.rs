//! Which lines stayed between two versions of a text.

use imara_diff::{Algorithm, Diff, InternedInput};

/// Texts with at most this many pairs of lines are compared exactly.
const MAX_PAIRS_COMPARED: usize = 1 << 20;

/// A short digest of a line without its end.
pub type Line = u64;

/// The lines of a text. A line end behind the last line makes no further line.
pub fn split(content: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = content.split_inclusive(|byte| *byte == b'\n');
    lines.map(|line| line.strip_suffix(b"\n").unwrap_or(line))
}

/// The digests of the lines of a text.
pub fn digests(content: &[u8]) -> Vec<Line> {
    split(content).map(digest).collect()
}

fn digest(line: &[u8]) -> Line {
    let hash = blake3::hash(line);
    hash.as_bytes().iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// For each new line, the old line that it is, if it stayed. Both are in order, so no line is moved.
///
/// The most lines stay where the two texts are small enough to find that out. Larger texts are compared by Myers'
/// algorithm with the limits that git uses, so that no file takes more than a moment.
pub fn stayed(old: &[Line], new: &[Line]) -> Vec<Option<usize>> {
    let mut input = InternedInput::default();
    input.update_before(old.iter().copied());
    input.update_after(new.iter().copied());
    let is_small = old.len().saturating_mul(new.len()) <= MAX_PAIRS_COMPARED;
    let algorithm = if is_small { Algorithm::MyersMinimal } else { Algorithm::Myers };
    let diff = Diff::compute(algorithm, &input);
    // Line numbers fit into 32 bits: a text has at most 1 MiB.
    let mut kept = (0_u32..).zip(0..old.len()).filter(|(number, _)| !diff.is_removed(*number));
    let lines = (0_u32..).zip(new);
    lines
        .map(|(number, _)| if diff.is_added(number) { None } else { kept.next().map(|(_, place)| place) })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Everything that a caller relies on.
    fn sound(old: &[Line], new: &[Line]) -> usize {
        let found = stayed(old, new);
        let places: Vec<_> = found.iter().flatten().collect();
        assert!(places.is_sorted_by(|one, other| one < other), "no line is moved or used twice");
        for (at, place) in found.iter().enumerate() {
            assert!(place.is_none_or(|place| old[place] == new[at]));
        }
        places.len()
    }

    /// How many can stay at most, the slow way.
    fn most(old: &[Line], new: &[Line]) -> usize {
        match (old.split_first(), new.split_first()) {
            (Some((a, old_rest)), Some((b, new_rest))) => {
                if a == b {
                    1 + most(old_rest, new_rest)
                } else {
                    most(old_rest, new).max(most(old, new_rest))
                }
            }
            _ => 0,
        }
    }

    proptest! {
        #[test]
        fn matched_lines_are_a_longest_common_subsequence(old in prop::collection::vec(0..4_u64, 0..9), new in prop::collection::vec(0..4_u64, 0..9)) {
            prop_assert_eq!(sound(&old, &new), most(&old, &new));
        }
    }

    #[test]
    fn large_texts_are_matched_quickly() {
        let old: Vec<_> = (0..60_000).collect();
        let mut new = old.clone();
        for at in (0..60_000).step_by(1_000) {
            new[at] = 1_000_000 + u64::try_from(at).unwrap();
        }
        new.splice(30_500..30_500, 2_000_000..2_003_000);
        assert_eq!(sound(&old, &new), 60_000 - 60);
        let other: Vec<_> = (1_000_000..1_500_000).collect();
        assert_eq!(sound(&other, &old), 0);
        // Nothing that stands once: written anew, and quickly so.
        let (ones, twos) = (vec![1; 200_000], [1, 2].repeat(100_000));
        sound(&ones, &twos);
        let backwards: Vec<_> = old.iter().rev().copied().collect();
        assert_eq!(sound(&old, &backwards), 1);
    }

    #[test]
    fn text_is_split_at_line_feeds() {
        let lines = |text: &str| split(text.as_bytes()).map(<[u8]>::to_vec).collect::<Vec<_>>();
        assert_eq!(lines(""), Vec::<Vec<u8>>::new());
        assert_eq!(lines("a"), [b"a".to_vec()]);
        assert_eq!(lines("a\n\nb\r\n"), [b"a".to_vec(), vec![], b"b\r".to_vec()]);
        assert_eq!(digests(b"a\nb"), digests(b"a\nb\n"));
        assert_ne!(digests(b"a\r\n"), digests(b"a\n"));
    }
}
