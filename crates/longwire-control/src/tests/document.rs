//! The OpenAPI document matches the routes.

use std::collections::BTreeSet;

use longwire_runtime::deciding::LinkTotals;
use longwire_testbed::support::rows;
use serde_json::Value;

use crate::openapi::place;
use crate::route::{Answer, Method, find};
use crate::routes::ROUTES;
use crate::{openapi, requested_change};

#[test]
fn the_document_lists_exactly_the_routes() {
    let document = openapi::document(&ROUTES);
    let paths = document["paths"].as_object().expect("paths");
    let written = paths.iter().flat_map(|(path, methods)| {
        let methods = methods.as_object().expect("methods").keys();
        methods.map(move |method| (method.to_uppercase(), path.clone()))
    });
    let written: BTreeSet<(String, String)> = written.collect();
    let routes = ROUTES.iter();
    let routes = routes.map(|route| (route.method.name().to_owned(), route.path.to_owned()));
    let routes: Vec<(String, String)> = routes.collect();
    assert_eq!(routes.len(), written.len(), "a route is there twice");
    assert_eq!(routes.into_iter().collect::<BTreeSet<_>>(), written);
    let mut identifiers = BTreeSet::new();
    for (method, path) in &written {
        let operation = &document["paths"][path][method.to_lowercase()];
        let identifier = operation["operationId"].as_str().expect("an identifier");
        let is_new = identifiers.insert(identifier.to_owned());
        assert!(is_new, "{identifier} is there twice");
        // The dispatcher finds a route for each operation of the document.
        let asked = path.replace("{name}", "some%2Aname");
        let (route, name) = find(&ROUTES, method, &asked).expect(&asked);
        assert_eq!((route.method.name(), route.path), (&**method, &**path));
        let has_name = route.braces().is_some();
        assert_eq!(!name.is_empty(), has_name);
        let said = operation["parameters"].as_array().map_or(0, Vec::len);
        assert_eq!(said, route.parameters.len() + usize::from(has_name));
    }
}

#[test]
fn every_reference_resolves() {
    let document = openapi::document(&ROUTES);
    let references = check_references(&document, &document);
    assert!(references > 100, "{references}");
    for route in &ROUTES {
        let answer = match route.answer {
            Answer::Json(schema) | Answer::Events(schema) => Some(schema),
            Answer::Metrics | Answer::Document => None,
        };
        for schema in route.body.into_iter().chain(answer) {
            assert!(document.pointer(&place(schema)[1..]).is_some(), "{schema}");
        }
    }
}

#[test]
fn schemas_of_responses_follow_from_their_types() {
    let document = openapi::document(&ROUTES);
    let schemas = &document["components"]["schemas"];
    // Counters are required integers with a description.
    for object in ["Totals", "Direction"] {
        let required = schemas[object]["required"].as_array().expect("a list");
        for counter in LinkTotals::counters() {
            let property = &schemas[object]["properties"][counter.name];
            assert_eq!(property["type"], "integer", "{}: {property}", counter.name);
            assert!(property["description"].is_string(), "{}", counter.name);
            assert!(required.contains(&counter.name.into()), "{}", counter.name);
        }
    }
    // Optional fields are never null, and nullable ones are required.
    let link = &schemas["Link"];
    let down = &link["properties"]["down"];
    assert_eq!(down["$ref"], place("Direction"), "{down}");
    assert_eq!(link["properties"]["moved_to"]["type"], "string");
    let required = link["required"].as_array().expect("a list");
    assert!(!required.contains(&"down".into()));
    let rates = &schemas["StatsEvent"]["properties"]["rates"];
    assert_eq!(rates["anyOf"][1]["type"], "null", "{rates}");
    let state = &schemas["Direction"]["properties"]["state"]["enum"];
    assert_eq!(*state, serde_json::json!(["on", "off", "paused"]));
}

/// Checks that each reference in `part` leads to a part of `document`; returns the number of
/// references.
pub(crate) fn check_references(part: &Value, document: &Value) -> usize {
    match part {
        Value::Object(fields) => {
            let reference = fields.get("$ref").and_then(Value::as_str);
            if let Some(reference) = reference {
                let pointer = reference.strip_prefix('#').expect("within the document");
                assert!(document.pointer(pointer).is_some(), "{reference}");
            }
            let below = fields
                .values()
                .map(|value| check_references(value, document));
            usize::from(reference.is_some()) + below.sum::<usize>()
        }
        Value::Array(items) => items
            .iter()
            .map(|item| check_references(item, document))
            .sum(),
        _ => 0,
    }
}

#[test]
fn unknown_paths_and_methods_differ() {
    let status = |method: &str, path: &str| {
        let found = find(&ROUTES, method, path).map(|(route, _)| route.method);
        found.map_err(|refusal| refusal.status().as_u16())
    };
    assert_eq!(status("GET", "/v1/links/a"), Ok(Method::Get));
    assert_eq!(status("HEAD", "/v1/links/a"), Ok(Method::Get));
    assert_eq!(status("PATCH", "/v1/links/a"), Ok(Method::Patch));
    assert_eq!(status("POST", "/v1/links/a"), Err(405));
    assert_eq!(status("get", "/v1/links"), Err(405));
    assert_eq!(status("OPTIONS", "/v1"), Err(405));
    for path in " / /v1/ /v2 /v1/links/ /v1/links/a/b //v1 /v1/links/a/".split(' ') {
        assert_eq!(status("GET", path), Err(404), "{path}");
    }
    assert_eq!(status("GET", "/v1/links/%ff"), Err(400));
}

#[test]
fn requests_map_to_changes() {
    let ask =
        |method: &str, target: &str, body: &str| requested_change(method, target, body.as_bytes());
    for [method, target, body, change] in rows(
        r#"
        PATCH | /v1/links/a%2A.down?in=2s | {"rate":"5mbit"} | {"in":"2s","set":{"a*.down":{"rate":"5mbit"}}}
        POST | /v1/links?check=true | {"name":"x"} | {"add":{"link":[{"name":"x"}]}}
        DELETE | /v1/links/a%2Fb | ignored | {"remove":["a/b"]}
        POST | /v1/changes?check=true | {"on":["a"]} | {"on":["a"]}
        "#,
    ) {
        let change: Value = serde_json::from_str(change).expect("JSON");
        assert_eq!(ask(method, target, body), Ok(Some(change)), "{target}");
    }
    assert_eq!(ask("GET", "/v1/links/a", ""), Ok(None));
    for (method, target, body) in [
        ("PATCH", "/v1/links/a", "{"),
        ("PATCH", "/v1/links/a", ""),
        ("PATCH", "/v1/links/a?on=2s", "{}"),
        ("POST", "/v1/links?at=30s", "{}"),
        ("DELETE", "/v1/links/a?in=2s", ""),
        ("POST", "/v1/changes?check=maybe", "{}"),
    ] {
        let refused = ask(method, target, body);
        assert!(refused.is_err(), "{method} {target} {body}");
    }
}
