//! OpenAPI 3.1 document, generated from the table of routes and the topology parser's tables.

use serde_json::{Map, Value, json};

use super::query::Parameter;
use super::reply::{EVENTS, JSON, METRICS_TEXT, OPEN_METRICS};
use super::route::{Answer, Route};
use super::schemas::{self, place};

/// Returns the document.
pub fn document(routes: &[Route]) -> Value {
    let mut paths = Map::new();
    for route in routes {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.name().to_lowercase()] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Longwire control API",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Reads and changes a running network of emulated links.",
            "license": { "name": "Apache-2.0 OR MIT", "identifier": "Apache-2.0 OR MIT" },
        },
        "servers": [
            {
                "url": "http://{address}:{port}",
                "description": "TCP, by --control tcp:ADDRESS:PORT",
                "variables": {
                    "address": { "default": "127.0.0.1" },
                    "port": { "default": "9470" },
                },
            },
            {
                "url": "http://localhost",
                "description": "Unix socket, by --control PATH; clients take its path separately \
                                from the URL",
            },
        ],
        "paths": paths,
        "components": {
            "schemas": schemas::all(),
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "TCP needs the token of --control-token-file, or for reading \
                                    only that of --control-read-token-file. A Unix socket needs \
                                    none.",
                },
            },
        },
        "security": [{ "token": [] }, {}],
    })
}

fn operation(route: &Route) -> Value {
    let mut parameters: Vec<Value> = route.parameters.iter().map(parameter).collect();
    if let Some(name) = route.braces() {
        let help = if route.changes() {
            "name of a link, or a pattern with * for any text and ? for one character; a suffix \
             .up or .down selects one direction"
        } else {
            "name of a link"
        };
        parameters.push(json!({
            "name": name,
            "in": "path",
            "required": true,
            "description": help,
            "schema": { "type": "string" },
        }));
    }
    let mut operation = json!({
        "operationId": identifier(route),
        "summary": route.help,
        "parameters": parameters,
        "responses": responses(route),
    });
    if let Some(schema) = route.body {
        operation["requestBody"] = json!({
            "required": true,
            "content": { JSON: { "schema": { "$ref": place(schema) } } },
        });
    }
    operation
}

/// Returns the operation ID: `get_v1_links_name`.
fn identifier(route: &Route) -> String {
    let words = route.path.split(|c: char| !c.is_ascii_alphanumeric());
    let words = words.filter(|word| !word.is_empty());
    let mut name = route.method.name().to_lowercase();
    for word in words {
        name.push('_');
        name.push_str(word);
    }
    name
}

fn parameter(parameter: &Parameter) -> Value {
    json!({
        "name": parameter.name,
        "in": "query",
        "description": parameter.help,
        "schema": parameter.kind.schema(),
    })
}

/// Error statuses of all routes.
const ALWAYS: [(&str, &str); 5] = [
    ("400", "Invalid request; nothing was changed"),
    ("401", "Missing or wrong token"),
    ("403", "Read-only token, or a request of another origin"),
    ("429", "Rate limit exceeded; see Retry-After"),
    (
        "503",
        "Too many requests or streams in progress; see Retry-After",
    ),
];

/// Error statuses of routes with a body.
const WITH_BODY: [(&str, &str); 2] = [("408", "Timeout of the body"), ("413", "Body too long")];

fn responses(route: &Route) -> Value {
    let reference = |schema: &str| json!({ "schema": { "$ref": place(schema) } });
    let (kind, content) = match route.answer {
        Answer::Json(schema) => (JSON, reference(schema)),
        Answer::Document => (JSON, json!({ "schema": { "type": "object" } })),
        Answer::Metrics => (METRICS_TEXT, json!({ "schema": { "type": "string" } })),
        Answer::Events(schema) => {
            let help = format!(
                "Server-sent events with JSON data: {}. Event `end` is the last of a run; event \
                 `error` gives the reason for the end of the stream.",
                place(schema)
            );
            (
                EVENTS,
                json!({ "schema": { "type": "string", "description": help } }),
            )
        }
    };
    let mut responses = json!({
        "200": { "description": route.help, "content": { kind: content } },
    });
    if route.answer == Answer::Metrics {
        responses["200"]["content"][OPEN_METRICS] = json!({ "schema": { "type": "string" } });
    }
    let mut also = ALWAYS.to_vec();
    if route.body.is_some() {
        also.extend(WITH_BODY);
    }
    if route.changes() {
        also.push(("409", "A replay cannot be changed"));
        also.push((
            "422",
            "Invalid value, or unknown link, path or file; nothing was changed",
        ));
    }
    if route.braces().is_some() && !route.changes() {
        also.push(("404", "No such link"));
    }
    for (status, help) in also {
        responses[status] = json!({
            "description": help,
            "content": { JSON: reference("Error") },
        });
    }
    responses
}
