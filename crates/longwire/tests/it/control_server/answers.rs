//! Every route in the API document, with the documented responses.

use serde_json::{Value, json};

use super::client::Answer;
use super::schema::check;
use super::{NETWORK, Stage};
use crate::common::{count, list};

/// Returns the body for routes that need one.
fn body_of(method: &str, path: &str) -> Value {
    match (method, path) {
        ("POST", "/v1/links") => json!({ "name": "new", "match": "src=10.7.0.1", "rate": "1mbit" }),
        ("PATCH", _) => json!({ "delay": "6ms", "loss": ["1%", "3%"] }),
        ("POST", "/v1/changes") => json!({ "at": "300s", "pause": ["adsl*"] }),
        _ => panic!("{method} {path} is new; add its body to `body_of`"),
    }
}

/// Returns the schema for an answer's status and content type.
fn schema_of<'a>(operation: &'a Value, answer: &Answer) -> &'a Value {
    let status = answer.status.to_string();
    let content = operation["responses"][&status]["content"].as_object();
    let content = content.unwrap_or_else(|| panic!("{status} is not in {operation}"));
    let is = |kind: &str| answer.header("content-type") == Some(kind.to_lowercase().as_str());
    let found = content.iter().find(|(kind, _)| is(kind));
    let (_, content) = found.unwrap_or_else(|| panic!("another kind: {answer:?}"));
    &content["schema"]
}

#[test]
fn every_route_answers_as_the_document_says() {
    let Some(stage) = Stage::new() else { return };
    let _running = stage.start(NETWORK, &format!("--control {} --view", stage.socket()));
    let document = stage.get("/v1/openapi.json");
    let mut asked = 0;
    // This order adds a link and changes it before removing it.
    for method in ["post", "patch", "get", "delete"] {
        for (path, methods) in document["paths"].as_object().expect("paths") {
            let Some(operation) = methods.get(method) else {
                continue;
            };
            let events = operation["responses"]["200"]["content"].get("text/event-stream");
            if events.is_some() {
                continue;
            }
            // Routes of the view name a direction; the remaining routes name a link.
            let named = match path.as_str() {
                "/v1/history/{name}" | "/v1/flows/{name}" => "new.up",
                _ => "new",
            };
            let target = path.replace("{name}", named);
            let method = method.to_uppercase();
            let body = match operation.get("requestBody") {
                None => String::new(),
                Some(wanted) => {
                    let body = body_of(&method, path);
                    let schema = &wanted["content"]["application/json"]["schema"];
                    check(&body, schema, &document, path).expect("it is what is wanted");
                    body.to_string()
                }
            };
            let answer = stage.ask(&format!("{method} {target}"), &body);
            assert_eq!(answer.status, 200, "{method} {target}: {answer:?}");
            let schema = schema_of(operation, &answer);
            let value = match schema["type"].as_str() {
                Some("string") => json!(answer.body),
                _ => answer.json(),
            };
            let checked = check(&value, schema, &document, path);
            checked.unwrap_or_else(|why| panic!("{method} {target}: {why}"));
            asked += 1;
            // Invalid queries are refused as documented.
            let answer = stage.ask(&format!("{method} {target}?nonsense=1"), &body);
            assert_eq!(answer.status, 400, "{answer:?}");
            let schema = schema_of(operation, &answer);
            check(&answer.json(), schema, &document, path).expect("a refusal");
        }
    }
    assert!(asked >= 14, "{asked}");
}

#[test]
fn links_are_read_and_changed() {
    let Some(stage) = Stage::new() else { return };
    let _running = stage.start_at_socket(NETWORK);
    let radio = stage.get("/v1/links/radio%2F1");
    assert_eq!(
        (&radio["name"], &radio["shared"]),
        (&json!("radio/1"), &json!(true))
    );
    assert_eq!(radio["up"]["options"], json!({ "rate": "1mbit" }));
    assert_eq!(stage.home("loss"), json!(["1%", "2%"]));
    let rate = |link: &str, way: &str| {
        let link = stage.get(&format!("/v1/links/{link}"));
        link[way]["options"]["rate"]
            .as_str()
            .expect("a rate")
            .to_owned()
    };
    // A change with one invalid field is refused as a whole.
    let wrong = r#"{"set":{"adsl*":{"rate":"2mbit"},"home":{"delay":"soon"}},"off":["nobody"]}"#;
    let answer = stage.ask("POST /v1/changes", wrong);
    assert_eq!(answer.status, 422, "{answer:?}");
    let problems = answer.json();
    let fields = list(&problems["problems"])
        .iter()
        .filter(|it| it["field"].is_string());
    assert_eq!(fields.count(), 2, "{answer:?}");
    assert!(answer.body.contains("home.delay"), "{answer:?}");
    assert_eq!(rate("adsl1", "up"), "10mbit");
    // Each problem points to the invalid value in the request body.
    let both = r#"{"name":"more","match":"src=10.8.8.8","up":{"loss":["1%","x"]}}"#;
    for (request, body, pointer) in [
        ("POST /v1/changes", wrong, "/set/home/delay"),
        ("PATCH /v1/links/ho*", r#"{"delay":"soon"}"#, "/delay"),
        ("PATCH /v1/links/home", r#"{"loss":[null]}"#, "/loss/0"),
        ("POST /v1/links", both, "/up/loss/1"),
    ] {
        let answer = stage.ask(request, body).json();
        let mut problems = list(&answer["problems"]).iter();
        let points = problems.any(|problem| problem["pointer"] == pointer);
        assert!(points, "{answer}");
    }
    // With `check`, the answer is the same, but nothing changes.
    let right = r#"{"set":{"adsl*":{"rate":"2mbit"}}}"#;
    let checked = stage.ask("POST /v1/changes?check=true", right).json();
    assert_eq!(checked["links"], 3);
    assert_eq!(rate("adsl1", "up"), "10mbit");
    let one_way = stage.ask("PATCH /v1/links/adsl%3F.down", r#"{"rate":"3mbit"}"#);
    assert_eq!(one_way.json()["links"], 3);
    assert_eq!(
        [rate("adsl2", "up"), rate("adsl2", "down")],
        ["10mbit", "3mbit"]
    );
    // A change scheduled for later.
    let later = stage
        .ask("PATCH /v1/links/home?in=900s", r#"{"delay":"1s"}"#)
        .json();
    assert!(count(&later["at_ns"]) > 900_000_000_000, "{later}");
    assert_eq!(stage.home("delay"), "5ms");
    let changes = stage.get("/v1/changes");
    let last = list(&changes["changes"]).last().expect("one");
    assert_eq!(last["change"]["in"], "900s");
}

#[test]
fn invalid_requests_have_their_status() {
    let Some(stage) = Stage::new() else { return };
    let _running = stage.start_at_socket(NETWORK);
    let large = format!(r#"{{"x":"{}"}}"#, "x".repeat(17 << 20));
    for (request, body, status) in [
        ("GET /v1/links/missing", "", 404),
        ("GET /v2", "", 404),
        ("PATCH /v1/links/missing", r#"{"delay":"1s"}"#, 422),
        ("PATCH /v1/links/home", r#"{"dely":"1s"}"#, 400),
        ("PATCH /v1/links/home", r#"{"delay":["1s"]}"#, 400),
        ("PATCH /v1/links/home", "no JSON", 400),
        ("PATCH /v1/links/home", "[]", 400),
        ("GET /v1/links?limit=0", "", 400),
        ("GET /v1/changes?limit=0", "", 400),
        ("PUT /v1/links", "{}", 405),
        ("POST /v1/changes", &large, 413),
        ("GET /v1", "", 200),
    ] {
        let answer = stage.ask(request, body);
        assert_eq!(answer.status, status, "{request}");
        let allowed = (status == 405).then_some("get, post");
        assert_eq!(answer.header("allow"), allowed, "{request}");
    }
}

#[test]
fn changes_are_read_a_page_at_a_time_from_the_newest() {
    let Some(stage) = Stage::new() else { return };
    let _running = stage.start_at_socket(NETWORK);
    for delay in 1..=5 {
        let change = format!(r#"{{ "delay": "{delay}ms" }}"#);
        let changed = stage.ask("PATCH /v1/links/home.up", &change);
        assert_eq!(changed.status, 200, "{changed:?}");
    }
    for (query, expected, next) in [
        ("", "1ms 2ms 3ms 4ms 5ms", None),
        ("?limit=2", "4ms 5ms", Some(2)),
        ("?limit=2&skip=2", "2ms 3ms", Some(4)),
        ("?limit=10000&skip=99", "", None),
    ] {
        let page = stage.get(&format!("/v1/changes{query}"));
        let delays = list(&page["changes"]).iter().filter_map(|done| {
            // Skips the scenario's changes, which set no delay.
            done["change"]["set"]["home.up"]["delay"].as_str()
        });
        let delays: Vec<&str> = delays.collect();
        let found = (delays.join(" "), page["next"].as_u64());
        assert_eq!(found, (expected.to_owned(), next), "{query}");
    }
}
