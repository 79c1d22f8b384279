//! What the tests of signatures have in common: a ledger, a key, and some leases.

use tenure_core::kernel::{
    Fence, Holder, IssuedLease, Labels, LeaseMode, LeaseTerms, Nonce, Principal, Resource, Tick, TickDuration,
};
use tenure_ledger::signing::{
    KeyAdded, KeyEntry, Keyring, Leaf, LedgerId, LedgerSigningKey, SignedBatch, sign_batch,
};

pub const LEDGER: LedgerId = LedgerId([0x4f, 0x1d, 0x09, 0xaa, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);

pub const OTHER_LEDGER: LedgerId = LedgerId([7; 16]);

/// The first event of the batch in the golden vectors.
pub const FIRST_SEQ: u64 = 42;

/// A key whose secret half is 0, 1, 2, ….
pub fn key() -> LedgerSigningKey {
    LedgerSigningKey::from_secret(&std::array::from_fn(|index| u8::try_from(index).unwrap()))
}

pub fn other_key(number: u8) -> LedgerSigningKey {
    LedgerSigningKey::from_secret(&[number; 32])
}

/// The keys of a ledger in which [`key`] was added by event 1.
pub fn keyring() -> Keyring {
    let mut keyring = Keyring::new(LEDGER);
    keyring.apply(1, &key_added(&key(), &key())).unwrap();
    keyring
}

/// The entry that adds one key on another's word.
pub fn key_added(key: &LedgerSigningKey, by: &LedgerSigningKey) -> KeyEntry {
    KeyEntry::Added(KeyAdded::new(LEDGER, key.public_key(), by))
}

pub fn issued_lease(
    resource: &str,
    holder: &str,
    mode: LeaseMode,
    fence: u64,
    at: u64,
    expires_at: u64,
) -> IssuedLease {
    IssuedLease {
        fence: Fence(fence),
        resource: Resource::parse(resource).unwrap(),
        holder: Holder::parse(holder).unwrap(),
        principal: Principal::parse("token:ci").unwrap(),
        terms: LeaseTerms {
            mode,
            issued_at: Tick(at),
            expires_at: Tick(expires_at),
            ttl: TickDuration(expires_at - at),
            renewals: 0,
            nonce: Nonce([9; 16]),
            labels: Labels::default(),
        },
        key: None,
        ticket: None,
        continues: None,
        authority: None,
    }
}

/// The three leases of the golden vectors.
pub fn three_leases() -> [IssuedLease; 3] {
    [
        issued_lease("deploy:prod", "ci-42", LeaseMode::Exclusive, 17, 1_000_000, 31_000_000),
        issued_lease("tuner:2", "größe", LeaseMode::Shared, 18, 1_000_000, u64::MAX),
        issued_lease("work:T-17", "a", LeaseMode::Renames, (1 << 53) - 1, 0, 1),
    ]
}

/// The leaves of `count` leases, all different.
pub fn leaves(count: usize) -> Vec<Leaf> {
    let mut lease = issued_lease("deploy:prod", "ci-42", LeaseMode::Exclusive, 0, 0, 1);
    let leaf = |number| {
        lease.fence = Fence(number);
        Leaf::of_issued(LEDGER, &lease)
    };
    (1..).map(leaf).take(count).collect()
}

/// [`three_leases`], signed.
pub fn signed_batch() -> SignedBatch {
    sign_batch(&key(), LEDGER, FIRST_SEQ, &three_leases().map(|lease| Leaf::of_issued(LEDGER, &lease)))
        .unwrap()
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
