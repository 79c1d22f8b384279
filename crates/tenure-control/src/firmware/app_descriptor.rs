//! What an application says of itself, at the beginning of its first segment.

use super::FirmwareImageError;

pub const DESCRIPTION_BYTES: usize = 256;

const MAGIC: [u8; 4] = 0xABCD_5432_u32.to_le_bytes();

/// What an application says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppDescriptor {
    pub version: String,
    /// Which project it was built from.
    pub project: String,
    /// Day and time of the build.
    pub built: String,
}

impl AppDescriptor {
    /// Reads it. Behind the magic number and three numbers of no interest here stand texts of fixed length, each up to its
    /// first zero: version (32), project (32), time (16), date (16).
    pub fn parse(bytes: &[u8; DESCRIPTION_BYTES]) -> Result<Self, FirmwareImageError> {
        if !bytes.starts_with(&MAGIC) {
            return Err(FirmwareImageError::NotAnApplication);
        }
        let [version, project, time, date] =
            [16..48, 48..80, 80..96, 96..112].map(|place: std::ops::Range<usize>| text(&bytes[place]));
        let (version, built) = (version?, format!("{} {}", date?, time?));
        if version.is_empty() {
            return Err(FirmwareImageError::Description);
        }
        Ok(Self { version, project: project?, built: built.trim().to_owned() })
    }
}

/// A text up to its first zero. It is shown to people, so it must be one.
fn text(bytes: &[u8]) -> Result<String, FirmwareImageError> {
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    let text = std::str::from_utf8(text).map_err(|_| FirmwareImageError::Description)?;
    if text.chars().any(char::is_control) {
        Err(FirmwareImageError::Description)
    } else {
        Ok(text.to_owned())
    }
}
