//! CPU time of this thread, and what many measurements come to.

use std::hint::black_box;

use rustix::time::{ClockId, clock_gettime};

/// Measures CPU time of this thread.
pub struct Stopwatch {
    other_memory: Vec<u64>,
}

impl Stopwatch {
    /// Twice the second-level cache of common processors. The third level keeps what it has.
    const OTHER_BYTES: usize = 2 << 20;

    /// Measures as in life: before each measurement it goes through other memory. Between two batches a
    /// server encodes, hashes, signs, writes and answers, and then the fast caches hold other things,
    /// whether there are a thousand leases or a million.
    pub fn as_in_life() -> Self {
        Self { other_memory: vec![1; Self::OTHER_BYTES / size_of::<u64>()] }
    }

    /// Measures with everything in the caches as the last measurement left it. A thousand leases have the
    /// fast caches to themselves then.
    pub fn hot() -> Self {
        Self { other_memory: Vec::new() }
    }

    /// Nanoseconds of CPU that `work` takes. Whoever else uses the machine is not counted, but for the caches
    /// that they empty. Reading the clock is: it adds some 15 ns to each operation of a batch.
    pub fn time(&mut self, work: impl FnOnce()) -> u64 {
        let one_in_each_line = self.other_memory.iter_mut().step_by(8);
        one_in_each_line.for_each(|number| *number = number.wrapping_mul(3));
        black_box(&mut self.other_memory);
        let before = now();
        work();
        now() - before
    }
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
    pub fn by(&self, other: &Series) -> Series {
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
