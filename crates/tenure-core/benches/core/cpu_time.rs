//! CPU time of this thread, and what many measurements come to.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of CPU that `work` takes on this thread. Whoever else uses the machine is not counted, but
/// for the caches that they empty. Reading the clock is: it adds some 15 ns to each operation of a batch.
pub fn cpu_time_of(work: impl FnOnce()) -> u64 {
    let before = now();
    work();
    now() - before
}

fn now() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let part = |number: i64| u64::try_from(number).expect("CPU time does not go back");
    part(time.tv_sec) * 1_000_000_000 + part(time.tv_nsec)
}

/// Repeated measurements of one thing, one figure a repetition.
#[derive(Debug, Clone, Default)]
pub struct Series(Vec<f64>);

impl Series {
    pub fn push(&mut self, figure: f64) {
        self.0.push(figure);
    }

    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// Between which figures eight of ten repetitions lie.
    pub fn spread(&self) -> (f64, f64) {
        (self.quantile(0.1), self.quantile(0.9))
    }

    /// Each figure by the other's of the same repetition: what disturbed one disturbed both.
    pub fn ratio_to(&self, other: &Series) -> Series {
        Series(self.0.iter().zip(&other.0).map(|(one, other)| one / other).collect())
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an index into a few hundred figures"
    )]
    fn quantile(&self, part: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[(part * (sorted.len() - 1) as f64).round() as usize]
    }
}
