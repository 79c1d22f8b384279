//! Builds images for tests, from the layout as its maker describes it.

use sha2::{Digest as _, Sha256};

/// What an image is made of.
#[derive(Debug, Clone)]
pub struct ImageBuilder {
    pub magic: u8,
    pub segment_count: Option<u8>,
    pub digest_mark: u8,
    pub chip: u16,
    pub description: Vec<u8>,
    /// What stands behind the description, then the other segments.
    pub segments: Vec<Vec<u8>>,
    pub padding: u8,
    pub spoil_checksum: bool,
}

impl ImageBuilder {
    pub fn new(version: &str, project: &str) -> Self {
        Self {
            magic: 0xE9,
            segment_count: None,
            digest_mark: 1,
            chip: 9,
            description: description(version, project),
            segments: vec![vec![0xA5; 1_000], Vec::new(), (0..=255).cycle().take(3_000).collect()],
            padding: 0,
            spoil_checksum: false,
        }
    }

    pub fn build(&self) -> Vec<u8> {
        let count = u8::try_from(self.segments.len()).expect("few");
        let mut bytes = vec![self.magic, self.segment_count.unwrap_or(count), 2, 0x20];
        bytes.extend(0x4037_8000_u32.to_le_bytes());
        bytes.extend([0xEE, 0, 0, 0]);
        bytes.extend(self.chip.to_le_bytes());
        bytes.extend([0; 9]);
        bytes.push(self.digest_mark);
        let mut checksum = 0xEF;
        for (number, segment) in self.segments.iter().enumerate() {
            let mut data = if number == 0 { self.description.clone() } else { Vec::new() };
            data.extend(segment);
            checksum = data.iter().fold(checksum, |sum, byte| sum ^ byte);
            bytes.extend(0x3C00_0020_u32.to_le_bytes());
            bytes.extend(u32::try_from(data.len()).expect("small").to_le_bytes());
            bytes.extend(data);
        }
        while bytes.len() % 16 != 15 {
            bytes.push(self.padding);
        }
        bytes.push(if self.spoil_checksum { checksum ^ 1 } else { checksum });
        if self.digest_mark == 1 {
            let digest = Sha256::digest(&bytes);
            bytes.extend(digest);
        }
        bytes
    }
}

/// 256 bytes that say what an application is.
pub fn description(version: &str, project: &str) -> Vec<u8> {
    let mut bytes = 0xABCD_5432_u32.to_le_bytes().to_vec();
    bytes.extend([0; 12]);
    for (text, length) in [(version, 32), (project, 32), ("12:34:56", 16), ("Nov 16 2026", 16), ("v5.3", 32)]
    {
        let mut field = text.as_bytes().to_vec();
        field.resize(length, 0);
        bytes.extend(field);
    }
    bytes.resize(256, 0);
    bytes
}
