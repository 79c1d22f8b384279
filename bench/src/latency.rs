//! Latencies as a histogram of fixed size, so that recording one allocates nothing and costs a few nanoseconds.

use std::time::Duration;

/// Bits of a value that are kept: 64 buckets for each power of two, so that a value is off by at most 1/64.
const PRECISION_BITS: u32 = 6;
const BUCKETS_PER_OCTAVE: usize = 1 << PRECISION_BITS;
/// Values of 2^42 ns (73 minutes) and more share the last bucket.
const MAX_BITS: u32 = 42;
const BUCKETS: usize = (MAX_BITS - PRECISION_BITS + 1) as usize * BUCKETS_PER_OCTAVE;

/// Counts of durations, by nanoseconds.
#[derive(Clone)]
pub struct LatencyHistogram {
    counts: Vec<u64>,
    total: u64,
    max: Duration,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS], total: 0, max: Duration::ZERO }
    }
}

impl LatencyHistogram {
    pub fn record(&mut self, latency: Duration) {
        let nanoseconds = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket(nanoseconds)] += 1;
        self.total += 1;
        self.max = self.max.max(latency);
    }

    /// Adds the counts of another connection or run.
    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.total += other.total;
        self.max = self.max.max(other.max);
    }

    pub fn count(&self) -> u64 {
        self.total
    }

    pub fn max(&self) -> Duration {
        self.max
    }

    /// The smallest recorded latency that at least `percent` of all latencies do not exceed; zero without any.
    pub fn percentile(&self, percent: f64) -> Duration {
        let mut seen = 0_u64;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if *count > 0 && seen as f64 >= self.total as f64 * percent / 100.0 {
                // The largest value of the bucket, so that a percentile is never flattered.
                return Duration::from_nanos(last_value(index)).min(self.max);
            }
        }
        self.max
    }
}

/// The bucket of a value.
fn bucket(value: u64) -> usize {
    let bits = u64::BITS - value.leading_zeros();
    // Values below 128 have a bucket each; above, the first seven bits decide.
    let shift = bits.saturating_sub(PRECISION_BITS + 1);
    let index = shift as usize * BUCKETS_PER_OCTAVE + usize::try_from(value >> shift).unwrap_or(usize::MAX);
    index.min(BUCKETS - 1)
}

/// The largest value in a bucket.
fn last_value(index: usize) -> u64 {
    let shift = (index / BUCKETS_PER_OCTAVE).saturating_sub(1);
    let first = index - shift * BUCKETS_PER_OCTAVE;
    ((first as u64 + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_bucket_is_within_a_64th_of_its_values() {
        let values = (0..5_000).chain((13..42).flat_map(|bits| {
            let power = 1_u64 << bits;
            [power - 1, power, power + 1, power + power / 3]
        }));
        for value in values {
            let last = last_value(bucket(value));
            assert!(last >= value && last - value <= value / 64, "{value} is counted as {last}");
        }
    }

    #[test]
    fn buckets_are_in_the_order_of_their_values() {
        let mut last = 0;
        for value in (0..1_000_000_u64).step_by(7) {
            assert!(bucket(value) >= last, "{value}");
            last = bucket(value);
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_are_those_of_the_recorded_latencies() {
        let mut histogram = LatencyHistogram::default();
        for microseconds in 1..=1_000 {
            histogram.record(Duration::from_micros(microseconds));
        }
        for (percent, expected) in [(0.1, 1), (50.0, 500), (99.0, 990), (99.9, 999), (100.0, 1_000)] {
            let found = histogram.percentile(percent).as_nanos() as f64 / 1_000.0;
            assert!(
                (f64::from(expected)..=f64::from(expected) * 1.016).contains(&found),
                "p{percent}: {found}"
            );
        }
        assert_eq!(histogram.max(), Duration::from_millis(1));
        assert_eq!(histogram.percentile(100.0), Duration::from_millis(1), "never more than the largest");
    }

    #[test]
    fn merged_histograms_count_both_and_an_empty_one_has_percentile_zero() {
        let mut merged = LatencyHistogram::default();
        assert_eq!(merged.percentile(99.0), Duration::ZERO);
        let mut other = LatencyHistogram::default();
        other.record(Duration::from_millis(3));
        merged.record(Duration::from_millis(1));
        merged.merge(&other);
        assert_eq!((merged.count(), merged.max()), (2, Duration::from_millis(3)));
        assert!(merged.percentile(50.0) < Duration::from_millis(2));
    }
}
