//! Every route of the API document, and the documented responses.

use serde_json::{Value, json};

use super::client::{Answer, ask};
use super::schema::check;
use super::{NETWORK, Stage};

/// Returns the body for routes that need one.
fn body_of(method: &str, path: &str) -> Value {
    match (method, path) {
        ("POST", "/v1/links") => json!({ "name": "new", "match": "src=10.7.0.1", "rate": "1mbit" }),
        ("PATCH", _) => json!({ "delay": "6ms", "loss": ["1%", "3%"] }),
        ("POST", "/v1/changes") => json!({ "at": "300s", "pause": ["adsl*"] }),
        _ => panic!("{method} {path} is new: say what it takes"),
    }
}

/// Returns the schema of an answer by status.
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
    let socket = stage.socket();
    let _running = stage.start(NETWORK, &["--control", &socket, "--view"]);
    let document = ask(&socket, "GET /v1/openapi.json", "").json();
    let mut asked = 0;
    // A link is added and changed before it is removed.
    for method in ["post", "patch", "get", "delete"] {
        for (path, methods) in document["paths"].as_object().expect("paths") {
            let Some(operation) = methods.get(method) else {
                continue;
            };
            let events = operation["responses"]["200"]["content"].get("text/event-stream");
            if events.is_some() {
                continue;
            }
            // The view's routes name directions, all other routes links.
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
            let answer = ask(&socket, &format!("{method} {target}"), &body);
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
            let answer = ask(&socket, &format!("{method} {target}?nonsense=1"), &body);
            assert_eq!(answer.status, 400, "{answer:?}");
            let schema = schema_of(operation, &answer);
            check(&answer.json(), schema, &document, path).expect("a refusal");
        }
    }
    assert!(asked >= 14, "{asked}");
}

/// Asserts that each problem points to its value in the request body.
fn problems_point_into_the_body(socket: &str, wrong: &str) {
    for (request, body, pointer) in [
        ("POST /v1/changes", wrong, "/set/home/delay"),
        ("PATCH /v1/links/ho*", r#"{"delay":"soon"}"#, "/delay"),
        ("PATCH /v1/links/home", r#"{"loss":[null]}"#, "/loss/0"),
        (
            "POST /v1/links",
            r#"{"name":"more","match":"src=10.8.8.8","up":{"loss":["1%","x"]}}"#,
            "/up/loss/1",
        ),
    ] {
        let answer = ask(socket, request, body).json();
        let mut problems = answer["problems"].as_array().expect("problems").iter();
        assert!(
            problems.any(|problem| problem["pointer"] == pointer),
            "{answer}"
        );
    }
}

#[test]
fn links_are_read_and_changed() {
    let Some(stage) = Stage::new() else { return };
    let socket = stage.socket();
    let _running = stage.start(NETWORK, &["--control", &socket]);
    let get = |target: &str| ask(&socket, &format!("GET {target}"), "").json();
    let radio = get("/v1/links/radio%2F1");
    assert_eq!(
        (&radio["name"], &radio["shared"]),
        (&json!("radio/1"), &json!(true))
    );
    assert_eq!(radio["up"]["options"], json!({ "rate": "1mbit" }));
    assert_eq!(
        get("/v1/links/home")["up"]["options"]["loss"],
        json!(["1%", "2%"])
    );
    // A change with one invalid field is refused as a whole.
    let wrong = r#"{"set":{"adsl*":{"rate":"2mbit"},"home":{"delay":"soon"}},"off":["nobody"]}"#;
    let answer = ask(&socket, "POST /v1/changes", wrong);
    assert_eq!(answer.status, 422, "{answer:?}");
    let fields = answer.json();
    let fields = fields["problems"].as_array().expect("problems").iter();
    let fields: Vec<&str> = fields
        .filter_map(|problem| problem["field"].as_str())
        .collect::<Vec<_>>();
    assert_eq!(fields.len(), 2, "{answer:?}");
    problems_point_into_the_body(&socket, wrong);
    assert!(answer.body.contains("home.delay"), "{answer:?}");
    assert_eq!(get("/v1/links/adsl1")["up"]["options"]["rate"], "10mbit");
    // With `check`, the same answer but no change.
    let right = r#"{"set":{"adsl*":{"rate":"2mbit"}}}"#;
    let checked = ask(&socket, "POST /v1/changes?check=true", right).json();
    assert_eq!(checked["links"], 3);
    assert_eq!(get("/v1/links/adsl1")["up"]["options"]["rate"], "10mbit");
    let one_way = ask(
        &socket,
        "PATCH /v1/links/adsl%3F.down",
        r#"{"rate":"3mbit"}"#,
    );
    assert_eq!(one_way.json()["links"], 3);
    let changed = get("/v1/links/adsl2");
    assert_eq!(changed["up"]["options"]["rate"], "10mbit");
    assert_eq!(changed["down"]["options"]["rate"], "3mbit");
    // Scheduled for later.
    let later = ask(&socket, "PATCH /v1/links/home?in=900s", r#"{"delay":"1s"}"#).json();
    assert!(later["at_ns"].as_u64() > Some(900_000_000_000), "{later}");
    assert_eq!(get("/v1/links/home")["up"]["options"]["delay"], "5ms");
    let changes = get("/v1/changes");
    let changes = changes["changes"].as_array().expect("changes");
    assert_eq!(changes.last().expect("one")["change"]["in"], "900s");
    // Invalid requests.
    let status = |line: &str, body: &str| ask(&socket, line, body).status;
    assert_eq!(status("GET /v1/links/missing", ""), 404);
    assert_eq!(status("GET /v2", ""), 404);
    assert_eq!(status("PATCH /v1/links/missing", r#"{"delay":"1s"}"#), 422);
    assert_eq!(status("PATCH /v1/links/home", r#"{"dely":"1s"}"#), 400);
    assert_eq!(status("PATCH /v1/links/home", r#"{"delay":["1s"]}"#), 400);
    assert_eq!(status("PATCH /v1/links/home", "no JSON"), 400);
    assert_eq!(status("PATCH /v1/links/home", "[]"), 400);
    assert_eq!(status("GET /v1/links?limit=0", ""), 400);
    let answer = ask(&socket, "PUT /v1/links", "{}");
    assert_eq!(
        (answer.status, answer.header("allow")),
        (405, Some("get, post"))
    );
    let large = format!(r#"{{"x":"{}"}}"#, "x".repeat(17 << 20));
    assert_eq!(status("POST /v1/changes", &large), 413);
    assert_eq!(status("GET /v1", ""), 200);
}

#[test]
fn changes_are_read_a_page_at_a_time_from_the_newest() {
    let Some(stage) = Stage::new() else { return };
    let socket = stage.socket();
    let _running = stage.start(NETWORK, &["--control", &socket]);
    for delay in 1..=5 {
        let change = format!(r#"{{ "delay": "{delay}ms" }}"#);
        let changed = ask(&socket, "PATCH /v1/links/home.up", &change);
        assert_eq!(changed.status, 200, "{changed:?}");
    }
    let page = |query: &str| {
        let page = ask(&socket, &format!("GET /v1/changes{query}"), "").json();
        let delays = page["changes"].as_array().expect("changes").iter();
        let delays = delays.map(|done| {
            let delay = &done["change"]["set"]["home.up"]["delay"];
            delay.as_str().unwrap_or("of the scenario").to_owned()
        });
        let delays: Vec<String> = delays.filter(|delay| delay.ends_with("ms")).collect();
        (delays.join(" "), page["next"].as_u64())
    };
    let all = page("").0;
    assert_eq!((all.as_str(), page("").1), ("1ms 2ms 3ms 4ms 5ms", None));
    assert_eq!(page("?limit=2"), ("4ms 5ms".to_owned(), Some(2)));
    assert_eq!(page("?limit=2&skip=2"), ("2ms 3ms".to_owned(), Some(4)));
    assert_eq!(page("?limit=10000&skip=99"), (String::new(), None));
    assert_eq!(ask(&socket, "GET /v1/changes?limit=0", "").status, 400);
}
