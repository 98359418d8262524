//! Who may ask, how much, how long; and the end.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::super::peer::Peer;
use super::super::serve::Server;
use super::*;

#[tokio::test]
async fn a_stranger_learns_the_cure_and_that_the_daemon_lives_but_nothing_else() {
    let (_phase, server) = Server::new(Arc::new(House::new()), Options::default());
    let asked = async |path: &str| {
        let (client, far_end) = tokio::io::duplex(1024);
        let server = Arc::clone(&server);
        let peer = Peer::Stranger("run \"sudo usermod\"".to_owned());
        tokio::spawn(async move { server.connection(far_end, peer).await });
        let (mut sender, connection) = http1::handshake(TokioIo::new(client)).await.unwrap();
        tokio::spawn(connection);
        let request = Request::get(path).body(Full::<Bytes>::default()).unwrap();
        let (head, body) = sender.send_request(request).await.unwrap().into_parts();
        let text = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
        Answer { code: head.status, headers: head.headers, text }
    };
    for path in [POOLS, "/apis", "/ringleader/v1/status", "/nowhere"] {
        asked(path).await.refuses(403, "Forbidden", "run \"sudo usermod\"", &Value::Null);
    }
    assert_eq!(asked("/healthz").await.text, "ok");
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_413() {
    let api = Api::start_with(|options| options.body_max_bytes = 1000);
    let mut body = pool("big");
    body["metadata"]["annotations"] = json!({"a": "x".repeat(1000)});
    api.send(Method::POST, POOLS, &body).await.refuses(
        413,
        "RequestEntityTooLarge",
        "Request entity too large: limit is 1000",
        &Value::Null,
    );
}

#[tokio::test]
async fn a_head_beyond_the_limit_is_431() {
    let api = Api::start();
    let long = "x".repeat(70_000);
    let answer = api.ask(Method::GET, POOLS, &[(HeaderName::from_static("x-long"), &long)], "").await;
    assert_eq!(answer.code, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
}

#[tokio::test]
async fn a_body_that_does_not_come_is_408() {
    let api = Api::start_with(|options| options.body_within = Duration::from_millis(20));
    let mut stream = UnixStream::connect(&api.socket).await.unwrap();
    let head = format!("POST {POOLS} HTTP/1.1\r\nhost: rl\r\ncontent-length: 100\r\n\r\n{{");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    tokio::time::timeout(DEADLINE, stream.read_to_end(&mut answer)).await.unwrap().unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 408 "), "{}", String::from_utf8_lossy(&answer));
}

#[tokio::test]
async fn a_head_that_does_not_come_closes_the_connection() {
    let api = Api::start_with(|options| options.head_within = Duration::from_millis(20));
    let mut stream = UnixStream::connect(&api.socket).await.unwrap();
    stream.write_all(b"GET /healthz HT").await.unwrap();
    let mut answer = Vec::new();
    let ended = tokio::time::timeout(DEADLINE, stream.read_to_end(&mut answer)).await;
    assert!(ended.is_ok(), "closed in time");
}

#[tokio::test]
async fn an_owner_that_does_not_answer_is_504_and_nobody_is_told_to_try_again() {
    let api = Api::start_with(|options| options.answer_within = Duration::from_millis(20));
    api.house.stuck.store(true, std::sync::atomic::Ordering::SeqCst);
    let answer = api.send(Method::POST, POOLS, &pool("agents")).await;
    answer.refuses(
        504,
        "Timeout",
        "workstationpools.workstations.ringleader.dev \"agents\": outcome unknown: read it back",
        &pool_details("agents"),
    );
    assert_eq!(answer.header("retry-after"), "");
}

#[tokio::test]
async fn a_full_house_is_429_and_still_looks_alive() {
    let api = Api::start_with(|options| {
        options.requests = 1;
        options.turn_within = Duration::from_millis(20);
    });
    api.house.stuck.store(true, std::sync::atomic::Ordering::SeqCst);
    let body = pool("agents");
    let stuck = api.send(Method::POST, POOLS, &body);
    tokio::pin!(stuck);
    let turned_away = async {
        loop {
            let answer = api.get(POOLS).await;
            if answer.code != StatusCode::OK {
                return answer;
            }
        }
    };
    let answer = tokio::select! {
        _ = &mut stuck => panic!("the owner does not answer"),
        answer = turned_away => answer,
    };
    assert_eq!((answer.code.as_u16(), answer.header("retry-after")), (429, "1"));
    assert_eq!(answer.json()["reason"], "TooManyRequests");
    assert_eq!(api.get("/healthz").await.text, "ok");
}

#[tokio::test]
async fn at_the_end_watches_close_requests_finish_and_nobody_is_let_in() {
    let api = Api::start();
    let watch = api.open(Method::GET, &format!("{POOLS}?watch=1"), &[], "").await;
    // A connection that idles between two requests must not hold the end up.
    let idle = UnixStream::connect(&api.socket).await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(idle)).await.unwrap();
    let connection = tokio::spawn(connection);
    let request = Request::get("/healthz").body(Full::<Bytes>::default()).unwrap();
    let answer = sender.send_request(request).await.unwrap();
    answer.into_body().collect().await.unwrap();

    api.shutdown.send_replace(true);
    let rest = tokio::time::timeout(DEADLINE, watch.into_body().collect()).await.unwrap();
    assert!(rest.is_ok(), "the stream ends properly");
    tokio::time::timeout(DEADLINE, connection).await.unwrap().unwrap().unwrap();
    tokio::time::timeout(DEADLINE, api.serving).await.unwrap().unwrap();
    assert!(UnixStream::connect(&api.socket).await.is_err());
}

#[tokio::test]
async fn what_does_not_finish_at_the_end_is_cut_off() {
    let api = Api::start_with(|options| options.drain_within = Duration::from_millis(20));
    api.house.stuck.store(true, std::sync::atomic::Ordering::SeqCst);
    let stream = UnixStream::connect(&api.socket).await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::post(POOLS).body(Full::<Bytes>::from(pool("agents").to_string())).unwrap();
    let answer = tokio::spawn(sender.send_request(request));
    api.get("/healthz").await;
    api.shutdown.send_replace(true);
    tokio::time::timeout(DEADLINE, api.serving).await.unwrap().unwrap();
    assert!(tokio::time::timeout(DEADLINE, answer).await.unwrap().unwrap().is_err());
}
