//! The SSH door: `…/workstations/<name>/ssh` becomes the byte stream of the SSH server inside.
//!
//! The client asks with `Upgrade: ringleader-ssh`; after the 101 the connection is bytes, copied
//! both ways through two fixed buffers until both sides have ended. A side that ends is passed on
//! as the end of that direction alone, which SSH needs to deliver what is still on the way back.

use std::sync::Arc;

use http_body_util::{Either, Full};
use hyper::header::{CONNECTION, HeaderMap, HeaderValue, UPGRADE};
use hyper::upgrade::OnUpgrade;
use hyper::{Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio::sync::OwnedSemaphorePermit;

use crate::actor::doors::Refusal;
use crate::object::Subject;

use super::reply::Reply;
use super::route::Place;
use super::serve::Server;
use super::status::{Asked, Status};

/// The protocol of the upgrade.
pub const PROTOCOL: &str = "ringleader-ssh";

/// Opens the door: once the owner has let `by` in, the answer is 101 and the bytes flow.
pub async fn open(
    server: &Arc<Server>,
    by: &Subject,
    place: Place,
    headers: &HeaderMap,
    upgrade: OnUpgrade,
) -> Result<Reply, Status> {
    if !asks_for_upgrade(headers) {
        return Err(Status::upgrade_required(PROTOCOL));
    }
    let permit = server.admit_session()?;
    let namespace = place.namespace.clone().unwrap_or_default();
    let call = server.backend().ssh(namespace, place.name.clone(), by.clone());
    let inside = tokio::time::timeout(server.options().answer_within, call).await;
    let inside = inside.unwrap_or(Err(Refusal::Timeout));
    let inside = inside.map_err(|refusal| place.target(Asked::Read).refused(refusal))?;
    tokio::spawn(carry(Arc::clone(server), upgrade, inside, permit));
    Ok(switching())
}

/// Copies both ways until both sides have ended, or the daemon does.
async fn carry(
    server: Arc<Server>,
    upgrade: OnUpgrade,
    mut inside: UnixStream,
    _permit: OwnedSemaphorePermit,
) {
    let session = async {
        let mut client = TokioIo::new(upgrade.await.map_err(std::io::Error::other)?);
        tokio::io::copy_bidirectional(&mut client, &mut inside).await
    };
    tokio::select! {
        ended = session => if let Err(error) = ended {
            tracing::debug!(%error, "an ssh session broke off");
        },
        () = server.stopped() => {}
    }
}

fn asks_for_upgrade(headers: &HeaderMap) -> bool {
    let lists = |name, word: &str| {
        let values = headers.get_all(name).iter().filter_map(|value: &HeaderValue| value.to_str().ok());
        values.flat_map(|list| list.split(',')).any(|item| item.trim().eq_ignore_ascii_case(word))
    };
    lists(CONNECTION, "upgrade") && lists(UPGRADE, PROTOCOL)
}

fn switching() -> Reply {
    let mut reply = Response::new(Either::Left(Full::default()));
    *reply.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    reply.headers_mut().insert(UPGRADE, HeaderValue::from_static(PROTOCOL));
    reply
}
