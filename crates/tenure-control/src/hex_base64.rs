//! Bytes as text: hexadecimal digits and base64, read strictly.

use base64::engine::general_purpose::STANDARD;
use base64::{DecodeError, Engine as _};
use hex::FromHexError;

/// Why a text is not bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextDecodeError {
    /// A character that cannot be there.
    Character,
    /// The length cannot be, or the padding is not as it must be.
    Length,
    /// The last character says more than there are bytes for, so that two texts would be the same bytes.
    Ambiguous,
}

impl TextDecodeError {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Character => "has a character that cannot be there",
            Self::Length => "has a length that cannot be, or is not padded as it must be",
            Self::Ambiguous => "ends with a character that says more than there are bytes for",
        }
    }
}

/// Two digits a byte, of either case.
pub fn from_hex(text: &str) -> Result<Vec<u8>, TextDecodeError> {
    hex::decode(text).map_err(|error| match error {
        FromHexError::InvalidHexCharacter { .. } => TextDecodeError::Character,
        FromHexError::OddLength | FromHexError::InvalidStringLength => TextDecodeError::Length,
    })
}

/// Base64 with `+`, `/` and padding, as most programs write it.
pub fn from_base64(text: &str) -> Result<Vec<u8>, TextDecodeError> {
    STANDARD.decode(text).map_err(|error| match error {
        DecodeError::InvalidByte(_, b'=') | DecodeError::InvalidLength(_) | DecodeError::InvalidPadding => {
            TextDecodeError::Length
        }
        DecodeError::InvalidByte(..) => TextDecodeError::Character,
        DecodeError::InvalidLastSymbol(..) => TextDecodeError::Ambiguous,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn to_base64(bytes: &[u8]) -> String {
        STANDARD.encode(bytes)
    }

    #[test]
    fn known_hex_and_base64_texts_are_decoded() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(from_base64(text).as_deref(), Ok(bytes.as_bytes()));
            assert_eq!(to_base64(bytes.as_bytes()), text);
        }
        assert_eq!(from_hex("00fFa0").as_deref(), Ok([0, 255, 160].as_slice()));
    }

    #[test]
    fn malformed_hex_and_base64_are_rejected() {
        for text in ["Zg", "Zg=", "Z===", "Z=g=", "====", "Zg==Zg==", "Zm9v="] {
            assert_eq!(from_base64(text), Err(TextDecodeError::Length), "{text}");
        }
        for text in ["Zm 9", "Zm9\n", "Zm-_", "Zäg"] {
            assert_eq!(from_base64(text), Err(TextDecodeError::Character), "{text}");
        }
        assert_eq!(
            [from_base64("Zh=="), from_base64("Zm9=")],
            [const { Err(TextDecodeError::Ambiguous) }; 2]
        );
        assert_eq!(
            [from_hex("abc"), from_hex("0g")],
            [Err(TextDecodeError::Length), Err(TextDecodeError::Character)]
        );
    }

    proptest! {
        #[test]
        fn encoding_round_trips(bytes: Vec<u8>) {
            prop_assert_eq!(from_hex(&hex::encode(&bytes)), Ok(bytes.clone()));
            prop_assert_eq!(from_base64(&to_base64(&bytes)), Ok(bytes));
        }

        #[test]
        fn base64_is_rejected_or_canonical(text in "[A-Za-z0-9+/=]{0,12}") {
            if let Ok(bytes) = from_base64(&text) {
                prop_assert_eq!(to_base64(&bytes), text);
            }
        }
    }
}
