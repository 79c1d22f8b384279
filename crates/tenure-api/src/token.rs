//! Tokens that say who speaks.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What may be known of a token: all but its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiTokenView {
    /// Names it in requests.
    pub id: String,
    /// What it was called.
    pub name: String,
    /// Who speaks with it.
    pub principal: String,
    /// What it may do.
    pub scopes: Vec<String>,
    /// On what: resources that begin with one of these. None is all of them.
    pub resources: Vec<String>,
    /// When it was made, RFC 3339 in UTC.
    pub created_at: String,
    /// When it is no longer good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// When it was last used, since the server started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<String>,
}

/// The answer to a request for a token: the only time that its secret is shown. It has no `Debug` for that reason.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreatedApiToken {
    /// What may be known of it.
    pub token: ApiTokenView,
    /// What goes into `Authorization: Bearer …`.
    pub secret: String,
}

/// Every token that is good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApiTokenList {
    /// In the order in which they were made.
    pub tokens: Vec<ApiTokenView>,
}

/// The answer to a revocation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevokedApiToken {
    /// The token that is no longer good.
    pub token: ApiTokenView,
    /// How many leases of its principal ended with it.
    pub revoked_leases: usize,
}
