//! `/ringleader/v1/images`: what machines are made from, and (with POST) taken anew first.

use hyper::StatusCode;
use serde_json::json;

use crate::actor::doors::Backend;

use super::reply::{self, Reply};
use super::status::Status;

/// The list, after a refresh if that was asked for. A refresh takes seconds; whoever asked waits.
pub async fn answer(backend: &dyn Backend, reading: bool) -> Result<Reply, Status> {
    if !reading {
        backend.refresh_images().await.map_err(|refusal| Status::unavailable(refusal.to_string()))?;
    }
    Ok(reply::json(StatusCode::OK, &json!({"items": backend.images()})))
}
