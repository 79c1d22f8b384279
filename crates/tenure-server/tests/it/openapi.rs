//! The OpenAPI document. Each response to a test is compared with it by the testkit.

use tenure_testkit::TestServer;
use tenure_testkit::openapi::document;

#[test]
fn the_served_openapi_document_is_the_one_in_the_repository() {
    let server = TestServer::start();
    let answer = server.request("GET /openapi.json", &[], "");
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    assert_eq!(answer.json(), *document());
}
