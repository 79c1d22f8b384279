//! Control of the device.

use serde::Deserialize;
use tenure_api::ControlStatus;

use crate::client::Client;
use crate::error::Error;
use crate::http::ApiRequest;

/// What the device's addresses answer with.
#[derive(Deserialize)]
struct Envelope<T> {
    data: T,
}

impl Client {
    /// Who has the device, and for how long. To take it, a WebSocket at `/ws` is needed.
    pub async fn control_status(&self) -> Result<ControlStatus, Error> {
        let call = ApiRequest::get("/api/v1/control/status".into());
        self.send::<Envelope<ControlStatus>>(&call).await.map(|answer| answer.data)
    }
}
