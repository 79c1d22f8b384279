//! `tenure ledger restored`.

use clap::Args;
use serde_json::json;
use tenure_core::kernel::{Fence, Limits};
use tenure_ledger::embedded::identity;
use tenure_registrar::shell::{BootClock, Clock as _, RestoreOptions, Restored, restore};

use crate::configuration::{Configuration, Place};
use crate::exit;
use crate::failure::Failure;
use crate::output::{Format, in_words, time_of_wall};

/// Puts a copy of a ledger in the place of its original, which is lost.
///
/// What the original did after the copy was made is unknown. So a new epoch begins, with a new key; no number that the
/// original may have given out is used again; and nothing is granted until whatever it granted is over. The original
/// must never be started again.
///
/// Example: tenure ledger restored --data /var/lib/tenure
#[derive(Debug, Args)]
pub struct RestoredHere {
    #[command(flatten)]
    place: Place,
    /// Nobody holds anything any more: end what the copy says is held, and grant at once
    #[arg(long)]
    nobody_holds: bool,
    /// A fence that the original is known to have given out: go on after it
    #[arg(long, value_name = "FENCE", value_parser = clap::value_parser!(u64).range(..=Fence::MAX.0))]
    above: Option<u64>,
    #[command(flatten)]
    format: Format,
}

impl RestoredHere {
    /// Restores, and says what that means.
    pub fn run(self) -> Result<(), Failure> {
        let Configuration { data, ledger, .. } = self.place.existing_with_options()?;
        // Where there is no ledger, not even a lock is left behind.
        identity(&data)?;
        let clock = BootClock::new().map_err(|error| {
            Failure::new(exit::UNAVAILABLE, "this machine's clock cannot be read", &error)
        })?;
        let known = RestoreOptions { nobody_holds: self.nobody_holds, above: self.above.map(Fence) };
        let restored = restore(&data, ledger, Limits::default(), known, &clock)?;
        let now = clock.wall();
        let result = json!({
            "ledger": restored.ledger.to_string(),
            "epoch": restored.epoch,
            "copyEndedAtSeq": restored.copy_ended_at.0,
            "firstFence": restored.fence.0 + 1,
            "heldBackMs": restored.held_back_ms,
            "leases": restored.leases,
            "nobodyHolds": self.nobody_holds,
        });
        self.format.print(&result, |_| as_text(&restored, self.nobody_holds, now))
    }
}

fn as_text(restored: &Restored, nobody_holds: bool, now: u64) -> String {
    let Restored { ledger, epoch, copy_ended_at, fence, held_back_ms, leases } = restored;
    let grants = if nobody_holds {
        format!("Grants are given at once. Live leases in the copy, which are over now: {leases}.")
    } else {
        let until = time_of_wall(now.saturating_add(held_back_ms.saturating_mul(1_000_000)));
        format!(
            "Nothing is granted or renewed for {}, until {until}: by then whatever the original granted is over. \
             Live leases in the copy, which end when they were to end or are released before: {leases}.",
            in_words(*held_back_ms)
        )
    };
    format!(
        "Ledger {ledger} goes on from this copy, which ended at event {}, in epoch {epoch}.\n\
         The first fence that can follow is {}: the original never gave it out.\n\
         {grants}\n\
         A new key signs from now on; what copies of the old one sign no longer counts here. Whoever checks passports needs \
         the new one, and should drop the old: tenure passport key\n\
         WARNING: the original must never be started again. If it still exists, remove it. Then: tenure serve\n",
        copy_ended_at.0,
        fence.0 + 1,
    )
}
