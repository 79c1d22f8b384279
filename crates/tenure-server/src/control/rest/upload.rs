//! Firmware over REST: an image is checked while it comes in, and never kept in memory as a whole.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use http_body_util::BodyExt as _;
use serde_json::Value;
use tenure_control::firmware::Check;
use tenure_control::{Pass, Problem, ProblemCode};
use tokio::time::timeout;

use crate::app::App;
use crate::control::message::Blocked;

/// An upload that brings nothing for so long is over.
const PIECE_TIME: Duration = Duration::from_secs(10);

/// Checks what is uploaded, and lets the device keep it.
pub(super) async fn upload(app: &App, pass: Pass, request: Request) -> Result<Value, Blocked> {
    let image = check(request.into_body()).await?;
    app.control.desk.obey(pass, |device, now| device.accept_firmware(image, now)).await
}

async fn check(mut body: Body) -> Result<tenure_control::firmware::Image, Problem> {
    let mut check = Check::new();
    let too_slow =
        |_| Problem::new(ProblemCode::FirmwareInvalid, "nothing came for 10 s; send the image again");
    while let Some(frame) = timeout(PIECE_TIME, body.frame()).await.map_err(too_slow)? {
        let cut_short = |_| {
            Problem::new(
                ProblemCode::FirmwareInvalid,
                "the image ended before it was complete; send it again",
            )
        };
        let Ok(data) = frame.map_err(cut_short)?.into_data() else { continue };
        check.feed(&data)?;
    }
    Ok(check.finish()?)
}
