//! How it is said that a command makes no sense, or that the device cannot do it. The lease has nothing to do with it.

use std::fmt;

/// What is wrong, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProblemCode {
    /// The text is no JSON, or no object.
    InvalidJson,
    /// No such command.
    UnknownCommand,
    /// A field is not there.
    MissingField,
    /// A field is of another type.
    InvalidType,
    /// A field says what it cannot say.
    InvalidValue,
    /// A number is too small or too large.
    OutOfRange,
    /// A field is not known, or stands twice.
    UnknownField,
    /// There is no such effect, preset or upload.
    NotFound,
    /// There is one already, or the device is not in the state for it.
    Conflict,
    /// More than is taken at once.
    TooLarge,
    /// More than there is room for.
    StorageFull,
    /// It could not be stored.
    StorageFailed,
    /// A frame without a stream.
    StreamNotActive,
    /// What a stream is started with does not fit the device.
    StreamContractMismatch,
    /// A frame that is none.
    StreamFrameInvalid,
    /// An image that is none.
    FirmwareInvalid,
    /// The sender may not do this.
    Forbidden,
    /// The sender's secret does not count.
    Unauthorized,
    /// There is too much to do; later.
    Busy,
    /// The ledger cannot be written, or the device cannot be reached.
    Unavailable,
    /// Nobody knows whether it happened.
    OutcomeUnknown,
}

impl ProblemCode {
    /// All of them.
    pub const ALL: [ProblemCode; 21] = [
        Self::InvalidJson,
        Self::UnknownCommand,
        Self::MissingField,
        Self::InvalidType,
        Self::InvalidValue,
        Self::OutOfRange,
        Self::UnknownField,
        Self::NotFound,
        Self::Conflict,
        Self::TooLarge,
        Self::StorageFull,
        Self::StorageFailed,
        Self::StreamNotActive,
        Self::StreamContractMismatch,
        Self::StreamFrameInvalid,
        Self::FirmwareInvalid,
        Self::Forbidden,
        Self::Unauthorized,
        Self::Busy,
        Self::Unavailable,
        Self::OutcomeUnknown,
    ];

    /// As programs see it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidJson => "INVALID_JSON",
            Self::UnknownCommand => "UNKNOWN_COMMAND",
            Self::MissingField => "MISSING_FIELD",
            Self::InvalidType => "INVALID_TYPE",
            Self::InvalidValue => "INVALID_VALUE",
            Self::OutOfRange => "OUT_OF_RANGE",
            Self::UnknownField => "UNKNOWN_FIELD",
            Self::NotFound => "NOT_FOUND",
            Self::Conflict => "CONFLICT",
            Self::TooLarge => "TOO_LARGE",
            Self::StorageFull => "STORAGE_FULL",
            Self::StorageFailed => "STORAGE_FAILED",
            Self::StreamNotActive => "STREAM_NOT_ACTIVE",
            Self::StreamContractMismatch => "STREAM_CONTRACT_MISMATCH",
            Self::StreamFrameInvalid => "STREAM_FRAME_INVALID",
            Self::FirmwareInvalid => "FIRMWARE_INVALID",
            Self::Forbidden => "FORBIDDEN",
            Self::Unauthorized => "UNAUTHORIZED",
            Self::Busy => "BUSY",
            Self::Unavailable => "UNAVAILABLE",
            Self::OutcomeUnknown => "OUTCOME_UNKNOWN",
        }
    }

    /// What REST answers with.
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
    /// For programs.
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

    /// Something about one field.
    pub fn of_field(code: ProblemCode, field: &str, message: impl fmt::Display) -> Self {
        Self { code, message: format!("`{field}` {message}"), field: Some(field.to_owned()) }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.code.as_str(), self.message)
    }
}
