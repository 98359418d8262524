//! `…/workstationpools/<name>/usage`: the week of a pool, counted up to this moment (rule U3).
//!
//! Straight from the view, as every read: the rows say what was counted last and what there has
//! been since, so that nobody is woken for it.

use std::sync::Arc;

use hyper::StatusCode;

use crate::clock;
use crate::object::{UsageMetadata, WAIT_BUCKETS_MILLIS, WorkstationPoolUsage, usage_at};
use crate::view::View;

use super::negotiate::Encoding;
use super::reply::Reply;
use super::route::Place;
use super::status::{Asked, Status};

/// The usage of one pool. Whoever reads the pool reads it.
pub fn get(view: &View, place: &Place, encoding: Encoding) -> Result<Reply, Status> {
    let pool = view.get(&place.key()).ok_or_else(|| place.target(Asked::Read).not_found())?;
    let rows = view.usage(pool.uid);
    let usage = WorkstationPoolUsage {
        api_version: place.kind.api_version(),
        kind: "WorkstationPoolUsage".into(),
        metadata: UsageMetadata {
            name: pool.key.name.clone(),
            namespace: pool.key.namespace.clone(),
            uid: pool.uid.to_string(),
        },
        wait_buckets_millis: WAIT_BUCKETS_MILLIS.to_vec(),
        hours: usage_at(rows.iter().map(Arc::as_ref), &clock::tick()),
    };
    Ok(encoding.reply(StatusCode::OK, &usage))
}
