//! A right to upload one image of firmware, for a program that may do nothing else.

use parking_lot::Mutex;
use serde::Serialize;
use tenure_control::{Problem, TokenDigest};
use tenure_core::kernel::{Tick, TickDuration};
use zeroize::Zeroizing;

use super::connection::new_token;

/// How long such a right lasts.
const LIFE: TickDuration = TickDuration::from_secs(300);

/// The right that is out, if one is.
#[derive(Default)]
pub(super) struct OtaToken(Mutex<Option<(TokenDigest, Tick)>>);

/// What whoever asked for it is told, once.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct IssuedOtaToken<'a> {
    token: &'a str,
    expires_in_ms: u64,
    header: &'a str,
}

/// What anybody is told of it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OtaTokenStatus {
    active: bool,
    expires_in_ms: u64,
}

pub(super) const HEADER: &str = "X-OTA-Token";

impl OtaToken {
    /// A new one. The one before is worth nothing from now on.
    pub(super) fn make(&self, now: Tick) -> Result<Zeroizing<String>, Problem> {
        let token = new_token()?;
        *self.0.lock() = Some((TokenDigest::of(&token), now.saturating_add(LIFE)));
        Ok(token)
    }

    pub(super) fn issued_view(token: &str) -> IssuedOtaToken<'_> {
        IssuedOtaToken { token, expires_in_ms: LIFE.as_millis(), header: HEADER }
    }

    pub(super) fn status(&self, now: Tick) -> OtaTokenStatus {
        let remaining_ms = self.0.lock().as_ref().map_or(0, |(_, until)| until.since(now).as_millis());
        OtaTokenStatus { active: remaining_ms > 0, expires_in_ms: remaining_ms }
    }

    /// Uses it up, if this is the one.
    pub(super) fn redeem(&self, token: &str, now: Tick) -> bool {
        let mut out = self.0.lock();
        let is_this = out.as_ref().is_some_and(|(digest, until)| now < *until && digest.matches(token));
        if is_this {
            *out = None;
        }
        is_this
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ota_token_is_redeemed_once_and_only_before_it_expires() {
        let (tokens, now) = (OtaToken::default(), Tick(7));
        let first = tokens.make(now).unwrap();
        let second = tokens.make(now).unwrap();
        assert!(!tokens.redeem(&first, now) && tokens.status(now).active);
        assert!(tokens.redeem(&second, now) && !tokens.redeem(&second, now) && !tokens.status(now).active);
        let third = tokens.make(now).unwrap();
        assert!(!tokens.redeem(&third, now.saturating_add(LIFE)));
    }
}
