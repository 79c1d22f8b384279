//! Who and what: names that were checked once, where they came in.

use std::fmt;
use std::sync::Arc;

use crate::rules::names::{
    InvalidInput, MAX_NAME_BYTES, MAX_RESOURCE_BYTES, check_name, check_name_within, is_stored_verbatim,
    stored_id,
};

macro_rules! name {
    ($(#[$documentation:meta])* $name:ident, $field:literal, $max_length:expr) => {
        $(#[$documentation])*
        // Shared, because one name stands in a command, in its events, in the state and in answers.
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks a name as it came in: not empty, at most 4 KiB, no control characters.
            pub fn parse(name: &str) -> Result<Self, InvalidInput> {
                check_name_within($field, name, $max_length)?;
                Ok(Self(name.into()))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, formatter)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }
    };
}

name!(
    /// What is protected: `domain:name`, such as `deploy:prod` or `tuner:2`.
    Resource,
    "resource",
    MAX_RESOURCE_BYTES
);
name!(
    /// Who holds or waits: an actor id. It belongs to one [`Principal`].
    Holder,
    "holder",
    MAX_NAME_BYTES
);
name!(
    /// Who is allowed to speak: a token or a local user.
    Principal,
    "principal",
    MAX_NAME_BYTES
);

impl Holder {
    /// The holder as records name it: itself, or a digest where it is too long for an id.
    pub(crate) fn to_stored_id(&self) -> Holder {
        if is_stored_verbatim(&self.0) { self.clone() } else { Holder(stored_id(&self.0).into()) }
    }
}

/// What the caller wants to have noted beside a lease. It decides nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Labels(Option<Arc<[Label]>>);

type Label = (Box<str>, Box<str>);

impl Labels {
    pub const MAX: usize = 32;
    /// The longest label name and value, in bytes.
    pub const MAX_BYTES: usize = 256;

    /// Checks labels as they came in: at most 32, names and values of at most 256 bytes, each name once.
    pub fn parse<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, InvalidInput> {
        let mut labels: Vec<Label> = Vec::new();
        for (name, value) in pairs {
            check_name("labels", name)?;
            if name.len() > Self::MAX_BYTES || value.len() > Self::MAX_BYTES {
                let reason = format!("names and values have at most {} bytes", Self::MAX_BYTES);
                return Err(InvalidInput::new("labels", reason));
            }
            if value.chars().any(char::is_control) {
                return Err(InvalidInput::new("labels", "a value contains a control character"));
            }
            labels.push((name.into(), value.into()));
        }
        if labels.len() > Self::MAX {
            return Err(InvalidInput::new("labels", format!("at most {} are allowed", Self::MAX)));
        }
        labels.sort();
        if labels.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(InvalidInput::new("labels", "a name stands twice"));
        }
        Ok(Self((!labels.is_empty()).then(|| labels.into())))
    }

    /// Names and values, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().flat_map(|labels| labels.iter()).map(|(name, value)| (name.as_ref(), value.as_ref()))
    }
}
