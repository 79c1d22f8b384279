//! Finds secrets in what was printed, sent and stored, however they are written: as they are, in hexadecimal, in
//! base64 at any alignment and in both alphabets, percent-encoded; and the bytes that a secret stands for too.
//!
//! The tests of the program use this file as well: it needs nothing but the standard library.

use std::collections::HashMap;

/// How many bytes are compared at first.
const PREFIX_LENGTH: usize = 8;
/// What is shorter is found everywhere by chance.
const MIN_LENGTH: usize = 12;

const STANDARD_ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE_ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Secrets, ready to be looked for.
#[derive(Default)]
pub struct SecretScan {
    /// By what they begin with.
    encodings: HashMap<[u8; PREFIX_LENGTH], Vec<SecretEncoding>>,
    secrets: usize,
}

/// One way to write a secret.
struct SecretEncoding {
    secret: usize,
    name: &'static str,
    bytes: Vec<u8>,
}

/// A secret where none should be. It does not say which one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretMatch {
    /// Which of the secrets, in the order in which they were added.
    pub secret: usize,
    /// How it is written.
    pub encoding: &'static str,
    /// Where, in bytes from the beginning.
    pub offset: usize,
}

impl SecretScan {
    /// How many secrets are looked for.
    pub fn len(&self) -> usize {
        self.secrets
    }

    /// Looks for this one too.
    pub fn add(&mut self, secret: &str) {
        let number = self.secrets;
        self.secrets += 1;
        let text = secret.as_bytes();
        let mut forms = encodings_of(
            text,
            ["text", "text in hex", "text in HEX", "text in base64", "text percent-encoded"],
        );
        // Ours are random bytes in base64url after a prefix, or in hex.
        let random =
            text.strip_prefix(b"tnr_").or_else(|| text.strip_prefix(b"tenure_admin_")).unwrap_or(text);
        for bytes in [from_base64(random), from_hex(text)].into_iter().flatten() {
            forms.extend(encodings_of(
                &bytes,
                ["bytes", "bytes in hex", "bytes in HEX", "bytes in base64", "bytes percent-encoded"],
            ));
        }
        for (name, bytes) in forms {
            if bytes.len() >= MIN_LENGTH
                && let Some(start) = bytes.first_chunk::<PREFIX_LENGTH>()
            {
                self.encodings.entry(*start).or_default().push(SecretEncoding {
                    secret: number,
                    name,
                    bytes,
                });
            }
        }
    }

    /// Every secret in `seen`.
    pub fn find_in(&self, seen: &[u8]) -> Vec<SecretMatch> {
        let mut found = Vec::new();
        for (at, start) in seen.windows(PREFIX_LENGTH).enumerate() {
            let Some(forms) =
                start.first_chunk::<PREFIX_LENGTH>().and_then(|start| self.encodings.get(start))
            else {
                continue;
            };
            for SecretEncoding { secret, name, bytes } in forms {
                if seen[at..].starts_with(bytes) {
                    found.push(SecretMatch { secret: *secret, encoding: name, offset: at });
                }
            }
        }
        found
    }
}

fn encodings_of(bytes: &[u8], names: [&'static str; 5]) -> Vec<(&'static str, Vec<u8>)> {
    let lower = |format: fn(&u8) -> String| bytes.iter().map(format).collect::<String>().into_bytes();
    let mut forms = vec![
        (names[0], bytes.to_vec()),
        (names[1], lower(|byte| format!("{byte:02x}"))),
        (names[2], lower(|byte| format!("{byte:02X}"))),
        (names[4], lower(|byte| format!("%{byte:02x}"))),
        (names[4], lower(|byte| format!("%{byte:02X}"))),
    ];
    for alphabet in [STANDARD_ALPHABET, URL_SAFE_ALPHABET] {
        for before in 0..3 {
            forms.push((names[3], base64_inside(bytes, before, alphabet)));
        }
    }
    forms
}

/// What is the same in the base64 of any text that has `bytes` after so many others (of three).
fn base64_inside(bytes: &[u8], before: usize, alphabet: &[u8; 64]) -> Vec<u8> {
    let padded: Vec<u8> = std::iter::repeat_n(0, before).chain(bytes.iter().copied()).collect();
    let encoded = padded.chunks_exact(3).flat_map(|three| {
        let number = u32::from(three[0]) << 16 | u32::from(three[1]) << 8 | u32::from(three[2]);
        [18, 12, 6, 0].map(|shift| alphabet[usize::try_from(number >> shift & 63).unwrap_or(0)])
    });
    // The first characters hold bits of what stands before.
    encoded.skip([0, 2, 3][before]).collect()
}

fn from_base64(text: &[u8]) -> Option<Vec<u8>> {
    let (mut bytes, mut bits, mut number) = (Vec::new(), 0, 0_u32);
    for character in text {
        let place = URL_SAFE_ALPHABET.iter().position(|known| known == character)?;
        number = (number << 6 | u32::try_from(place).ok()?) & 0xffff;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(number >> bits & 255).ok()?);
        }
    }
    Some(bytes)
}

fn from_hex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |character: u8| char::from(character).to_digit(16);
    let pairs = text.chunks(2).map(|pair| {
        let [high, low] = pair else { return None };
        u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "tnr_qZ3-0aB_cDeFgHiJkLmNoPqRsTuVwXyZ0123456789A";

    #[test]
    fn secret_is_found_in_every_encoding() {
        let mut scan = SecretScan::default();
        scan.add(SECRET);
        let hex: String = SECRET.bytes().map(|byte| format!("{byte:02x}")).collect();
        let percent: String = SECRET.bytes().map(|byte| format!("%{byte:02X}")).collect();
        for seen in
            [SECRET.to_owned(), hex.clone(), hex.to_uppercase(), percent.clone(), percent.to_lowercase()]
        {
            assert!(!scan.find_in(format!("before {seen} after").as_bytes()).is_empty(), "{seen}");
        }
        for before in ["", "a", "ab", "abc"] {
            for alphabet in [STANDARD_ALPHABET, URL_SAFE_ALPHABET] {
                // As anybody's encoder writes it, with whatever stands around it.
                let text = format!("{before}{SECRET}xyz");
                let encoded = base64_inside(text.as_bytes(), 0, alphabet);
                assert!(!scan.find_in(&encoded).is_empty(), "after {before:?}");
            }
        }
        assert!(scan.find_in(b"nothing of that kind: tnr_ and so on, 0123456789").is_empty());
    }

    #[test]
    fn decoded_bytes_of_a_secret_are_found() {
        let mut scan = SecretScan::default();
        scan.add(SECRET);
        scan.add("00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff");
        let bytes = from_base64(&SECRET.as_bytes()[4..]).unwrap();
        assert_eq!(bytes.len(), 32);
        assert_eq!(scan.find_in(&bytes)[0].secret, 0);
        assert_eq!(scan.find_in(&base64_inside(&bytes, 1, STANDARD_ALPHABET))[0].secret, 0);
        assert_eq!(
            scan.find_in(
                &from_hex(b"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff").unwrap()
            )[0]
            .secret,
            1
        );
    }

    #[test]
    fn base64_matches_a_known_vector() {
        assert_eq!(base64_inside(b"Man", 0, STANDARD_ALPHABET), b"TWFu");
        assert_eq!(from_base64(b"TWFu").unwrap(), b"Man");
    }
}
