//! Passports: checked anywhere, and worth nothing once a single bit is another.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proptest::prelude::*;
use tenure_core::kernel::{Fence, LeaseMode, Tick};
use tenure_ledger::signing::{
    Claims, Leaf, Passport, PassportError, PublicKey, SignedTerms, TrustedKeys, sign_batch,
};

use crate::signing::fixtures::{
    LEDGER, OTHER_LEDGER, issued_lease, key, keyring, leaves, other_key, signed_batch, three_leases,
};

const ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

fn passport() -> Passport {
    let [first, ..] = three_leases();
    Passport::issue(LEDGER, SignedTerms::from(&first), signed_batch().lease_signature(0).unwrap())
}

fn trusted() -> TrustedKeys {
    TrustedKeys::from_iter([other_key(2).public_key(), key().public_key()])
}

fn check(text: &str) -> Result<Claims, PassportError> {
    Passport::parse(text)?.verify(&trusted())
}

// Computed by another program, from the description alone.
#[test]
fn golden_passport() {
    assert_eq!(
        passport().to_text(),
        "AU8dCaoBAgMEBQYHCAkKCwwAAAAAAAAAEQEAAAAAAA9CQAAAAAAB2QXAAAAAC2RlcGxveTpwcm9kAAAABWNpLTQyAVSPjBZFzlW0\
         AAAAAAAAACoAAwAAexxTomusLEf9hUeBGPtFRRQ76KHPzbPrDCMNIB5d9pUg745A6gfmb-YY2BT8w-cVt9STFcSu7tmGqVUkKKDs\
         BklU92BAKgPKP6pwjgyOoX60zWvD3KAOpmKHls2V6ygaIMzlW9L53_SVFJUZy6YB8qHwpbDxnEMe2gxFJRyuZFk"
    );
}

#[test]
fn a_verified_passport_yields_the_claims_of_its_lease() {
    let claims = check(&passport().to_text()).unwrap();
    assert_eq!((claims.ledger, claims.lease_id.as_str()), (LEDGER, "4f1d09aa-17"));
    assert_eq!((claims.terms.resource.as_str(), claims.terms.holder.as_str()), ("deploy:prod", "ci-42"));
    assert_eq!((claims.terms.mode, claims.terms.fence), (LeaseMode::Exclusive, Fence(17)));
    assert_eq!((claims.terms.at, claims.terms.expires_at), (Tick(1_000_000), Tick(31_000_000)));
    assert_eq!(claims.key_id, key().id());
}

#[test]
fn a_passport_verifies_only_with_a_trusted_key() {
    let passport = passport();
    let key_id = key().id();
    let without_keys = passport.verify(&TrustedKeys::default());
    assert_eq!(without_keys, Err(PassportError::UntrustedKey { key_id }));
    let other = passport.verify(&TrustedKeys::from_iter([other_key(2).public_key()]));
    assert_eq!(other, Err(PassportError::UntrustedKey { key_id }));
    let typed = PublicKey::parse("03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8").unwrap();
    assert!(passport.verify(&TrustedKeys::from_iter([typed])).is_ok());
}

#[test]
fn a_signature_is_valid_only_for_its_own_lease() {
    let key_id = key().id();
    let [first, second, _] = three_leases();
    let signature = || signed_batch().lease_signature(0).unwrap();
    let not_genuine = Err(PassportError::NotGenuine { key_id });
    let claim =
        |ledger, terms: SignedTerms<'_>| Passport::issue(ledger, terms, signature()).verify(&trusted());
    let terms = SignedTerms::from(&first);
    assert!(claim(LEDGER, terms.clone()).is_ok());
    assert_eq!(claim(OTHER_LEDGER, terms.clone()), not_genuine);
    assert_eq!(claim(LEDGER, SignedTerms::from(&second)), not_genuine);
    let altered_terms = [
        SignedTerms { resource: Cow::Borrowed(&second.resource), ..terms.clone() },
        SignedTerms { holder: Cow::Borrowed(&second.holder), ..terms.clone() },
        SignedTerms { mode: LeaseMode::Shared, ..terms.clone() },
        SignedTerms { fence: Fence(18), ..terms.clone() },
        SignedTerms { at: Tick(1_000_001), ..terms.clone() },
        SignedTerms { expires_at: Tick(31_000_001), ..terms },
    ];
    for other in altered_terms {
        assert_eq!(claim(LEDGER, other.clone()), not_genuine, "{other:?}");
    }
}

#[test]
fn a_passport_text_with_any_flipped_bit_is_rejected() {
    let good = passport().to_text();
    for bit in 0..good.len() * 8 {
        let mut bytes = good.clone().into_bytes();
        bytes[bit / 8] ^= 1 << (bit % 8);
        // What is no text any more cannot even be asked about.
        if let Ok(text) = String::from_utf8(bytes) {
            assert!(check(&text).is_err(), "bit {bit}: {text}");
        }
    }
}

/// Passports of leases with names of different lengths, so that the text ends in each of its three ways.
fn passports_of_every_length() -> Vec<String> {
    let text = |holder: &str| {
        let lease = issued_lease("a", holder, LeaseMode::Exclusive, 1, 0, 1);
        let signed = sign_batch(&key(), LEDGER, 2, &[Leaf::of_issued(LEDGER, &lease)]).unwrap();
        Passport::issue(LEDGER, SignedTerms::from(&lease), signed.lease_signature(0).unwrap()).to_text()
    };
    let texts: Vec<_> = ["a", "ab", "abc"].map(text).into();
    let mut ends: Vec<_> = texts.iter().map(|text| text.len() % 4).collect();
    ends.sort_unstable();
    assert_eq!(ends, [0, 2, 3], "with no, four and two bits left over");
    texts
}

#[test]
fn a_passport_with_any_replaced_character_is_rejected() {
    for good in passports_of_every_length() {
        assert!(check(&good).is_ok());
        let characters: Vec<char> = good.chars().collect();
        for place in 0..characters.len() {
            for other in
                ALPHABET.chars().chain("=+/ .\n\0é".chars()).filter(|other| *other != characters[place])
            {
                let mut altered = characters.clone();
                altered[place] = other;
                let text: String = altered.into_iter().collect();
                assert!(check(&text).is_err(), "{other:?} at {place}: {text}");
            }
        }
    }
}

#[test]
fn a_truncated_or_extended_passport_is_rejected() {
    for good in passports_of_every_length() {
        for length in 0..good.len() {
            assert!(check(&good[..length]).is_err(), "cut at {length}");
        }
        for more in ["A", "AA", "AAAA", "=", "==", "\n", " "] {
            assert!(check(&format!("{good}{more}")).is_err(), "{more:?} after");
            assert!(check(&format!("{more}{good}")).is_err(), "{more:?} before");
        }
    }
}

/// The passport with other bytes from `at` on.
fn altered(at: usize, bytes: &[u8]) -> String {
    let mut altered = URL_SAFE_NO_PAD.decode(passport().to_text()).unwrap();
    altered[at..at + bytes.len()].copy_from_slice(bytes);
    URL_SAFE_NO_PAD.encode(altered)
}

#[test]
fn passport_errors_name_the_invalid_part() {
    let error_text = |text: &str| check(text).unwrap_err().to_string();
    assert_eq!(error_text("not a passport"), "the passport is not base64url without padding");
    assert_eq!(error_text(""), "the passport cannot be read: it is cut off");
    assert_eq!(error_text("Aw"), "the passport cannot be read: form 3 is unknown; this version reads form 1");
    assert_eq!(error_text(&"A".repeat(20_000)), "the passport has 20000 characters, more than any passport");
    let fence = "the passport cannot be read: its fence is larger than any";
    assert_eq!(error_text(&altered(17, &(1_u64 << 53).to_be_bytes())), fence);
    assert_eq!(error_text(&altered(25, &[9])), "the passport cannot be read: its mode is unknown");
    let name = "the passport cannot be read: resource: contains the control character U+0000";
    assert_eq!(error_text(&altered(46, &[0])), name);
    assert_eq!(error_text(&altered(46, &[0xff])), "the passport cannot be read: its resource is not UTF-8");
    let key_id = key().id();
    let forged = altered(46, b"D");
    assert_eq!(error_text(&forged), format!("the passport is not genuine: key {key_id} did not sign it"));
}

#[test]
fn a_passport_holds_the_longest_names_of_the_largest_batch() {
    let name = "ä".repeat(2048);
    let resource = "ä".repeat(2048 + 8);
    let lease = issued_lease(&resource, &name, LeaseMode::Renames, (1 << 53) - 1, 0, u64::MAX);
    let mut all = leaves(4096);
    all[4095] = Leaf::of_issued(LEDGER, &lease);
    let signed = sign_batch(&key(), LEDGER, u64::MAX, &all).unwrap();
    let signature = signed.lease_signature(4095).unwrap();
    assert_eq!(signature.verify(&keyring(), LEDGER, all[4095]), Ok(()));
    let text = Passport::issue(LEDGER, SignedTerms::from(&lease), signature).to_text();
    assert_eq!(check(&text).unwrap().terms.holder.as_str(), name);
    assert_eq!(check(&format!("{text}AAAA")), Err(PassportError::TooLong { characters: text.len() + 4 }));
}

proptest! {
    #[test]
    fn parsing_any_text_as_a_passport_does_not_panic(text in ".{0,300}|[A-Za-z0-9_-]{0,300}|AQ[A-Za-z0-9_-]{300,400}") {
        prop_assert!(check(&text).is_err());
    }

    #[test]
    fn a_parsed_passport_has_one_encoding(changes in proptest::collection::vec((any::<prop::sample::Index>(), 0_usize..64), 0..4)) {
        let good = passport().to_text();
        let mut text = good.clone().into_bytes();
        for (place, letter) in changes {
            let place = place.index(text.len());
            text[place] = ALPHABET.as_bytes()[letter];
        }
        let text = String::from_utf8(text).unwrap();
        if let Ok(passport) = Passport::parse(&text) {
            prop_assert_eq!(passport.to_text(), text.clone());
            prop_assert_eq!(passport.verify(&trusted()).is_ok(), text == good);
        }
    }
}
