//! OpenAPI 3.1 document of a node.

use longwire_client::ErrorBody;
use longwire_client::node::{
    AttachmentList, AttachmentSpec, AttachmentView, Detached, Health, NetworkEnded, NetworkList,
    NetworkSpec, NetworkView, NodeOverview,
};
use schemars::JsonSchema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

use crate::openapi::place;
use crate::reply::JSON;

/// Method, path, help, body schema, response schema.
type Operation = (
    &'static str,
    &'static str,
    &'static str,
    Option<&'static str>,
    &'static str,
);

/// Operations with JSON responses.
const OPERATIONS: [Operation; 12] = [
    ("get", "/v1", "The node", None, "NodeOverview"),
    ("get", "/v1/health", "Health check", None, "Health"),
    (
        "get",
        "/v1/attachments",
        "All attachments, ordered by name",
        None,
        "AttachmentList",
    ),
    (
        "get",
        "/v1/attachments/{name}",
        "An attachment",
        None,
        "AttachmentView",
    ),
    (
        "put",
        "/v1/attachments/{name}",
        "Attach a link, or change an attached one; idempotent",
        Some("AttachmentSpec"),
        "AttachmentView",
    ),
    (
        "delete",
        "/v1/attachments/{name}",
        "Remove a link; idempotent",
        None,
        "Detached",
    ),
    (
        "get",
        "/v1/attachments/{name}/{path}",
        "Control API of the attachment's run: links, stats, report, changes and the other paths, \
         with their methods",
        None,
        "Any",
    ),
    (
        "get",
        "/v1/networks",
        "All networks, ordered by name",
        None,
        "NetworkList",
    ),
    (
        "get",
        "/v1/networks/{name}",
        "A network",
        None,
        "NetworkView",
    ),
    (
        "put",
        "/v1/networks/{name}",
        "Run a topology, or this machine's part of one; idempotent",
        Some("NetworkSpec"),
        "NetworkView",
    ),
    (
        "delete",
        "/v1/networks/{name}",
        "End a network; idempotent",
        None,
        "NetworkEnded",
    ),
    (
        "get",
        "/v1/networks/{name}/{path}",
        "Control API of the network's run; while the network is not running, its last report",
        None,
        "Any",
    ),
];

pub(super) fn document() -> Value {
    let mut paths = Map::new();
    for operation in OPERATIONS {
        let (method, path, ..) = operation;
        let entry = paths.entry(path).or_insert_with(|| json!({}));
        entry[method] = described(operation);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Longwire node API",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Attaches links to containers, pods and namespaces of a machine. Each \
                            attachment's path also serves the control API of its run; /metrics has \
                            the counters of all attachments.",
            "license": { "name": "Apache-2.0 OR MIT", "identifier": "Apache-2.0 OR MIT" },
        },
        "servers": [{
            "url": "http://localhost",
            "description": "Unix socket of `longwire node`",
        }],
        "paths": paths,
        "components": { "schemas": schemas() },
    })
}

fn described((method, path, help, body, answer): Operation) -> Value {
    let braces = ["name", "path"].into_iter();
    let parameters = braces
        .filter(|name| path.contains(&format!("{{{name}}}")))
        .map(|name| {
            json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } })
        });
    let content = |schema| json!({ JSON: { "schema": { "$ref": place(schema) } } });
    let good = |text: &str| json!({ "description": text, "content": content(answer) });
    let mut responses = json!({
        "200": good("Done"),
        "default": { "description": "An error", "content": content("Error") },
    });
    if method == "put" {
        responses["201"] = good("Made");
    }
    let mut operation = json!({
        "summary": help,
        "parameters": parameters.collect::<Vec<_>>(),
        "responses": responses,
    });
    if let Some(body) = body {
        operation["requestBody"] = json!({ "required": true, "content": content(body) });
    }
    operation
}

fn schemas() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12();
    let settings =
        settings.with(|settings| settings.definitions_path = "/components/schemas".into());
    let mut generator = settings.into_generator();
    fn add<T: JsonSchema>(generator: &mut SchemaGenerator) {
        generator.subschema_for::<T>();
    }
    for add in [
        add::<AttachmentList>,
        add::<AttachmentSpec>,
        add::<AttachmentView>,
        add::<Detached>,
        add::<ErrorBody>,
        add::<Health>,
        add::<NetworkEnded>,
        add::<NetworkList>,
        add::<NetworkSpec>,
        add::<NetworkView>,
        add::<NodeOverview>,
    ] {
        add(&mut generator);
    }
    let mut schemas = generator.take_definitions(true);
    schemas.insert("Any".to_owned(), json!({}));
    schemas
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_resolves() {
        fn check(value: &Value, all: &Value) {
            match value {
                Value::Object(fields) => {
                    if let Some(to) = fields.get("$ref").and_then(Value::as_str) {
                        let pointer = to.strip_prefix('#').expect("within the document");
                        assert!(all.pointer(pointer).is_some(), "{to}");
                    }
                    fields.values().for_each(|value| check(value, all));
                }
                Value::Array(items) => items.iter().for_each(|value| check(value, all)),
                _ => {}
            }
        }
        let document = document();
        check(&document, &document);
        assert!(
            document
                .pointer("/components/schemas/AttachmentSpec/properties/target")
                .is_some()
        );
    }
}
