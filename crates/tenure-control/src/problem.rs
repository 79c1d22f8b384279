//! Error for a command that is invalid, or that the device cannot execute. It has nothing to do with the lease.

use std::fmt;

tenure_core::text_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum ProblemCode {
        /// The text is no JSON, or no object.
        InvalidJson = "INVALID_JSON",
        UnknownCommand = "UNKNOWN_COMMAND",
        MissingField = "MISSING_FIELD",
        /// A field is of another type.
        InvalidType = "INVALID_TYPE",
        /// A field says what it cannot say.
        InvalidValue = "INVALID_VALUE",
        /// A number is too small or too large.
        OutOfRange = "OUT_OF_RANGE",
        /// A field is not known, or stands twice.
        UnknownField = "UNKNOWN_FIELD",
        /// There is no such effect, preset or upload.
        NotFound = "NOT_FOUND",
        /// There is one already, or the device is not in the state for it.
        Conflict = "CONFLICT",
        /// More than is taken at once.
        TooLarge = "TOO_LARGE",
        /// More than there is room for.
        StorageFull = "STORAGE_FULL",
        StorageFailed = "STORAGE_FAILED",
        StreamNotActive = "STREAM_NOT_ACTIVE",
        /// What a stream is started with does not fit the device.
        StreamContractMismatch = "STREAM_CONTRACT_MISMATCH",
        /// A frame that is none.
        StreamFrameInvalid = "STREAM_FRAME_INVALID",
        /// An image that is none.
        FirmwareInvalid = "FIRMWARE_INVALID",
        /// The sender may not do this.
        Forbidden = "FORBIDDEN",
        /// The sender's secret does not count.
        Unauthorized = "UNAUTHORIZED",
        /// There is too much to do; later.
        Busy = "BUSY",
        /// The ledger cannot be written, or the device cannot be reached.
        Unavailable = "UNAVAILABLE",
        OutcomeUnknown = "OUTCOME_UNKNOWN",
    }
}

impl ProblemCode {
    pub const fn status(self) -> u16 {
        match self {
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::NotFound | Self::UnknownCommand => 404,
            Self::Conflict | Self::StreamNotActive => 409,
            Self::TooLarge => 413,
            Self::StorageFull => 507,
            Self::StorageFailed => 500,
            Self::Busy | Self::Unavailable | Self::OutcomeUnknown => 503,
            _ => 400,
        }
    }
}

/// What is wrong with a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub code: ProblemCode,
    /// For people: what is wrong, and what would be right.
    pub message: String,
    /// Which field, if it is one.
    pub field: Option<String>,
}

impl Problem {
    /// Something that is not about one field.
    pub fn new(code: ProblemCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), field: None }
    }

    pub fn of_field(code: ProblemCode, field: &str, message: impl fmt::Display) -> Self {
        Self { code, message: format!("`{field}` {message}"), field: Some(field.to_owned()) }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.code.as_str(), self.message)
    }
}
