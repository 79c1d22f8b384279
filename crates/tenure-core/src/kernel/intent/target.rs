//! Targets of intents, and the resources that each one locks. This is the one place that says what is locked.

use std::sync::Arc;

use crate::rules::{InvalidInput, check_name};
use crate::value::{Principal, Resource};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum IntentTarget {
    /// A channel, live. It takes a tuner.
    Service(Arc<str>),
    /// A recording, from some point on. It takes none.
    Recording {
        id: Arc<str>,
        /// From where, in milliseconds.
        start_ms: u64,
    },
}

/// Of which kind a target is. A key does not say it: a channel and a recording of one name, from its first second on, have
/// the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum IntentTargetKind {
    Service,
    Recording,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intent {
    pub target: IntentTarget,
    pub profile: Arc<str>,
    /// In which particulars: JSON in its canonical form, or nothing.
    pub params: Arc<str>,
    /// By which the caller finds it again in its own logs; may be empty.
    pub correlation: Arc<str>,
}

impl Intent {
    /// The longest name of a channel, a recording or a profile, and the longest correlation id, in bytes.
    pub const MAX_NAME_BYTES: usize = 1_024;
    /// The most bytes of particulars.
    pub const MAX_PARAMS_BYTES: usize = 1 << 16;

    /// Checks what can be long or odd. Whatever passes can be stored, and be part of a key.
    pub fn check(&self) -> Result<(), InvalidInput> {
        let (field, id) = match &self.target {
            IntentTarget::Service(service) => ("serviceRef", service),
            IntentTarget::Recording { id, .. } => ("recordingID", id),
        };
        check_part(field, id)?;
        check_part("profileID", &self.profile)?;
        if !self.correlation.is_empty() {
            check_length("correlationId", &self.correlation)?;
        }
        if self.params.len() > Self::MAX_PARAMS_BYTES {
            let reason =
                format!("has {} bytes; at most {} are allowed", self.params.len(), Self::MAX_PARAMS_BYTES);
            return Err(InvalidInput::new("params", reason));
        }
        Ok(())
    }

    /// About how many bytes it takes.
    pub(crate) fn byte_size(&self) -> usize {
        self.target.id().len() + self.profile.len() + self.params.len() + self.correlation.len()
    }
}

impl IntentTarget {
    pub fn id(&self) -> &str {
        match self {
            IntentTarget::Service(id) | IntentTarget::Recording { id, .. } => id,
        }
    }

    pub(crate) fn kind(&self) -> IntentTargetKind {
        match self {
            IntentTarget::Service(_) => IntentTargetKind::Service,
            IntentTarget::Recording { .. } => IntentTargetKind::Recording,
        }
    }

    /// Which requests for it are the same: all of a channel, those of one second of a recording.
    pub fn start_second(&self) -> u64 {
        match self {
            IntentTarget::Service(_) => 0,
            IntentTarget::Recording { start_ms, .. } => start_ms / 1_000,
        }
    }

    /// What only one session may have at a time.
    pub fn resource(&self) -> Resource {
        let name = match self {
            IntentTarget::Service(service) => format!("service:{service}"),
            IntentTarget::Recording { id, .. } => format!("recording:{id}:{}", self.start_second()),
        };
        Resource::parse(&name).expect("a target that was checked makes a name")
    }

    pub fn requires_tuner(&self) -> bool {
        matches!(self, IntentTarget::Service(_))
    }
}

pub fn tuner_resource(slot: u32) -> Resource {
    Resource::parse(&format!("tuner:{slot}")).expect("a number makes a name")
}

pub fn tuner_slot(resource: &Resource) -> Option<u32> {
    let slot = resource.as_str().strip_prefix("tuner:")?.parse().ok()?;
    // A number can be written in more ways than one; a tuner has one name.
    (tuner_resource(slot) == *resource).then_some(slot)
}

/// What the one worker holds.
pub const LEADER_LOCK: &str = "system:orchestrator:guard_lock";

/// To whom sessions and workers belong. No token and no user is called so.
pub const ORCHESTRATOR_PRINCIPAL: &str = "system:orchestrator";

pub fn leader_lock_resource() -> Resource {
    Resource::parse(LEADER_LOCK).expect("it is a name")
}

pub fn orchestrator_principal() -> Principal {
    Principal::parse(ORCHESTRATOR_PRINCIPAL).expect("it is a name")
}

/// What is part of a key, where `|` parts, and an argument of a program, where `-` begins an option.
fn check_part(field: &'static str, part: &str) -> Result<(), InvalidInput> {
    check_length(field, part)?;
    if part.contains('|') {
        return Err(InvalidInput::new(
            field,
            "contains `|`, which parts what a key is made of; leave it out",
        ));
    }
    if part.starts_with('-') {
        return Err(InvalidInput::new(field, "begins with `-`, as the options of a program do"));
    }
    Ok(())
}

fn check_length(field: &'static str, part: &str) -> Result<(), InvalidInput> {
    check_name(field, part)?;
    if part.len() > Intent::MAX_NAME_BYTES {
        let reason = format!("has {} bytes; at most {} are allowed", part.len(), Intent::MAX_NAME_BYTES);
        return Err(InvalidInput::new(field, reason));
    }
    Ok(())
}
