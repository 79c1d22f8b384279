//! The device and its control lease.

use serde::Deserialize;
use tenure_api::ControlStatus;

use crate::client::Client;
use crate::connection::Call;
use crate::error::Error;

/// What the device's addresses answer with.
#[derive(Deserialize)]
struct Envelope<T> {
    data: T,
}

impl Client {
    /// Who has the device, and for how long. To take it, a WebSocket at `/ws` is needed.
    pub async fn control_status(&self) -> Result<ControlStatus, Error> {
        let call = Call::get("/api/v1/control/status".into());
        self.ask::<Envelope<ControlStatus>>(&call).await.map(|answer| answer.data)
    }
}
