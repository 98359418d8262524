//! The images, listed and taken anew.

use crate::provider::CarriedImage;

use super::*;

const IMAGES: &str = "/ringleader/v1/images";

fn with_host_image() -> Api {
    let api = Api::start();
    let image = CarriedImage {
        name: "host".into(),
        distribution: "debian".into(),
        version: "12".into(),
        os: "linux".into(),
        default: true,
        generation: None,
        taken_at: None,
    };
    api.house.images.lock().unwrap().push(image);
    api
}

#[tokio::test]
async fn an_image_that_is_not_taken_yet_is_listed_without_a_generation() {
    let api = with_host_image();
    let image =
        json!({"name": "host", "distribution": "debian", "version": "12", "os": "linux", "default": true});
    assert_eq!(api.get(IMAGES).await.json(), json!({"items": [image]}));
}

#[tokio::test]
async fn a_refresh_answers_the_new_generation_and_is_asked_for_by_post_alone() {
    let api = with_host_image();
    let refresh = format!("{IMAGES}/host/refresh");
    assert_eq!(api.get(&refresh).await.code, StatusCode::METHOD_NOT_ALLOWED);
    let answer = api.send(Method::POST, &refresh, &json!({})).await;
    assert_eq!(answer.code, StatusCode::OK);
    assert_eq!(answer.json()["generation"], "host/2");

    let answer = api.send(Method::POST, &format!("{IMAGES}/beos/refresh"), &json!({})).await;
    assert_eq!(answer.code, StatusCode::NOT_FOUND);
    assert_eq!(answer.json()["message"], "no image \"beos\" is here; this daemon carries: host (debian 12)");
}
