//! The queue of a resource.

use serde::Deserialize;
use tenure_api::{Explanation, Queue};

use crate::client::Client;
use crate::error::Error;
use crate::http::{ApiRequest, PathAndQuery};

#[derive(Deserialize)]
struct Withdrawn {}

impl Client {
    /// Who waits for a resource, in the order in which they will be served.
    pub async fn queue(&self, resource: &str) -> Result<Queue, Error> {
        let query = PathAndQuery::new("/v1/queue").with("resource", Some(resource));
        self.send(&ApiRequest::get(query.into_text()).with_list_limit()).await
    }

    /// Leaves a queue. A ticket that was served, withdrawn or never there is [`Code::NotFound`].
    ///
    /// [`Code::NotFound`]: tenure_api::Code::NotFound
    pub async fn withdraw(&self, ticket: u64) -> Result<(), Error> {
        let path = PathAndQuery::path("/v1/queue", &[&ticket.to_string()]);
        self.send::<Withdrawn>(&ApiRequest::delete(path.into_text())).await.map(|_| ())
    }

    /// Who holds a resource, who waits, what would free it, and why the last request was refused.
    pub async fn explain(&self, resource: &str) -> Result<Explanation, Error> {
        let query = PathAndQuery::new("/v1/explain").with("resource", Some(resource));
        self.send(&ApiRequest::get(query.into_text()).with_list_limit()).await
    }
}
