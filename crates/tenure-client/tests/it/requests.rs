//! One request each, against the real server.

use std::time::Duration;

use tenure_client::{
    Client, Code, Error, EventStartPosition, IdempotencyKey, LeaseFilter, LeaseState, ReleaseRequest,
    RenewalRequest, Secret,
};
use tenure_testkit::proxied_server::{ProxiedServer, acquire_request};
use tenure_testkit::proxy::ConnectionFault;
use tenure_testkit::{eventually, with_timeout};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixListener};

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_acquired_renewed_shown_listed_and_released() {
    let network = ProxiedServer::new().await;
    let client = network.proxied_client();
    let granted = client.acquire(&acquire_request("door:a/b c", "alice", 30_000), None).await.unwrap();
    assert_eq!((granted.lease.fence, granted.valid_for_ms), (1, 30_000));
    let held = client.acquire(&acquire_request("door:a/b c", "bob", 30_000), None).await.err().unwrap();
    assert_eq!(held.code(), Some(Code::Held));
    let renew = RenewalRequest { token: granted.token.clone(), ttl_ms: Some(60_000) };
    let renewed = client.renew(&granted.lease.id, &renew).await.unwrap();
    assert!(renewed.valid_for_ms == 60_000 && renewed.lease.renewal_count == 1);
    assert_eq!(client.show(&granted.lease.id).await.unwrap().holder, "alice");
    let filter = LeaseFilter { resource: Some("door:a/b c".into()), ..LeaseFilter::default() };
    assert_eq!(client.list(&filter).await.unwrap().leases.len(), 1);
    let release = ReleaseRequest { token: granted.token, reason: Some("ABORTED".into()) };
    let ended = client.release(&granted.lease.id, &release).await.unwrap();
    assert_eq!((ended.state, ended.end.as_deref()), (LeaseState::Released, Some("ABORTED")));
}

#[tokio::test(flavor = "multi_thread")]
async fn overlong_names_are_rejected() {
    let network = ProxiedServer::new().await;
    let client = network.proxied_client();
    for length in [5_000, 70_000] {
        let name = "a".repeat(length);
        let refused = with_timeout(client.resource_state(&format!("FILE:{name}"))).await.err().unwrap();
        assert_eq!(refused.code(), Some(Code::Invalid), "{length}");
        assert!(!refused.to_string().contains("aaa"), "{length}");
        assert!(with_timeout(client.agent(&name)).await.is_err(), "{length}");
    }
    assert!(client.agents().await.unwrap().is_empty(), "it goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_requests_share_pooled_connections() {
    let network = ProxiedServer::new().await;
    let client = network.proxied_client();
    network.proxy.inject_faults(&[
        ConnectionFault::None,
        ConnectionFault::DropEverything,
        ConnectionFault::DropEverything,
    ]);
    for _ in 0..50 {
        with_timeout(client.list(&LeaseFilter::default())).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn closed_pooled_connection_is_replaced() {
    let network = ProxiedServer::new().await;
    let client = network.proxied_client();
    let granted = client.acquire(&acquire_request("door:a", "alice", 30_000), None).await.unwrap();
    for _ in 0..20 {
        network.proxy.close_connections();
        let renew = RenewalRequest { token: granted.token.clone(), ttl_ms: None };
        client.renew(&granted.lease.id, &renew).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_response_is_outcome_unknown_and_repeatable_with_the_key() {
    let network = ProxiedServer::new().await;
    let client = network.proxied_client();
    for (fault, fence) in
        [(ConnectionFault::CloseBeforeResponse, 1), (ConnectionFault::CloseDuringResponse, 2)]
    {
        let request = acquire_request(&format!("door:{fence}"), "alice", 30_000);
        let key = IdempotencyKey::random();
        network.proxy.close_connections();
        network.proxy.inject_faults(&[fault]);
        let lost = client.acquire(&request, Some(&key)).await.err().expect("the answer was lost");
        assert!(matches!(lost, Error::OutcomeUnknown { .. }), "{lost:?}");
        let found = client.acquire(&request, Some(&key)).await.unwrap();
        assert_eq!(found.lease.fence, fence);
        let other = client.acquire(&request, None).await.err().expect("it is held");
        assert_eq!(other.code(), Some(Code::Held));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn request_without_idempotency_key_is_not_repeated() {
    let network = ProxiedServer::new().await;
    let client = network.proxied_client();
    let rounds: Vec<_> = (0..20).map(|round| format!("door:{round}")).collect();
    for resource in &rounds {
        // The connection that is kept ends in the very moment in which it is used again: sometimes before the request,
        // and sometimes the one after it ends with the answer to a request that was carried out.
        let _ = client.list(&LeaseFilter::default()).await;
        network.proxy.close_connections();
        network.proxy.inject_faults(&[ConnectionFault::CloseBeforeResponse]);
        let shared = tenure_client::AcquireRequest {
            mode: Some("shared".into()),
            ..acquire_request(resource, "alice", 30_000)
        };
        let Err(lost) = client.acquire(&shared, None).await else { panic!("the answer was lost") };
        assert!(matches!(lost, Error::OutcomeUnknown { .. }), "{lost:?}");
    }
    let carried_out = async || {
        let mut all = Vec::new();
        for resource in &rounds {
            all.push(network.leases_on(resource).await.len());
        }
        all
    };
    eventually(|| async { carried_out().await.contains(&1) }).await;
    assert!(carried_out().await.iter().all(|times| *times <= 1), "{:?}", carried_out().await);
}

#[tokio::test]
async fn unreachable_server_differs_from_a_foreign_server() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let client = Client::builder().url(&format!("http://{address}")).unwrap().build().unwrap();
    let stranger = tokio::spawn(async move {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(b"220 mail.example ready\r\n").await.unwrap();
        }
    });
    let error = client.list(&LeaseFilter::default()).await.err().unwrap();
    assert!(matches!(error, Error::Protocol { .. } | Error::Unreachable { .. }), "{error:?}");
    stranger.abort();
    let _ = stranger.await;
    let error = client.list(&LeaseFilter::default()).await.err().unwrap();
    let message = error.to_string();
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    assert!(message.contains(&address.to_string()) && message.contains("tenure serve"), "{message}");
    assert!(message.contains("TENURE_URL"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_token_is_unauthorized_and_not_shown() {
    let network = ProxiedServer::new().await;
    let url = format!("http://{}", network.server.address);
    let token = Secret::new("wrong-and-secret");
    assert!(!format!("{token:?}").contains("wrong"));
    let client = Client::builder().url(&url).unwrap().token(token).build().unwrap();
    let error = client.list(&LeaseFilter::default()).await.err().unwrap();
    assert_eq!(error.code(), Some(Code::Unauthorized));
    assert!(!format!("{error} {error:?}").contains("wrong-and-secret"));
}

/// The socket's other end, which shows what was sent.
#[tokio::test]
async fn token_is_not_sent_to_a_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tenure.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let answered = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut bytes = vec![0; 1 << 12];
        let count = stream.read(&mut bytes).await.unwrap();
        let body = r#"{"leases":[],"next":null}"#;
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        stream.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8(bytes[..count].to_vec()).unwrap()
    });
    let client = Client::builder().socket(&path).token(Secret::new("hush")).build().unwrap();
    assert!(client.list(&LeaseFilter::default()).await.unwrap().leases.is_empty());
    let sent = answered.await.unwrap().to_ascii_lowercase();
    assert!(sent.contains("host: localhost") && !sent.contains("authorization"), "{sent}");
}

#[tokio::test]
async fn oversized_response_is_a_protocol_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::builder()
        .url(&format!("http://{}", listener.local_addr().unwrap()))
        .unwrap()
        .build()
        .unwrap();
    let flood = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut some = [0; 1 << 12];
        let _ = stream.read(&mut some).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9999999999\r\n\r\n").await;
        while stream.write_all(&[b' '; 1 << 16]).await.is_ok() {}
    });
    let error = with_timeout(client.show("x")).await.err().unwrap();
    assert!(matches!(error, Error::Protocol { .. }), "{error:?}");
    with_timeout(flood).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn event_stream_resumes_after_a_lost_connection() {
    let network = ProxiedServer::new().await;
    let (client, neighbour) = (network.proxied_client(), network.direct_client());
    let mut stream = client.events(EventStartPosition::Seq(1), &Default::default()).await.unwrap();
    let mut fences = Vec::new();
    for round in 0..6 {
        let granted = neighbour
            .acquire(&acquire_request(&format!("door:{round}"), "alice", 30_000), None)
            .await
            .unwrap();
        if round % 2 == 0 {
            network.proxy.close_connections();
        }
        while fences.last() != Some(&granted.lease.fence) {
            let event = with_timeout(stream.next()).await.unwrap().expect("it goes on");
            if event.r#type == "lease.issued" {
                fences.push(event.lease.expect("a lease").fence);
            }
        }
    }
    assert_eq!(fences, [1, 2, 3, 4, 5, 6], "each once, in order");
    let from = EventStartPosition::After(stream.last_id().expect("it told some").to_owned());
    drop(stream);
    neighbour.acquire(&acquire_request("door:last", "alice", 30_000), None).await.unwrap();
    let mut again = client.events(from, &Default::default()).await.unwrap();
    let event = with_timeout(again.next()).await.unwrap().expect("it goes on");
    assert_eq!(event.lease.map(|lease| lease.resource).as_deref(), Some("door:last"));
}

#[tokio::test]
async fn connecting_times_out() {
    // A listener whose queue is full answers nobody.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut queued = Vec::new();
    while let Ok(Ok(stream)) =
        tokio::time::timeout(Duration::from_millis(300), TcpStream::connect(address)).await
    {
        queued.push(stream);
        assert!(queued.len() < 10_000);
    }
    let client = Client::builder().url(&format!("http://{address}")).unwrap().build().unwrap();
    let error = with_timeout(client.list(&LeaseFilter::default())).await.err().unwrap();
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
}
