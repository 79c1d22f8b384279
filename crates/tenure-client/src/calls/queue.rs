//! Who waits, and why a resource is as it is.

use serde::Deserialize;
use tenure_api::{Explanation, Queue};

use crate::client::Client;
use crate::connection::{Call, Query};
use crate::error::Error;

#[derive(Deserialize)]
struct Withdrawn {}

impl Client {
    /// Who waits for a resource, in the order in which they will be served.
    pub async fn queue(&self, resource: &str) -> Result<Queue, Error> {
        let query = Query::new("/v1/queue").with("resource", Some(resource));
        self.ask(&Call::get(query.into_text()).for_a_list()).await
    }

    /// Leaves a queue. A ticket that was served, withdrawn or never there is [`Code::NotFound`].
    ///
    /// [`Code::NotFound`]: tenure_api::Code::NotFound
    pub async fn withdraw(&self, ticket: u64) -> Result<(), Error> {
        let path = Query::path("/v1/queue", &[&ticket.to_string()]);
        self.ask::<Withdrawn>(&Call::delete(path.into_text())).await.map(|_| ())
    }

    /// Who holds a resource, who waits, what would free it, and why the last request was refused.
    pub async fn explain(&self, resource: &str) -> Result<Explanation, Error> {
        let query = Query::new("/v1/explain").with("resource", Some(resource));
        self.ask(&Call::get(query.into_text()).for_a_list()).await
    }
}
