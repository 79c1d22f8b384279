//! What several parts of a saved state have in common: the terms of a lease, what is wanted, labels.

use super::RestoreError;
use super::bytes::{Put, Take};
use crate::kernel::answer::End;
use crate::kernel::event::Cause;
use crate::kernel::mode::Mode;
use crate::kernel::name::{Labels, Resource};
use crate::kernel::value::{Digest, Nonce, RequestKey, Span, Tick};
use crate::kernel::want::{Others, Want};
use crate::lease::ReleaseReason;
use crate::rules::names::InvalidInput;

/// What a live lease and one that is over both have.
pub(super) struct Terms {
    pub(super) mode: Mode,
    pub(super) issued_at: Tick,
    pub(super) expires_at: Tick,
    pub(super) ttl: Span,
    pub(super) renewals: u32,
    pub(super) nonce: Nonce,
    pub(super) labels: Labels,
}

impl Terms {
    /// The fewest bytes that terms have.
    pub(super) const LEAST: usize = 6 + 16;
}

impl Put<'_> {
    pub(super) fn terms(&mut self, terms: &Terms) {
        self.mode(terms.mode);
        self.past(terms.issued_at);
        self.number(terms.expires_at.since(terms.issued_at).0);
        self.number(terms.ttl.0);
        self.number(terms.renewals.into());
        self.bytes(&terms.nonce.0);
        self.labels(&terms.labels);
    }

    /// What is wanted, but for the resources, which stand before it.
    pub(super) fn want(&mut self, want: &Want) {
        self.mode(want.mode);
        self.number(want.ttl.0);
        self.bytes(&want.nonce.0);
        self.labels(&want.labels);
    }

    /// A tick that has passed.
    pub(super) fn past(&mut self, tick: Tick) {
        self.number(self.now.since(tick).0);
    }

    pub(super) fn end(&mut self, end: End) {
        self.byte(code_of_end(end));
    }

    fn mode(&mut self, mode: Mode) {
        self.byte(mode as u8);
    }

    fn labels(&mut self, labels: &Labels) {
        self.count(labels.iter().count());
        for (name, value) in labels.iter() {
            self.text(name);
            self.text(value);
        }
    }
}

impl Take<'_> {
    pub(super) fn terms(&mut self) -> Result<Terms, RestoreError> {
        let mode = self.mode()?;
        let issued_at = self.past()?;
        Ok(Terms {
            mode,
            issued_at,
            expires_at: Tick(self.after(issued_at.0)?),
            ttl: self.ttl()?,
            renewals: u32::try_from(self.number()?).map_err(|_| self.damaged("it was renewed too often"))?,
            nonce: Nonce(self.array()?),
            labels: self.labels()?,
        })
    }

    /// What is wanted, but for the resources, which stand before it.
    pub(super) fn want(&mut self, resource: Resource, others: Others) -> Result<Want, RestoreError> {
        let (mode, ttl, nonce) = (self.mode()?, self.ttl()?, Nonce(self.array()?));
        Ok(Want { resource, others, mode, ttl, nonce, labels: self.labels()? })
    }

    /// A tick that has passed.
    pub(super) fn past(&mut self) -> Result<Tick, RestoreError> {
        self.before(self.now)
    }

    /// A tick at or before `tick`.
    pub(super) fn before(&mut self, tick: Tick) -> Result<Tick, RestoreError> {
        let since = self.number()?;
        tick.0.checked_sub(since).map(Tick).ok_or_else(|| self.damaged("it was before all time"))
    }

    pub(super) fn request_key(&mut self) -> Result<RequestKey, RestoreError> {
        Ok(RequestKey { key: Digest(self.array()?), body: Digest(self.array()?) })
    }

    pub(super) fn end(&mut self) -> Result<End, RestoreError> {
        let code = self.byte()?;
        let found = ENDS.into_iter().find(|end| code_of_end(*end) == code);
        found.ok_or_else(|| self.damaged("it ended in an unknown way"))
    }

    /// A name, checked as if it had just come in.
    pub(super) fn name<T>(
        &mut self,
        parse: impl FnOnce(&str) -> Result<T, InvalidInput>,
    ) -> Result<T, RestoreError> {
        let text = self.text()?;
        parse(text).map_err(|_| self.damaged("a name is none"))
    }

    fn mode(&mut self) -> Result<Mode, RestoreError> {
        let code = self.byte()?;
        let found = Mode::ALL.get(usize::from(code)).copied();
        found.ok_or_else(|| self.damaged("it is held in an unknown mode"))
    }

    fn ttl(&mut self) -> Result<Span, RestoreError> {
        self.after(0).map(Span)
    }

    fn labels(&mut self) -> Result<Labels, RestoreError> {
        let count = self.count(2)?;
        self.ensure(count <= Labels::MOST, "it has too many labels")?;
        let mut labels: Vec<(&str, &str)> = Vec::new();
        for _ in 0..count {
            let label = (self.text()?, self.text()?);
            let ascends = labels.last().is_none_or(|before| before.0 < label.0);
            self.ensure(ascends, "labels are not in their order")?;
            labels.push(label);
        }
        Labels::parse(labels).map_err(|_| self.damaged("a label is none"))
    }
}

/// Whatever [`code_of_end`] has a code for.
const ENDS: [End; 10] = [
    End::Expired,
    End::Released(ReleaseReason::Completed),
    End::Released(ReleaseReason::Aborted),
    End::Released(ReleaseReason::Voluntary),
    End::Revoked(Cause::Revoked),
    End::Revoked(Cause::Reclaimed),
    End::Revoked(Cause::Wiped),
    End::Revoked(Cause::Disconnected),
    End::Revoked(Cause::Transferred),
    End::Revoked(Cause::Died),
];

fn code_of_end(end: End) -> u8 {
    match end {
        End::Expired => 0,
        End::Released(ReleaseReason::Completed) => 1,
        End::Released(ReleaseReason::Aborted) => 2,
        End::Released(ReleaseReason::Voluntary) => 3,
        End::Revoked(Cause::Revoked) => 4,
        End::Revoked(Cause::Reclaimed) => 5,
        End::Revoked(Cause::Wiped) => 6,
        End::Revoked(Cause::Disconnected) => 7,
        End::Revoked(Cause::Transferred) => 8,
        End::Revoked(Cause::Died) => 9,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A code that moves would give old checkpoints another meaning.
    #[test]
    fn codes_stay_what_they_are() {
        assert_eq!(ENDS.map(code_of_end), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(Mode::ALL.map(|mode| mode as u8), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert!(Take::new(&[10]).end().is_err() && Take::new(&[8]).mode().is_err());
    }

    #[test]
    fn labels_come_back_and_only_in_their_order() {
        let mut bytes = Vec::new();
        let mut write = |piece: &[u8]| bytes.extend_from_slice(piece);
        let labels = Labels::parse([("b", "2"), ("a", "")]).expect("labels");
        let mut put = Put::new(&mut write, Tick(0));
        put.labels(&labels);
        put.finish();
        assert_eq!(bytes, b"\x02\x01a\x00\x01b\x012");
        assert_eq!(Take::new(&bytes).labels(), Ok(labels));
        assert!(Take::new(b"\x02\x01b\x012\x01a\x00").labels().is_err(), "not ascending");
        assert!(Take::new(b"\x02\x01a\x00\x01a\x00").labels().is_err(), "one name twice");
        assert!(Take::new(b"\x01\x01\x0a\x00").labels().is_err(), "a control character");
    }
}
