//! Real terminals and pipes, with the real rules about leases behind them, and a device of a few numbers.

mod fake_controller;
mod fake_rotary_encoder;
mod fake_serial_port;
mod reconnect;
mod serial;

use std::time::Duration;

/// Waits until something is so.
async fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting).await.unwrap_or_else(|_| panic!("never: {what}"));
}
