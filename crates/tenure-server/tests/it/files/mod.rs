//! Files over the local socket, asked for by processes of their own.

mod audit;
mod hard_links;
mod permissions;
mod release;

/// Not a test: what a `FileAgent` runs, so that a request comes from a process that the agent started.
#[test]
fn a_request_of_an_agent() {
    tenure_testkit::files::send_agent_request();
}
