//! Images, checked while they come in.

use proptest::prelude::*;
use tenure_device::firmware::{FirmwareImageError, FirmwareInfo, ImageChecker, MAX_IMAGE_BYTES};

use crate::firmware_image::{ImageBuilder, description};

fn check(bytes: &[u8]) -> Result<FirmwareInfo, FirmwareImageError> {
    in_pieces(bytes, bytes.len().max(1))
}

fn in_pieces(bytes: &[u8], length: usize) -> Result<FirmwareInfo, FirmwareImageError> {
    let mut check = ImageChecker::new();
    for piece in bytes.chunks(length) {
        check.feed(piece)?;
    }
    check.finish()
}

fn good() -> ImageBuilder {
    ImageBuilder::new("2.4.1", "k1-light")
}

#[test]
fn image_metadata_is_read() {
    let bytes = good().build();
    let image = check(&bytes).expect("it is whole");
    assert_eq!((image.version.as_str(), image.project.as_str()), ("2.4.1", "k1-light"));
    assert_eq!((image.built.as_str(), image.chip, image.segments), ("Nov 16 2026 12:34:56", 9, 3));
    assert_eq!((image.size as usize, image.has_digest), (bytes.len(), true));
    let digest = &bytes[bytes.len() - 32..];
    assert_eq!(image.sha256, digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
}

#[test]
fn an_image_without_a_digest_is_accepted() {
    let image = check(&ImageBuilder { digest_mark: 0, ..good() }.build()).expect("it is whole");
    assert_eq!((image.has_digest, image.sha256.len()), (false, 64));
}

#[test]
fn damaged_images_are_rejected_with_their_error() {
    let segments = |sizes: &[usize]| sizes.iter().map(|&length| vec![7; length]).collect::<Vec<_>>();
    let cases = [
        (ImageBuilder { magic: 0xEA, ..good() }, FirmwareImageError::Magic),
        (ImageBuilder { segment_count: Some(0), ..good() }, FirmwareImageError::SegmentCount),
        (ImageBuilder { segment_count: Some(17), ..good() }, FirmwareImageError::SegmentCount),
        (ImageBuilder { digest_mark: 2, ..good() }, FirmwareImageError::DigestFlag),
        (ImageBuilder { segments: segments(&[3, 8]), ..good() }, FirmwareImageError::SegmentLength),
        (ImageBuilder { segments: segments(&[0, 8, 5]), ..good() }, FirmwareImageError::SegmentLength),
        (ImageBuilder { description: vec![0; 256], ..good() }, FirmwareImageError::NotAnApplication),
        (
            ImageBuilder { description: vec![0; 252], segments: segments(&[0]), ..good() },
            FirmwareImageError::NotAnApplication,
        ),
        (ImageBuilder { description: description("", "a"), ..good() }, FirmwareImageError::Description),
        (ImageBuilder { description: description("1\n2", "a"), ..good() }, FirmwareImageError::Description),
        (ImageBuilder { padding: 0xFF, ..good() }, FirmwareImageError::Padding),
        (ImageBuilder { spoil_checksum: true, ..good() }, FirmwareImageError::Checksum),
    ];
    for (builder, flaw) in cases {
        assert_eq!(check(&builder.build()), Err(flaw));
    }
    let mut not_text = good();
    not_text.description[20] = 0xFF;
    assert_eq!(check(&not_text.build()), Err(FirmwareImageError::Description));
}

#[test]
fn an_image_with_sixteen_segments_is_accepted() {
    let builder = ImageBuilder { segments: vec![vec![1; 4]; 16], ..good() };
    assert_eq!(check(&builder.build()).map(|image| image.segments), Ok(16));
}

#[test]
fn truncated_images_and_trailing_bytes_are_rejected() {
    let mut bytes = good().build();
    for length in (0..bytes.len()).step_by(7).chain([bytes.len() - 33, bytes.len() - 32, bytes.len() - 1]) {
        assert_eq!(check(&bytes[..length]), Err(FirmwareImageError::Truncated), "{length}");
    }
    bytes.push(0);
    assert_eq!(check(&bytes), Err(FirmwareImageError::Trailing));
}

#[test]
fn images_larger_than_four_mebibytes_are_rejected() {
    // Everything but the data: header, three headers of segments, description, checksum and digest.
    let fixed = 24 + 3 * 8 + 256 + 32;
    let fill =
        |length: usize| ImageBuilder { segments: vec![vec![1; 4], Vec::new(), vec![2; length]], ..good() };
    let largest = MAX_IMAGE_BYTES as usize - fixed - 4 - 4;
    let bytes = fill(largest).build();
    assert_eq!((bytes.len(), check(&bytes).is_ok()), (MAX_IMAGE_BYTES as usize, true));
    assert_eq!(check(&fill(largest + 16).build()), Err(FirmwareImageError::TooLarge));
    let mut lies = good().build();
    lies[28..32].copy_from_slice(&(MAX_IMAGE_BYTES - 4).to_le_bytes());
    assert_eq!(
        check(&lies[..32]),
        Err(FirmwareImageError::SegmentTooLong),
        "nobody waits for what cannot be"
    );
}

#[test]
fn an_image_error_is_final() {
    let mut check = ImageChecker::new();
    assert_eq!(check.feed(&[0]), Err(FirmwareImageError::Magic));
    assert_eq!(check.feed(&good().build()), Err(FirmwareImageError::Magic));
    assert_eq!(check.finish(), Err(FirmwareImageError::Magic));
}

#[test]
fn every_flipped_bit_is_detected() {
    let bytes = ImageBuilder { segments: vec![vec![3; 8]], ..good() }.build();
    for place in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[place] ^= 1 << bit;
            assert!(check(&flipped).is_err(), "bit {bit} of byte {place}");
        }
    }
}

fn image() -> impl Strategy<Value = Vec<u8>> {
    let segments = prop::collection::vec(prop::collection::vec(any::<u8>(), 0..70), 1..5);
    (segments, 0..3_u8, any::<u8>()).prop_map(|(segments, digest_mark, padding)| {
        // Mostly zero: what is behind the padding should be reached.
        let padding = if padding > 200 { padding } else { 0 };
        ImageBuilder { segments, digest_mark, padding, ..good() }.build()
    })
}

proptest! {
    #[test]
    fn chunk_size_does_not_change_the_result(
        mut bytes in image(),
        spoiled in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
        more in prop::collection::vec(any::<u8>(), 0..3),
        length in 1..300_usize,
    ) {
        bytes.extend(more);
        if let Some((place, byte)) = spoiled {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        prop_assert_eq!(in_pieces(&bytes, length), check(&bytes));
        prop_assert_eq!(in_pieces(&bytes, 1), check(&bytes));
    }

    #[test]
    fn arbitrary_bytes_in_chunks_are_checked_like_the_whole(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 0..12),
        header in any::<bool>(),
    ) {
        let mut bytes = if header { good().build()[..32].to_vec() } else { Vec::new() };
        let mut feeding = ImageChecker::new();
        let _ = feeding.feed(&bytes);
        for piece in &pieces {
            let _ = feeding.feed(piece);
            bytes.extend(piece);
        }
        prop_assert_eq!(feeding.finish(), check(&bytes));
    }
}
