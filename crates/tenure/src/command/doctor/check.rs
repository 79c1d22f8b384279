//! What was found, one thing at a time.

use serde::Serialize;

/// How it stands with one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It was tried, and does what it should.
    Ok,
    /// Changes of files get past it.
    Gap,
    /// Nobody put it in place, so nobody relies on it.
    NotInstalled,
    Unknown,
}

impl Status {
    pub const fn as_str(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Gap => "gap",
            Status::NotInstalled => "not installed",
            Status::Unknown => "not known",
        }
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What: words with dots between them, from the large to the small. It stays the same.
    pub name: String,
    pub status: Status,
    /// What was seen; for a gap also what that means.
    pub detail: String,
    /// The one thing to do that helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Check {
    pub fn ok(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { name: name.into(), status: Status::Ok, detail: detail.into(), fix: None }
    }

    /// Something gets past it; this helps.
    pub fn gap(name: impl Into<String>, detail: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { name: name.into(), status: Status::Gap, detail: detail.into(), fix: Some(fix.into()) }
    }

    pub fn not_installed(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { name: name.into(), status: Status::NotInstalled, detail: detail.into(), fix: None }
    }

    /// It could not be tried, for this reason.
    pub fn unknown(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { name: name.into(), status: Status::Unknown, detail: detail.into(), fix: None }
    }

    /// The same, with what to do about it.
    pub fn with_fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    pub fn is_gap(&self) -> bool {
        self.status == Status::Gap
    }
}
