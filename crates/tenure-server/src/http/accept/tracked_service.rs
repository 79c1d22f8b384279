//! Says when nothing is under way on a connection: only then can it be set aside.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::service::Service;
use hyper::{Request, Response, StatusCode};
use hyper_util::service::TowerToHyperService;
use parking_lot::Mutex;

use super::limits::ConnectionUpgrade;
use super::stream::Peer;

#[derive(Default)]
pub(super) struct ConnectionActivity {
    started: AtomicU64,
    ended: AtomicU64,
    is_stalled: AtomicBool,
    /// What the connection goes on with after HTTP.
    upgrade: Mutex<Option<ConnectionUpgrade>>,
}

impl ConnectionActivity {
    pub(super) fn started(&self) -> u64 {
        self.started.load(Ordering::Acquire)
    }

    /// Whether there was a request, and none is under way, and the caller has taken every answer.
    pub(super) fn is_idle(&self) -> bool {
        let started = self.started();
        started > 0
            && self.ended.load(Ordering::Acquire) == started
            && !self.is_stalled.load(Ordering::Acquire)
    }

    /// What the connection goes on with, if both sides agreed on something else than HTTP.
    pub(super) fn take_upgrade(&self) -> Option<ConnectionUpgrade> {
        self.upgrade.lock().take()
    }

    /// Notes whether something waits to be taken by the caller.
    pub(super) fn set_stalled(&self, is_stalled: bool) {
        self.is_stalled.store(is_stalled, Ordering::Release);
    }
}

/// A request that is under way until this is dropped.
struct InFlightRequest(Arc<ConnectionActivity>);

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Release);
    }
}

pub(super) struct TrackedService {
    service: TowerToHyperService<Router>,
    peer: Peer,
    activity: Arc<ConnectionActivity>,
}

impl TrackedService {
    pub(super) fn new(router: Router, peer: Peer, activity: Arc<ConnectionActivity>) -> Self {
        Self { service: TowerToHyperService::new(router), peer, activity }
    }
}

impl Service<Request<Incoming>> for TrackedService {
    type Response = Response<TrackedBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        self.activity.started.fetch_add(1, Ordering::Release);
        let under_way = InFlightRequest(self.activity.clone());
        request.extensions_mut().insert(self.peer);
        let (answer, activity) = (self.service.call(request), self.activity.clone());
        Box::pin(async move {
            let mut answer = answer.await?;
            if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
                let agreed = answer.extensions_mut().remove::<ConnectionUpgrade>();
                *activity.upgrade.lock() = agreed;
                // It is under way as long as the connection is: nobody may set it aside.
                activity.started.fetch_add(1, Ordering::Release);
            }
            Ok(answer.map(|body| TrackedBody { body, _under_way: under_way }))
        })
    }
}

/// A body whose end is the end of its request.
pub(super) struct TrackedBody {
    body: Body,
    _under_way: InFlightRequest,
}

impl HttpBody for TrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
