//! Tokens that say who speaks.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An API token without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiTokenView {
    /// Token id for use in requests.
    pub id: String,
    /// Name of the token.
    pub name: String,
    /// Principal of the token.
    pub principal: String,
    /// API scopes granted to the token.
    pub scopes: Vec<String>,
    /// Permitted resource prefixes; empty permits all.
    pub resources: Vec<String>,
    /// Time of creation, RFC 3339 in UTC.
    pub created_at: String,
    /// Time of expiry, RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// Time of last use since server start, RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<String>,
}

/// A new API token with its secret, shown only once. It has no `Debug`, because of the secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreatedApiToken {
    /// Token without its secret.
    pub token: ApiTokenView,
    /// Secret for `Authorization: Bearer …`.
    pub secret: String,
}

/// A list of valid API tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApiTokenList {
    /// Tokens in order of creation.
    pub tokens: Vec<ApiTokenView>,
}

/// A revoked API token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevokedApiToken {
    /// Token without its secret.
    pub token: ApiTokenView,
    /// Number of the principal's leases that were revoked.
    pub revoked_leases: usize,
}
