//! 32 bytes as text.

use zeroize::Zeroizing;

/// The bytes as 64 digits.
pub(super) fn hex(bytes: &[u8; 32]) -> Zeroizing<String> {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).expect("four bits are one digit");
    let mut text = Zeroizing::new(String::with_capacity(64));
    bytes.iter().for_each(|byte| text.extend([digit(byte >> 4), digit(byte & 15)]));
    text
}

/// The bytes that these 64 digits stand for.
pub(super) fn bytes_of_hex(text: &str) -> Option<Zeroizing<[u8; 32]>> {
    let digits = text.as_bytes();
    let mut bytes = Zeroizing::new([0; 32]);
    if digits.len() != 64 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |place: usize| char::from(pair[place]).to_digit(16);
        *byte = u8::try_from(digit(0)? << 4 | digit(1)?).ok()?;
    }
    Some(bytes)
}
