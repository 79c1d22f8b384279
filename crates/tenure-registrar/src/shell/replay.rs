//! From what is on the disk to the state: the only way there is.

use tenure_core::kernel::{DecodeError, Misfit, State, decode};
use tenure_ledger::{Ledger, ReadError, Seq};
use thiserror::Error;

/// Why a ledger does not add up to a state. Nothing was changed; a human must look.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The ledger cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// An event that this version does not know, or cannot read.
    #[error("event {} cannot be read", at.0)]
    Decode {
        /// Which event.
        at: Seq,
        /// What is wrong with it.
        #[source]
        source: DecodeError,
    },
    /// An event that cannot follow those before it.
    #[error("event {} does not follow", at.0)]
    Misfit {
        /// Which event.
        at: Seq,
        /// Why not.
        #[source]
        source: Misfit,
    },
}

/// Applies every event of `ledger` to `state`, which is as before the first.
pub fn replay(ledger: &dyn Ledger, mut state: State) -> Result<State, ReplayError> {
    for batch in ledger.read(Seq(0)) {
        let batch = batch?;
        for (number, record) in (batch.first.0..).zip(&batch.records) {
            let at = Seq(number);
            let event = decode(record, state.tag()).map_err(|source| ReplayError::Decode { at, source })?;
            if let Some(event) = event {
                state.apply(&event).map_err(|source| ReplayError::Misfit { at, source })?;
            }
        }
    }
    Ok(state)
}
