//! What several runs say together, and how evenly waiters are served.

use serde::Serialize;

/// The median of several runs, with the lowest and the highest.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    /// Zero without any value.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let (Some(min), Some(max)) = (sorted.first(), sorted.last()) else { return Self::default() };
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        };
        Self { median, min: *min, max: *max }
    }
}

/// Jain's fairness index of shares: 1 if all are equal, 1/n if one has everything, and 1 if all are zero.
pub fn jain_index(shares: &[u64]) -> f64 {
    let sum: f64 = shares.iter().map(|share| *share as f64).sum();
    let squares: f64 = shares.iter().map(|share| (*share as f64).powi(2)).sum();
    if squares == 0.0 { 1.0 } else { sum * sum / (shares.len() as f64 * squares) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_value_or_the_mean_of_the_two_in_the_middle() {
        assert_eq!(Spread::of([3.0, 1.0, 2.0]), Spread { median: 2.0, min: 1.0, max: 3.0 });
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 3.0]).median, 2.5);
        assert_eq!(Spread::of([7.0]), Spread { median: 7.0, min: 7.0, max: 7.0 });
        assert_eq!(Spread::of([]), Spread::default());
    }

    #[test]
    fn jain_index_is_one_for_equal_shares_and_a_part_of_one_for_a_single_winner() {
        assert_eq!(jain_index(&[5, 5, 5, 5]), 1.0);
        assert_eq!(jain_index(&[8, 0, 0, 0]), 0.25);
        assert_eq!(jain_index(&[1, 1, 0, 0]), 0.5);
        assert_eq!(jain_index(&[0, 0]), 1.0);
        assert!((jain_index(&[1, 2, 3]) - 36.0 / 42.0).abs() < 1e-12);
    }
}
