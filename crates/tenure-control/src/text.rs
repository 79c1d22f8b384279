//! Bytes as text: hexadecimal digits and base64, read strictly.

/// Why a text is not bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotBytes {
    /// A character that cannot be there.
    Character,
    /// The length cannot be, or the padding is not as it must be.
    Length,
    /// The last character says more than there are bytes for, so that two texts would be the same bytes.
    Ambiguous,
}

impl NotBytes {
    /// For people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Character => "has a character that cannot be there",
            Self::Length => "has a length that cannot be, or is not padded as it must be",
            Self::Ambiguous => "ends with a character that says more than there are bytes for",
        }
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Two digits a byte, in lower case.
pub fn to_hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Two digits a byte, of either case.
pub fn from_hex(text: &str) -> Result<Vec<u8>, NotBytes> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return Err(NotBytes::Length);
    }
    let nibble = |digit: u8| match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        b'A'..=b'F' => Ok(digit - b'A' + 10),
        _ => Err(NotBytes::Character),
    };
    pairs.iter().map(|[high, low]| Ok(nibble(*high)? << 4 | nibble(*low)?)).collect()
}

/// Base64 with `+`, `/` and padding, as most programs write it.
pub fn from_base64(text: &str) -> Result<Vec<u8>, NotBytes> {
    let (quads, rest) = text.as_bytes().as_chunks::<4>();
    if !rest.is_empty() {
        return Err(NotBytes::Length);
    }
    let mut bytes = Vec::with_capacity(quads.len() * 3);
    for (number, quad) in quads.iter().enumerate() {
        let padding = quad.iter().rev().take_while(|&&character| character == b'=').count();
        if padding > 2 || (padding > 0 && number + 1 < quads.len()) {
            return Err(NotBytes::Length);
        }
        let mut group = 0_u32;
        for &character in &quad[..4 - padding] {
            group = group << 6 | sextet(character)?;
        }
        let [_, first, second, third] = (group << (6 * padding)).to_be_bytes();
        let group = [first, second, third];
        let (kept, cut) = group.split_at(3 - padding);
        if cut.iter().any(|&byte| byte != 0) {
            return Err(NotBytes::Ambiguous);
        }
        bytes.extend(kept);
    }
    Ok(bytes)
}

fn sextet(character: u8) -> Result<u32, NotBytes> {
    let sextet = match character {
        b'A'..=b'Z' => character - b'A',
        b'a'..=b'z' => character - b'a' + 26,
        b'0'..=b'9' => character - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return Err(NotBytes::Character),
    };
    Ok(sextet.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn to_base64(bytes: &[u8]) -> String {
        const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = String::new();
        for chunk in bytes.chunks(3) {
            let group =
                (0..3).fold(0, |group, place| group << 8 | usize::from(*chunk.get(place).unwrap_or(&0)));
            for place in 0..4 {
                let is_there = place <= chunk.len();
                let character = if is_there { ALPHABET[group >> (18 - 6 * place) & 63] } else { b'=' };
                text.push(char::from(character));
            }
        }
        text
    }

    #[test]
    fn known_texts_are_read() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(from_base64(text).as_deref(), Ok(bytes.as_bytes()));
            assert_eq!(to_base64(bytes.as_bytes()), text);
        }
        assert_eq!(from_hex("00fFa0").as_deref(), Ok([0, 255, 160].as_slice()));
    }

    #[test]
    fn what_is_not_exactly_right_is_refused() {
        for text in ["Zg", "Zg=", "Z===", "====", "Zg==Zg==", "Zm9v="] {
            assert_eq!(from_base64(text), Err(NotBytes::Length), "{text}");
        }
        for text in ["Zm 9", "Zm9\n", "Zm-_", "Z=g=", "Zäg"] {
            assert_eq!(from_base64(text), Err(NotBytes::Character), "{text}");
        }
        assert_eq!([from_base64("Zh=="), from_base64("Zm9=")], [const { Err(NotBytes::Ambiguous) }; 2]);
        assert_eq!([from_hex("abc"), from_hex("0g")], [Err(NotBytes::Length), Err(NotBytes::Character)]);
    }

    proptest! {
        #[test]
        fn bytes_come_back(bytes: Vec<u8>) {
            prop_assert_eq!(from_hex(&to_hex(&bytes)), Ok(bytes.clone()));
            prop_assert_eq!(from_base64(&to_base64(&bytes)), Ok(bytes));
        }

        #[test]
        fn a_text_is_refused_or_the_only_one_of_its_bytes(text in "[A-Za-z0-9+/=]{0,12}") {
            if let Ok(bytes) = from_base64(&text) {
                prop_assert_eq!(to_base64(&bytes), text);
            }
        }
    }
}
