//! Which lines stayed, in time that no file can blow up.

use std::collections::HashMap;
use std::ops::Range;

/// Two stretches are compared line by line if there are no more than this many pairs.
const MOST_PAIRS: usize = 1 << 20;

/// How often a stretch is cut by lines that stand in it once. Deeper than any text that somebody wrote.
const MOST_CUTS: usize = 64;

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

/// For each new line, which old line it is, if it stayed. Both are in order, so no line is moved.
///
/// Where both ends agree, nothing is compared. A large stretch is cut at the lines that stand in it exactly once on both
/// sides; where there is none, it counts as written anew.
pub fn stayed(old: &[Line], new: &[Line]) -> Vec<Option<usize>> {
    let mut found = vec![None; new.len()];
    let mut open = vec![(0..old.len(), 0..new.len(), 0)];
    while let Some((mut left, mut right, cuts)) = open.pop() {
        trim(old, new, &mut left, &mut right, &mut found);
        if left.is_empty() || right.is_empty() {
            continue;
        }
        if left.len().saturating_mul(right.len()) <= MOST_PAIRS {
            compare(old, new, &left, &right, &mut found);
            continue;
        }
        if cuts == MOST_CUTS {
            continue;
        }
        let anchors = anchors(old, new, &left, &right);
        let ends = anchors.iter().copied().chain((!anchors.is_empty()).then_some((left.end, right.end)));
        let (mut from_left, mut from_right) = (left.start, right.start);
        for (at_left, at_right) in ends {
            open.push((from_left..at_left, from_right..at_right, cuts + 1));
            if at_right < right.end {
                found[at_right] = Some(at_left);
            }
            (from_left, from_right) = (at_left + 1, at_right + 1);
        }
    }
    found
}

/// Takes what is the same off both ends.
fn trim(
    old: &[Line],
    new: &[Line],
    left: &mut Range<usize>,
    right: &mut Range<usize>,
    found: &mut [Option<usize>],
) {
    let same = |(one, other): &(&Line, &Line)| one == other;
    let head = old[left.clone()].iter().zip(&new[right.clone()]).take_while(same).count();
    (0..head).for_each(|step| found[right.start + step] = Some(left.start + step));
    left.start += head;
    right.start += head;
    let (one, other) = (old[left.clone()].iter().rev(), new[right.clone()].iter().rev());
    let tail = one.zip(other).take_while(same).count();
    (1..=tail).for_each(|step| found[right.end - step] = Some(left.end - step));
    left.end -= tail;
    right.end -= tail;
}

/// The longest common subsequence of two small stretches.
fn compare(
    old: &[Line],
    new: &[Line],
    left: &Range<usize>,
    right: &Range<usize>,
    found: &mut [Option<usize>],
) {
    let width = right.len() + 1;
    // How long the longest one is from here to the end.
    let mut longest = vec![0_u32; (left.len() + 1) * width];
    for row in (0..left.len()).rev() {
        for column in (0..right.len()).rev() {
            longest[row * width + column] = if old[left.start + row] == new[right.start + column] {
                longest[(row + 1) * width + column + 1] + 1
            } else {
                longest[(row + 1) * width + column].max(longest[row * width + column + 1])
            };
        }
    }
    let (mut row, mut column) = (0, 0);
    while row < left.len() && column < right.len() {
        if old[left.start + row] == new[right.start + column] {
            found[right.start + column] = Some(left.start + row);
            (row, column) = (row + 1, column + 1);
        } else if longest[(row + 1) * width + column] >= longest[row * width + column + 1] {
            row += 1;
        } else {
            column += 1;
        }
    }
}

/// Lines that stand once on both sides, as many of them as are in the same order.
fn anchors(old: &[Line], new: &[Line], left: &Range<usize>, right: &Range<usize>) -> Vec<(usize, usize)> {
    let once = |lines: &[Line], range: &Range<usize>| {
        let mut places: HashMap<Line, Option<usize>> = HashMap::new();
        for at in range.clone() {
            places.entry(lines[at]).and_modify(|place| *place = None).or_insert(Some(at));
        }
        places
    };
    let (lefts, rights) = (once(old, left), once(new, right));
    let pairs: Vec<_> = right
        .clone()
        .filter_map(|at| {
            rights.get(&new[at]).copied().flatten()?;
            Some((lefts.get(&new[at]).copied().flatten()?, at))
        })
        .collect();
    // The longest rising row, by piles: each pair remembers the top of the pile before.
    let mut piles: Vec<usize> = Vec::new();
    let mut before = vec![None; pairs.len()];
    for (index, (place, _)) in pairs.iter().enumerate() {
        let pile = piles.partition_point(|top| pairs[*top].0 < *place);
        before[index] = pile.checked_sub(1).map(|pile| piles[pile]);
        if pile == piles.len() { piles.push(index) } else { piles[pile] = index }
    }
    let mut row: Vec<_> = std::iter::successors(piles.last().copied(), |index| before[*index]).collect();
    row.reverse();
    row.into_iter().map(|index| pairs[index]).collect()
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
        fn as_many_lines_stay_as_can(old in prop::collection::vec(0..4_u64, 0..9), new in prop::collection::vec(0..4_u64, 0..9)) {
            prop_assert_eq!(sound(&old, &new), most(&old, &new));
        }
    }

    #[test]
    fn large_texts_take_no_time_and_keep_what_is_plain() {
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
    fn a_line_is_what_people_call_one() {
        let lines = |text: &str| split(text.as_bytes()).map(<[u8]>::to_vec).collect::<Vec<_>>();
        assert_eq!(lines(""), Vec::<Vec<u8>>::new());
        assert_eq!(lines("a"), [b"a".to_vec()]);
        assert_eq!(lines("a\n\nb\r\n"), [b"a".to_vec(), vec![], b"b\r".to_vec()]);
        assert_eq!(digests(b"a\nb"), digests(b"a\nb\n"));
        assert_ne!(digests(b"a\r\n"), digests(b"a\n"));
    }
}
