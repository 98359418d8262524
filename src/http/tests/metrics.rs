//! `/metrics`, as scrapers ask for it.

use hyper::header::ACCEPT;

use super::*;

#[tokio::test]
async fn a_scraper_gets_the_form_it_asks_for_first() {
    let api = Api::start();
    let openmetrics = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let plain = "text/plain; version=0.0.4; charset=utf-8";
    // As Prometheus 2 and 3 ask.
    let two = "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,\
               text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
    let three = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                 application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,\
                 text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
    for (accepts, gets) in [
        (two, openmetrics),
        (three, openmetrics),
        ("text/plain", plain),
        ("*/*", plain),
        ("text/html", plain),
    ] {
        let answer = api.ask(Method::GET, "/metrics", &[(ACCEPT, accepts)], "").await;
        assert_eq!((answer.code, answer.header("content-type")), (StatusCode::OK, gets), "{accepts}");
        assert!(answer.text.starts_with("# HELP ringleader_build"), "{}", answer.text);
        assert_eq!(answer.text.ends_with("\n# EOF\n"), gets == openmetrics);
    }
    assert_eq!(api.get("/metrics").await.header("content-type"), plain, "curl as it is typed");
    assert_eq!(api.ask(Method::POST, "/metrics", &[], "").await.code, StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn requests_are_counted_by_what_they_do_and_how_they_end_whatever_they_name() {
    let api = Api::start();
    api.create_pool("agents").await;
    api.get(&format!("{POOLS}/agents")).await;
    for stranger in ["no-such", "nor-this", "%00%7B%7D%22"] {
        api.get(&format!("{POOLS}/{stranger}")).await;
    }
    api.ask(Method::from_bytes(b"BREW").unwrap(), POOLS, &[], "").await;
    let watching = api.open(Method::GET, &format!("{POOLS}?watch=true"), &[], "").await;
    let scraped = api.get("/metrics").await.text;
    for line in [
        "ringleader_http_requests_total{verb=\"post\",code=\"2xx\"} 1",
        "ringleader_http_requests_total{verb=\"get\",code=\"4xx\"} 3",
        "ringleader_http_requests_total{verb=\"other\",code=\"4xx\"} 1",
        "ringleader_http_request_seconds_count{verb=\"post\"} 1",
        "ringleader_http_watches 1",
        "ringleader_http_ssh_sessions 0",
    ] {
        assert!(scraped.lines().any(|found| found == line), "no {line} in\n{scraped}");
    }
    assert!(!scraped.contains("no-such") && !scraped.contains("BREW"));
    drop(watching);
}
