//! The images that machines are made from: what `rl image` lists and takes anew.

use hyper::StatusCode;
use serde_json::json;

use crate::actor::doors::NoImage;
use crate::object::Subject;

use super::reply::{self, Reply};
use super::serve::Server;
use super::status::Status;

/// GET `/ringleader/v1/images`.
pub fn list(server: &Server) -> Reply {
    reply::json(StatusCode::OK, &json!({"items": server.backend().images()}))
}

/// POST `/ringleader/v1/images/<name>/refresh`: answers once it is taken, however long that takes.
pub async fn refresh(server: &Server, by: &Subject, name: String) -> Result<Reply, Status> {
    let taken = server.backend().refresh_image(name, by.clone()).await;
    taken.map(|image| reply::json(StatusCode::OK, &image)).map_err(|error| {
        let why = error.to_string();
        match error {
            NoImage::NotCarried { .. } => Status::nothing_of_that_name(why),
            NoImage::Forbidden(_) => Status::forbidden(why),
            NoImage::Failed(_) => Status::failed(why),
        }
    })
}
