//! What upgrade and downgrade have in common: the same holder, another mode.

use axum::response::Response;
use tenure_core::kernel::{ChangeMode, Claim, Command, Mode};

use super::LeaseId;
use super::continued::continue_lease;
use super::wish::mode;
use crate::app::App;
use crate::http::answer::Failure;
use crate::http::auth::Caller;
use crate::http::fields::Fields;

/// A [`tenure_api::ChangeMode`] that was read. It has no `Debug`, because of the token.
pub(super) struct Asked {
    token: String,
    mode: Mode,
}

impl Asked {
    /// `usual` is what is meant by no mode.
    pub(super) fn read(mut fields: Fields, usual: Mode) -> Result<Self, Failure> {
        let asked =
            tenure_api::ChangeMode { token: fields.text("token")?, mode: fields.optional_text("mode")? };
        fields.finish()?;
        Ok(Self { token: asked.token, mode: asked.mode.as_deref().map_or(Ok(usual), mode)? })
    }

    pub(super) async fn change(
        self,
        app: &App,
        caller: &Caller,
        id: &LeaseId,
        what: &str,
        command: impl FnOnce(ChangeMode) -> Command,
    ) -> Result<Response, Failure> {
        let mode = self.mode;
        let command = |lease, nonce| command(ChangeMode { lease, claim: Claim::Token, mode, nonce });
        continue_lease(app, caller, id, &self.token, &[what, mode.as_str()], command).await
    }
}
