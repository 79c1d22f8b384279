//! What agents ask, and what they are told. Names are as the KLIS documents have them.

mod contention;
mod leases;
mod manifest;
mod state;

pub use contention::{Contention, ContentionEdge, ContentionNode, ResourceState};
pub use leases::{AgentLease, AgentLeases, Beat, Heartbeat, Reconciled, Rejected, ReleasedLeases, TrueLease};
pub use manifest::{Manifest, ManifestIntent, ManifestObject, Verdict};
pub use state::{
    AgentChange, AgentView, AgentWait, Agents, DigestIdentity, DigestRecovery, PendingIntent, ReportState,
    StateDigest, Touch, Touched, Wanted,
};
