//! The SSH door.

use hyper::header::{CONNECTION, UPGRADE};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::object::Subject;

use super::*;

const DOOR: &str = "/apis/workstations.ringleader.dev/v1/namespaces/local/workstations/agents-1/ssh";
const ASKING: [(HeaderName, &str); 2] = [(CONNECTION, "Upgrade"), (UPGRADE, "ringleader-ssh")];

impl Api {
    /// A client's end and the workstation's end of one session.
    async fn session(&self, method: Method) -> (impl AsyncReadExt + AsyncWriteExt + Unpin, UnixStream) {
        let (inside, workstation) = UnixStream::pair().unwrap();
        *self.house.inside.lock().unwrap() = Some(inside);
        let response = self.open(method, DOOR, &ASKING, "").await;
        assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
        assert_eq!(response.headers()["upgrade"], "ringleader-ssh");
        (TokioIo::new(hyper::upgrade::on(response).await.unwrap()), workstation)
    }
}

#[tokio::test]
async fn the_door_carries_bytes_both_ways_until_both_sides_have_ended() {
    let api = Api::start();
    for method in [Method::POST, Method::GET] {
        let (mut client, mut workstation) = api.session(method).await;
        client.write_all(b"SSH-2.0-client\r\n").await.unwrap();
        let mut line = [0; 16];
        workstation.read_exact(&mut line).await.unwrap();
        assert_eq!(&line, b"SSH-2.0-client\r\n");

        // The client has no more to say; the answer still comes.
        client.shutdown().await.unwrap();
        let mut rest = Vec::new();
        workstation.read_to_end(&mut rest).await.unwrap();
        assert!(rest.is_empty());
        workstation.write_all(&vec![7; 100_000]).await.unwrap();
        drop(workstation);
        client.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest.len(), 100_000);
    }
    let visitors = api.house.visitors.lock().unwrap();
    assert_eq!(visitors[0], ("local".to_owned(), "agents-1".to_owned(), Subject::user("local")));
}

#[tokio::test]
async fn the_door_opens_only_to_its_own_protocol() {
    let api = Api::start();
    let answer = api.get(DOOR).await;
    assert_eq!((answer.code.as_u16(), answer.header("upgrade")), (426, "ringleader-ssh"));
    assert!(answer.json()["message"].as_str().unwrap().contains("Upgrade: ringleader-ssh"));
    let other = [(CONNECTION, "Upgrade"), (UPGRADE, "websocket")];
    assert_eq!(api.ask(Method::GET, DOOR, &other, "").await.code, StatusCode::UPGRADE_REQUIRED);
    assert_eq!(api.ask(Method::DELETE, DOOR, &ASKING, "").await.header("allow"), "GET, POST");
}

#[tokio::test]
async fn a_refusal_at_the_door_is_a_status() {
    let api = Api::start();
    let answer = api.ask(Method::POST, DOOR, &ASKING, "").await;
    answer.refuses(
        404,
        "NotFound",
        "workstations.workstations.ringleader.dev \"agents-1\" not found",
        &json!({"name": "agents-1", "group": "workstations.ringleader.dev", "kind": "workstations"}),
    );
}

#[tokio::test]
async fn sessions_beyond_the_limit_are_sent_away() {
    let api = Api::start_with(|options| options.sessions = 1);
    let _open = api.session(Method::POST).await;
    assert_eq!(api.ask(Method::POST, DOOR, &ASKING, "").await.code, StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn a_session_ends_with_the_daemon() {
    let api = Api::start();
    let (mut client, _workstation) = api.session(Method::POST).await;
    api.shutdown.send_replace(true);
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(DEADLINE, client.read_to_end(&mut rest)).await;
    assert!(ended.is_ok());
}
