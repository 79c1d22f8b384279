//! A part of the planted bugs, so that one long run can be several shorter ones.

use std::str::FromStr;

/// Part `part` of `of`; the first is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    part: usize,
    of: usize,
}

impl Shard {
    /// Neighbouring items, so that a shard of bugs that are ordered by crate builds few crates.
    pub fn select<T>(&self, items: Vec<T>) -> Vec<T> {
        let start = |part: usize| items.len() * part / self.of;
        let (from, to) = (start(self.part - 1), start(self.part));
        items.into_iter().skip(from).take(to - from).collect()
    }

    /// The name of the file with its results.
    pub fn file_name(&self) -> String {
        format!("{}-of-{}.tsv", self.part, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers =
            text.split_once('/').and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((part, of)) if 1 <= part && part <= of => Ok(Self { part, of }),
            _ => Err("expected K/N with K from 1 to N, for example 2/4".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_in_exactly_one_shard() {
        let items: Vec<_> = (0..74).collect();
        let mut all: Vec<_> = (1..=4).flat_map(|part| Shard { part, of: 4 }.select(items.clone())).collect();
        all.sort_unstable();
        assert_eq!(all, items);
    }

    #[test]
    fn a_shard_outside_its_range_is_rejected() {
        assert_eq!("2/4".parse(), Ok(Shard { part: 2, of: 4 }));
        for text in ["", "2", "0/4", "5/4", "1/0", "a/4", "1/4/2", "-1/4"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }
}
