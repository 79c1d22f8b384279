//! From what is on the disk to the state: the only way there is.

use tenure_core::kernel::{
    ApplyError, DecodeError, HashSeed, KernelState, Limits, RestoreError, Tick, decode,
};
use tenure_core::ledger::EventRecord;
use tenure_ledger::signing::{
    BatchSignature, KeyEntry, KeyEntryError, Keyring, KeyringError, Leaf, LedgerId, LedgerSigningKey,
    SignatureError,
};
use tenure_ledger::{
    Batch, BatchBytes, Checkpoint, CheckpointParts, Head, LedgerReader, ReadError, Seq, chain_hash,
};
use thiserror::Error;

/// Why a ledger does not add up to a state. Nothing was changed; a human must look.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReplayError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("the checkpoint after event {} cannot be used", at.0)]
    State {
        /// The last event that is in it.
        at: Seq,
        #[source]
        source: RestoreError,
    },
    #[error("the checkpoint after event {} cannot be believed: {reason}", at.0)]
    Checkpoint {
        /// The last event that is in it.
        at: Seq,
        reason: &'static str,
    },
    /// An event that this version does not know, or cannot read.
    #[error("event {} cannot be read", at.0)]
    Decode {
        at: Seq,
        #[source]
        source: DecodeError,
    },
    /// An event that cannot follow those before it.
    #[error("event {} does not follow", at.0)]
    Apply {
        at: Seq,
        #[source]
        source: ApplyError,
    },
    /// An entry about a key that cannot be read.
    #[error("event {}, about a key, cannot be read", at.0)]
    KeyEntry {
        at: Seq,
        #[source]
        source: KeyEntryError,
    },
    /// An entry about a key that nobody who may vouches for.
    #[error("event {}, about a key, does not follow", at.0)]
    Keyring {
        at: Seq,
        #[source]
        source: KeyringError,
    },
    /// A batch that does not come right behind the one before.
    #[error("events are missing between {} and {}", after.0, found.0)]
    Gap { after: Seq, found: Seq },
    /// A batch that no key of the ledger signed.
    #[error("the batch from event {} on is not signed as it should be", at.0)]
    Unsigned {
        at: Seq,
        /// Why not; nothing where there is no signature at all.
        #[source]
        source: Option<SignatureError>,
    },
}

/// Adds events up to a state, batch by batch.
#[derive(Debug, Clone)]
pub struct Replay {
    ledger: LedgerId,
    state: KernelState,
    keyring: Keyring,
    /// What the keyring was made of; a checkpoint takes it along.
    keys: Vec<(u64, EventRecord)>,
    head: Head,
    checks_signatures: bool,
}

impl Replay {
    /// From before the first event. `empty` is the state there.
    pub fn new(ledger: LedgerId, empty: KernelState) -> Replay {
        let (keyring, head) = (Keyring::new(ledger), Head::default());
        Replay { ledger, state: empty, keyring, keys: Vec::new(), head, checks_signatures: false }
    }

    /// From a checkpoint on, or from before the first event where there is none.
    pub fn begin(
        checkpoint: Option<&Checkpoint>,
        ledger: LedgerId,
        limits: Limits,
        hash_seed: HashSeed,
    ) -> Result<Replay, ReplayError> {
        match checkpoint {
            Some(checkpoint) => Replay::resume(checkpoint, limits, hash_seed),
            None => Ok(Replay::new(ledger, KernelState::new(ledger.tag(), limits, hash_seed))),
        }
    }

    fn resume(checkpoint: &Checkpoint, limits: Limits, hash_seed: HashSeed) -> Result<Replay, ReplayError> {
        let (ledger, head) = (checkpoint.header.ledger, checkpoint.header.head);
        let unbelievable = |reason| ReplayError::Checkpoint { at: head.seq, reason };
        let keyring = checkpoint.verify().map_err(unbelievable)?;
        let keys = checkpoint.key_entries().map_err(unbelievable)?;
        let state = KernelState::restore(checkpoint.state(), ledger.tag(), limits, hash_seed)
            .map_err(|source| ReplayError::State { at: head.seq, source })?;
        Ok(Replay { ledger, state, keyring, keys, head, checks_signatures: false })
    }

    /// The same, but every signature is checked too: for `tenure verify`, not for a start, which has to be quick.
    #[must_use]
    pub fn with_signature_checks(self) -> Replay {
        Replay { checks_signatures: true, ..self }
    }

    pub fn apply(&mut self, batch: &Batch) -> Result<(), ReplayError> {
        if batch.first.0 != self.head.seq.0 + 1 {
            return Err(ReplayError::Gap { after: self.head.seq, found: batch.first });
        }
        let had_keys = self.keyring.first().is_some();
        let mut leaves = Vec::new();
        for (number, record) in (batch.first.0..).zip(&batch.records) {
            let at = Seq(number);
            if let Some(entry) =
                KeyEntry::from_record(record).map_err(|source| ReplayError::KeyEntry { at, source })?
            {
                self.keyring.apply(number, &entry).map_err(|source| ReplayError::Keyring { at, source })?;
                self.keys.push((number, record.clone()));
            }
            let event =
                decode(record, self.ledger.tag()).map_err(|source| ReplayError::Decode { at, source })?;
            if let Some(event) = event {
                self.state.apply(&event).map_err(|source| ReplayError::Apply { at, source })?;
                if self.checks_signatures {
                    leaves.extend(Leaf::of_event(self.ledger, &self.state, &event, &mut Vec::new()));
                }
            }
        }
        // The batch that brings the first key cannot be signed with a key yet.
        if self.checks_signatures && had_keys {
            self.check_signature(batch, leaves)
                .map_err(|source| ReplayError::Unsigned { at: batch.first, source })?;
        }
        self.head = batch.head();
        Ok(())
    }

    fn check_signature(&self, batch: &Batch, mut leaves: Vec<Leaf>) -> Result<(), Option<SignatureError>> {
        let unsigned = BatchBytes::new(batch.first, &batch.records);
        let signed = unsigned.clone().with_signature(&batch.signature);
        // What was written may hold more than this version reads. Then nothing can be said of its signature.
        if batch.signature.is_empty() || chain_hash(self.head.hash, signed.as_slice()) != batch.hash {
            return Err(None);
        }
        leaves.push(Leaf::of_batch(self.ledger, self.head.hash, &unsigned));
        let signature = BatchSignature::from_bytes(&batch.signature).map_err(|error| Some(error.into()))?;
        if signature.first_seq() != batch.first.0 {
            return Err(None);
        }
        signature.verify(&self.keyring, self.ledger, &leaves).map(|_| ()).map_err(Some)
    }

    pub fn ledger(&self) -> LedgerId {
        self.ledger
    }

    /// The state after the last batch.
    pub fn state(&self) -> &KernelState {
        &self.state
    }

    /// The keys that may sign now.
    pub fn keyring(&self) -> &Keyring {
        &self.keyring
    }

    /// The last event that was added.
    pub fn head(&self) -> Head {
        self.head
    }

    pub fn now(&self) -> Tick {
        self.state.now()
    }

    /// The state, to go on with.
    pub fn into_state(self) -> KernelState {
        self.state
    }

    /// All of it as a checkpoint, signed with `key`.
    pub fn encode_checkpoint(&self, epoch: u64, key: &LedgerSigningKey) -> Vec<u8> {
        let mut state = Vec::new();
        self.state.save(&mut |piece| state.extend_from_slice(piece));
        let parts =
            CheckpointParts { ledger: self.ledger, epoch, head: self.head, keys: &self.keys, state: &state };
        Checkpoint::write(parts, key)
    }
}

/// Adds up everything in a ledger, from its newest checkpoint on.
pub fn replay(ledger: &dyn LedgerReader, limits: Limits, hash_seed: HashSeed) -> Result<Replay, ReplayError> {
    let checkpoint = ledger.newest_checkpoint()?;
    let mut replay = Replay::begin(checkpoint.as_ref(), ledger.ledger(), limits, hash_seed)?;
    for batch in ledger.read(replay.head().seq) {
        replay.apply(&batch?)?;
    }
    Ok(replay)
}
