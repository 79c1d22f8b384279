//! Frames of a render stream, byte for byte.

use proptest::prelude::*;
use tenure_device::render_frame::{FRAME_BYTES, RenderFrame};

/// A frame as a client in another language would write it.
fn bytes() -> Vec<u8> {
    let mut bytes = vec![0x4B, 0x31, 0x46, 0x31, 1, 1, 0x34, 0x12, 0x78, 0x56, 0x34, 0x12, 0x40, 0x01, 0, 0];
    bytes.extend((0..960).map(|place| u8::try_from(place % 256).expect("a byte")));
    bytes
}

#[test]
fn a_frame_is_read_byte_for_byte() {
    let bytes = bytes();
    let frame = RenderFrame::parse(&bytes).expect("it is a frame");
    assert_eq!(FRAME_BYTES, 976);
    assert_eq!((frame.flags, frame.sequence), (0x1234, 0x1234_5678));
    assert_eq!((frame.colours[0], frame.colours[959]), (0, 191));
    assert_eq!(frame.to_bytes().as_slice(), bytes);
}

#[test]
fn malformed_frames_are_rejected_with_their_field() {
    let cases: [(usize, u8, &str); 9] = [
        (0, b'k', "magic"),
        (3, b'2', "magic"),
        (4, 0, "version"),
        (4, 2, "version"),
        (5, 0, "format"),
        (12, 0x41, "ledCount"),
        (13, 0, "ledCount"),
        (14, 1, "reserved"),
        (15, 1, "reserved"),
    ];
    for (place, byte, field) in cases {
        let mut bytes = bytes();
        bytes[place] = byte;
        let problem = RenderFrame::parse(&bytes).expect_err("it is none");
        assert_eq!((problem.code.as_str(), problem.field.as_deref()), ("STREAM_FRAME_INVALID", Some(field)));
    }
    for length in [0, 1, 15, 16, 975, 977, 1_952] {
        let mut bytes = bytes();
        bytes.resize(length, 0);
        let problem = RenderFrame::parse(&bytes).expect_err("it is none");
        assert_eq!(problem.field.as_deref(), Some("size"), "{length}");
        assert!(problem.message.contains("976"), "{}", problem.message);
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_a_valid_frame_or_rejected(
        mut bytes in prop::collection::vec(any::<u8>(), 976),
        good in 0..=16_usize,
        length in 900..1_000_usize,
    ) {
        // With more and more of a header that is right, so that each check is reached.
        bytes[..good].copy_from_slice(&self::bytes()[..good]);
        if let Ok(frame) = RenderFrame::parse(&bytes) {
            prop_assert_eq!(frame.to_bytes().to_vec(), bytes.clone());
            prop_assert!(good >= 14);
        }
        bytes.resize(length, 0);
        prop_assert!(length == 976 || RenderFrame::parse(&bytes).is_err());
    }

    #[test]
    fn frames_round_trip(flags: u16, sequence: u32, colour: u8) {
        let colours = [colour; 960];
        let frame = RenderFrame { flags, sequence, colours: &colours };
        let bytes = frame.to_bytes();
        prop_assert_eq!(RenderFrame::parse(&bytes), Ok(frame));
    }
}
