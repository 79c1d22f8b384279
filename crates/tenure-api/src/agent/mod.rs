//! What agents ask, and what they are told. Names are as the KLIS documents have them.

mod contention;
mod leases;
mod manifest;
mod state;

pub use contention::{ContentionEdge, ContentionGraph, ContentionNode, ResourceState};
pub use leases::{
    AgentLease, AgentLeaseIds, AgentReleaseResult, HeartbeatRejection, HeartbeatRenewal, HeartbeatResult,
    ReconcileResult, ReconciledLease,
};
pub use manifest::{Manifest, ManifestIntent, ManifestObject, ManifestVerdict};
pub use state::{
    AgentEventDetails, AgentList, AgentStateReport, AgentView, AgentWait, DigestIdentity, DigestRecovery,
    PendingIntent, ResourceAccess, ResourceTouchReport, StateDigest, TouchResult,
};
