//! Tenure over `/v1/stream`: the commands of a connection as one JSON array in one WebSocket message.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::launcher::RunningServer;
use super::tenure::{LeaseBody, write_acquire};
use super::{LeaseSlot, Step, TTL};
use crate::error::BenchError;
use crate::websocket::WebSocket;

pub struct TenureStream {
    socket: WebSocket,
    holder: String,
    message: String,
    /// Of the leases that it acquires.
    ttl_ms: u128,
}

/// One element of an array of the server.
#[derive(Deserialize)]
struct StreamResponse<'a> {
    /// The number of the slot.
    id: Option<usize>,
    #[serde(borrow)]
    ok: Option<LeaseBody<'a>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct StreamError<'a> {
    code: &'a str,
}

impl TenureStream {
    pub async fn connect(server: &RunningServer, number: usize) -> Result<Self, BenchError> {
        let authorization = server.authorization.as_deref();
        let socket = WebSocket::connect(&server.endpoint(), "/v1/stream", authorization).await?;
        let holder = format!("bench-stream-{number}");
        Ok(Self { socket, holder, message: String::new(), ttl_ms: TTL.as_millis() })
    }

    pub fn set_ttl_ms(&mut self, ttl_ms: u128) {
        self.ttl_ms = ttl_ms;
    }

    /// Sends `step` for every slot and waits for all responses, in whichever order they come.
    pub async fn perform(
        &mut self,
        step: Step,
        slots: &mut [LeaseSlot],
        completed: &mut (impl FnMut() + Send),
    ) -> Result<(), BenchError> {
        self.begin();
        for (number, slot) in slots.iter().enumerate() {
            match step {
                Step::Acquire => self.push_acquire(number, &slot.resource, None),
                Step::Renew | Step::Release => self.push(number, step, slot),
            }
        }
        self.send().await?;
        self.receive_all(step, slots, completed).await
    }

    /// Acquires one lease, waiting in the queue.
    pub async fn acquire_or_wait(&mut self, slot: &mut LeaseSlot, wait_ms: u64) -> Result<(), BenchError> {
        self.begin();
        self.push_acquire(0, &slot.resource, Some(wait_ms));
        self.send().await?;
        self.receive_all(Step::Acquire, std::slice::from_mut(slot), &mut || ()).await
    }

    /// Asks for the events of one type from now on. Nothing else may be sent on this connection afterwards.
    pub async fn watch(&mut self, event_type: &str) -> Result<(), BenchError> {
        let command = format!(r#"[{{"id":0,"do":"watch","type":"{event_type}","from":"now"}}]"#);
        self.socket.send(command.as_bytes()).await?;
        self.receive_message(|message| match message {
            text if text.starts_with(br#"[{"id":0,"ok""#) => Ok(()),
            text => Err(BenchError::unexpected("a watch", text)),
        })
        .await
    }

    /// Waits for the next message as it is.
    pub async fn receive_message<T>(
        &mut self,
        read: impl FnMut(&[u8]) -> Result<T, BenchError>,
    ) -> Result<T, BenchError> {
        self.socket.receive(read).await
    }

    fn begin(&mut self) {
        self.message.clear();
        self.message.push('[');
    }

    fn push_acquire(&mut self, number: usize, resource: &str, wait_ms: Option<u64>) {
        write!(self.message, r#"{{"id":{number},"do":"acquire","#).expect("memory can be written");
        write_acquire(&mut self.message, resource, &self.holder, self.ttl_ms);
        if let Some(wait_ms) = wait_ms {
            write!(self.message, r#","waitMs":{wait_ms}"#).expect("memory can be written");
        }
        self.message.push_str("},");
    }

    fn push(&mut self, number: usize, step: Step, slot: &LeaseSlot) {
        let (verb, lease, token) = (step.name(), &slot.id, &slot.proof);
        write!(self.message, r#"{{"id":{number},"do":"{verb}","lease":"{lease}","token":"{token}"}},"#)
            .expect("memory can be written");
    }

    async fn send(&mut self) -> Result<(), BenchError> {
        self.message.pop();
        self.message.push(']');
        self.socket.send(self.message.as_bytes()).await
    }

    async fn receive_all(
        &mut self,
        step: Step,
        slots: &mut [LeaseSlot],
        completed: &mut (impl FnMut() + Send),
    ) -> Result<(), BenchError> {
        let mut pending = slots.len();
        while pending > 0 {
            let received = self.socket.receive(|message| {
                let responses: Vec<StreamResponse<'_>> = serde_json::from_slice(message)
                    .map_err(|_| BenchError::unexpected(step.name(), message))?;
                for response in &responses {
                    check(response, step, slots).map_err(|()| failure(response, step, message))?;
                    completed();
                }
                Ok(responses.len())
            });
            let received = received.await?;
            pending = pending
                .checked_sub(received)
                .ok_or_else(|| BenchError::unexpected(step.name(), "more responses than commands"))?;
        }
        Ok(())
    }
}

fn check(response: &StreamResponse<'_>, step: Step, slots: &mut [LeaseSlot]) -> Result<(), ()> {
    let slot = response.id.and_then(|number| slots.get_mut(number)).ok_or(())?;
    let body = response.ok.as_ref().ok_or(())?;
    if body.check(step, slot) { Ok(()) } else { Err(()) }
}

fn failure(response: &StreamResponse<'_>, step: Step, message: &[u8]) -> BenchError {
    let is_held = response.error.is_some_and(|error| {
        serde_json::from_str::<StreamError<'_>>(error.get()).is_ok_and(|error| error.code == "HELD")
    });
    match response.error {
        Some(error) if is_held => BenchError::Denied(error.get().to_owned()),
        Some(error) => BenchError::unexpected(step.name(), error.get()),
        None => BenchError::unexpected(step.name(), message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_matched_to_slots_by_their_ids() {
        let text = br#"[{"id":1,"ok":{"lease":{"id":"a-2","state":"ACTIVE","fence":2},"token":"t2"}},
            {"id":0,"ok":{"lease":{"id":"a-1","state":"ACTIVE","fence":1},"token":"t1"}}]"#;
        let responses: Vec<StreamResponse<'_>> = serde_json::from_slice(text).unwrap();
        let mut slots = vec![LeaseSlot::default(); 2];
        for response in &responses {
            check(response, Step::Acquire, &mut slots).unwrap();
        }
        assert_eq!((slots[0].id.as_str(), slots[1].proof.as_str()), ("a-1", "t2"));
    }

    #[test]
    fn a_held_resource_is_a_denial_and_other_errors_are_not() {
        for (text, is_denial) in
            [(r#"{"id":0,"error":{"code":"HELD"}}"#, true), (r#"{"id":0,"error":{"code":"BUSY"}}"#, false)]
        {
            let response: StreamResponse<'_> = serde_json::from_str(text).unwrap();
            assert!(check(&response, Step::Acquire, &mut [LeaseSlot::default()]).is_err());
            let error = failure(&response, Step::Acquire, text.as_bytes());
            assert_eq!(matches!(error, BenchError::Denied(_)), is_denial, "{error}");
        }
    }
}
