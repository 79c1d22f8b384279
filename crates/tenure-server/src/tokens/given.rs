//! A token that an admin made.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tenure_core::kernel::{Principal, Tick};

use super::Scopes;

/// What two clocks say. Either ends a token.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    /// Unix milliseconds: what a date in a file is compared with.
    pub(crate) wall_ms: u64,
    /// The registrar's clock, which nobody can set back.
    pub(crate) tick: Tick,
}

/// A token that an admin made. Its secret is not kept, only a digest of it.
pub(crate) struct Given {
    pub(crate) id: String,
    /// Its name, which is also who speaks with it.
    pub(crate) principal: Principal,
    pub(crate) scopes: Scopes,
    pub(crate) resources: Arc<[String]>,
    pub(crate) created_ms: u64,
    pub(crate) expires_ms: Option<u64>,
    pub(super) digest: blake3::Hash,
    /// The end on the registrar's clock, as far as this process knows.
    pub(super) deadline: Option<Tick>,
    pub(super) revoked: Arc<AtomicBool>,
    /// 0 is never.
    pub(super) last_used_ms: AtomicU64,
}

impl Given {
    /// Whether it can be used.
    pub(crate) fn is_good(&self, now: Now) -> bool {
        let is_over = self.expires_ms.is_some_and(|end| now.wall_ms >= end)
            || self.deadline.is_some_and(|end| now.tick >= end);
        !is_over && !self.revoked.load(Ordering::Acquire)
    }

    /// Whether it was revoked: for whoever has it in hand.
    pub(crate) fn revoked(&self) -> Arc<AtomicBool> {
        self.revoked.clone()
    }

    /// When it was last used, since the server started.
    pub(crate) fn last_used_ms(&self) -> Option<u64> {
        Some(self.last_used_ms.load(Ordering::Relaxed)).filter(|time| *time > 0)
    }

    /// The tick at which it ends, from the two clocks at one moment.
    pub(super) fn deadline(expires_ms: Option<u64>, now: Now) -> Option<Tick> {
        let left = expires_ms?.saturating_sub(now.wall_ms).saturating_mul(1_000);
        Some(Tick(now.tick.0.saturating_add(left)))
    }
}
