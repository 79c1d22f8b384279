//! What all events up to a point add up to, so that a start need not read them, and a prune can forget them.
//!
//! ```text
//! "tenure-checkpoint-1\n", 20 | ledger, 16 | epoch, 8 | seq, 8 | hash, 32 | keys' length, 4 | state's length, 8
//! | sum of all that, 4 | keys | state | BLAKE3 of all before it, 32 | key id, 8 | signature, 64
//! ```
//!
//! It is signed, so it can stand for what was pruned: an anchor. `keys` are the entries of the ledger that say
//! which keys may sign; they outlive the segments that they stood in.

use prost::Message;
use tenure_core::ledger::EventRecord;
use tenure_core::proto;

use crate::batch::ChainHash;
use crate::ledger::{Head, LedgerId, Seq};
use crate::signing::{CheckpointSignature, KeyEntry, Keyring, LedgerSigningKey};

const MAGIC: &[u8; 20] = b"tenure-checkpoint-1\n";
const FIELDS: usize = 16 + 8 + 8 + 32 + 4 + 8;
const HEADER_LENGTH: usize = MAGIC.len() + FIELDS + 4;
const TRAILER_LENGTH: usize = 32 + 8 + 64;

/// What a checkpoint says of itself in its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointHeader {
    /// Of which ledger.
    pub ledger: LedgerId,
    /// In which epoch it was made.
    pub epoch: u64,
    /// The last event that is in it.
    pub head: Head,
    keys: usize,
    state: usize,
}

/// A checkpoint that was read whole, with its sums as they should be.
#[derive(Clone)]
pub struct Checkpoint {
    /// What it says of itself.
    pub header: CheckpointHeader,
    bytes: Vec<u8>,
}

/// What a checkpoint is made of.
#[derive(Debug, Clone, Copy)]
pub struct CheckpointParts<'a> {
    /// Of which ledger.
    pub ledger: LedgerId,
    /// In which epoch.
    pub epoch: u64,
    /// The last event that is in it.
    pub head: Head,
    /// Every entry about keys up to there, with its number.
    pub keys: &'a [(u64, EventRecord)],
    /// The kernel's state, as bytes.
    pub state: &'a [u8],
}

impl CheckpointHeader {
    /// How many bytes it has.
    pub const BYTES: usize = HEADER_LENGTH;

    /// Reads the first bytes of a checkpoint; the reason if they say nothing that can be believed.
    pub fn parse(bytes: &[u8]) -> Result<CheckpointHeader, &'static str> {
        let cut = "the checkpoint is cut short";
        let (name, rest) = bytes.split_first_chunk::<20>().ok_or(cut)?;
        if name != MAGIC {
            return Err("the file is no checkpoint of this version");
        }
        let (ledger, rest) = rest.split_first_chunk::<16>().ok_or(cut)?;
        let (epoch, rest) = rest.split_first_chunk::<8>().ok_or(cut)?;
        let (seq, rest) = rest.split_first_chunk::<8>().ok_or(cut)?;
        let (hash, rest) = rest.split_first_chunk::<32>().ok_or(cut)?;
        let (keys, rest) = rest.split_first_chunk::<4>().ok_or(cut)?;
        let (state, rest) = rest.split_first_chunk::<8>().ok_or(cut)?;
        let (sum, _) = rest.split_first_chunk::<4>().ok_or(cut)?;
        if crc32c::crc32c(&bytes[..HEADER_LENGTH - 4]).to_be_bytes() != *sum {
            return Err("the head of the checkpoint has a wrong sum");
        }
        let length = |bytes: u64| usize::try_from(bytes).map_err(|_| "the checkpoint is too large");
        Ok(CheckpointHeader {
            ledger: LedgerId(*ledger),
            epoch: u64::from_be_bytes(*epoch),
            head: Head { seq: Seq(u64::from_be_bytes(*seq)), hash: ChainHash(*hash) },
            keys: length(u64::from(u32::from_be_bytes(*keys)))?,
            state: length(u64::from_be_bytes(*state))?,
        })
    }
}

impl Checkpoint {
    /// The bytes of a checkpoint, signed with `key`.
    pub fn write(parts: CheckpointParts<'_>, key: &LedgerSigningKey) -> Vec<u8> {
        let CheckpointParts { ledger, epoch, head, keys, state } = parts;
        let keys = encode_keys(keys);
        let mut bytes = Vec::with_capacity(HEADER_LENGTH + keys.len() + state.len() + TRAILER_LENGTH);
        bytes.extend(MAGIC);
        bytes.extend(ledger.0);
        bytes.extend(epoch.to_be_bytes());
        bytes.extend(head.seq.0.to_be_bytes());
        bytes.extend(head.hash.0);
        bytes.extend(u32::try_from(keys.len()).unwrap_or(u32::MAX).to_be_bytes());
        bytes.extend((state.len() as u64).to_be_bytes());
        bytes.extend(crc32c::crc32c(&bytes).to_be_bytes());
        bytes.extend_from_slice(&keys);
        bytes.extend_from_slice(state);
        let digest = *blake3::hash(&bytes).as_bytes();
        bytes.extend(digest);
        bytes.extend(CheckpointSignature::sign(key, ledger, &digest).to_bytes());
        bytes
    }

    /// Reads a checkpoint and checks every bit of it but the signature, for which see [`Self::verify`].
    pub fn read(bytes: Vec<u8>) -> Result<Checkpoint, &'static str> {
        let head = CheckpointHeader::parse(&bytes)?;
        let length = HEADER_LENGTH
            .checked_add(head.keys)
            .and_then(|sum| sum.checked_add(head.state)?.checked_add(TRAILER_LENGTH));
        if length != Some(bytes.len()) {
            return Err("the checkpoint does not have its length");
        }
        let (content, tail) = bytes.split_at(bytes.len() - TRAILER_LENGTH);
        if blake3::hash(content).as_bytes() != &tail[..32] {
            return Err("the checkpoint has a wrong hash");
        }
        Ok(Checkpoint { header: head, bytes })
    }

    /// The kernel's state, as bytes.
    pub fn state(&self) -> &[u8] {
        &self.bytes[HEADER_LENGTH + self.header.keys..HEADER_LENGTH + self.header.keys + self.header.state]
    }

    /// Every entry about keys up to it, with its number.
    pub fn key_entries(&self) -> Result<Vec<(u64, EventRecord)>, &'static str> {
        decode_keys(&self.bytes[HEADER_LENGTH..HEADER_LENGTH + self.header.keys])
    }

    /// The keys of the ledger at this point, after seeing that one of them signed this checkpoint.
    pub fn verify(&self) -> Result<Keyring, &'static str> {
        let mut keyring = Keyring::new(self.header.ledger);
        for (seq, record) in self.key_entries()? {
            let entry =
                KeyEntry::from_record(&record).ok().flatten().ok_or("an entry about a key cannot be read")?;
            keyring.apply(seq, &entry).map_err(|_| "an entry about a key does not follow")?;
        }
        let tail = &self.bytes[self.bytes.len() - TRAILER_LENGTH..];
        let signature = CheckpointSignature::from_bytes(&tail[32..]).ok_or("the seal is cut short")?;
        let is_genuine = signature.is_valid(&keyring, self.header.head.seq.0, &tail[..32]);
        if is_genuine { Ok(keyring) } else { Err("no key of the ledger signed the checkpoint") }
    }
}

fn encode_keys(keys: &[(u64, EventRecord)]) -> Vec<u8> {
    let key_at = |(seq, record): &(u64, EventRecord)| proto::KeyAt {
        seq: *seq,
        record: Some(proto::Record {
            event_type: record.event_type.clone(),
            session_id: record.session_id.clone(),
            actor_id: record.actor_id.clone(),
            payload: record.payload.clone(),
        }),
    };
    proto::CheckpointKeys { keys: keys.iter().map(key_at).collect() }.encode_to_vec()
}

fn decode_keys(bytes: &[u8]) -> Result<Vec<(u64, EventRecord)>, &'static str> {
    let problem = "the entries about keys cannot be read";
    let stored = proto::CheckpointKeys::decode(bytes).map_err(|_| problem)?;
    let key_at = |key: proto::KeyAt| {
        let record = key.record?;
        let record = EventRecord::new(record.event_type, record.session_id, record.actor_id, record.payload);
        Some((key.seq, record))
    };
    stored.keys.into_iter().map(|key| key_at(key).ok_or(problem)).collect()
}

impl std::fmt::Debug for Checkpoint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Checkpoint({:?}, {} bytes)", self.header.head, self.bytes.len())
    }
}
