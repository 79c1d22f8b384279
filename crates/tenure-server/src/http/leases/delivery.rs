//! An answer with which something is given away. Until the connection has taken it, what is given can be taken back.
//!
//! What the connection has taken may still be lost, in a buffer or on the way: nobody here can know that. A caller
//! that must not lose a grant sends an `Idempotency-Key`, and asks again.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use axum::response::Response;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use crate::registrar::Undelivered;

/// The answer, together with what is taken back if nobody takes the answer.
pub(in crate::http) fn deliver(response: Response, undelivered: Undelivered) -> Response {
    response.map(|body| Body::new(Delivery { body, undelivered }))
}

struct Delivery {
    body: Body,
    undelivered: Undelivered,
}

impl HttpBody for Delivery {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        // A small answer is one frame.
        self.undelivered.settle();
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use http_body_util::BodyExt as _;

    use super::*;
    use crate::http::answer::json;
    use crate::registrar::line::tests::Office;

    #[test]
    fn an_answer_that_no_connection_takes_leaves_nothing_behind() {
        let office = Office::open();
        let given = office.gets("gone");
        let next = office.lines_up("next", None);
        drop(deliver(json(StatusCode::CREATED, &"granted"), given.undelivered));
        office.is_served(next);
    }

    #[test]
    fn an_answer_that_a_connection_took_stands() {
        let office = Office::open();
        let given = office.gets("first");
        let response = deliver(json(StatusCode::CREATED, &"granted"), given.undelivered);
        assert_eq!(response.body().size_hint().exact(), Some(9), "its length is known");
        let body = office.runtime.block_on(response.into_body().collect()).unwrap();
        assert_eq!(body.to_bytes(), "\"granted\"");
        // Whatever was taken back would be by the time that this is answered.
        let next = office.lines_up("next", None);
        assert!(office.registrar.read(|state| state.ticket(next.ticket).is_some()));
    }
}
