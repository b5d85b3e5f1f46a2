//! OpenAPI 3.1 document of a node.

use longwire_client::ErrorBody;
use longwire_client::node::{
    AttachmentList, AttachmentSpec, AttachmentView, Detached, Health, NetworkEnded, NetworkList,
    NetworkSpec, NetworkView, NodeOverview,
};
use serde_json::{Map, Value, json};

use crate::openapi::{place, schema_settings};
use crate::reply::JSON;

/// A method of a path.
#[derive(Clone, Copy)]
struct Operation {
    method: &'static str,
    path: &'static str,
    help: &'static str,
    /// Schema of the request body.
    body: Option<&'static str>,
    /// Schema of the response.
    answer: &'static str,
}

const fn operation(method: &'static str, path: &'static str, answer: &'static str) -> Operation {
    Operation {
        method,
        path,
        help: "",
        body: None,
        answer,
    }
}

impl Operation {
    const fn help(self, help: &'static str) -> Operation {
        Operation { help, ..self }
    }

    const fn body(self, schema: &'static str) -> Operation {
        let body = Some(schema);
        Operation { body, ..self }
    }
}

/// Operations with JSON responses.
const OPERATIONS: [Operation; 12] = [
    operation("get", "/v1", "NodeOverview").help("The node"),
    operation("get", "/v1/health", "Health").help("Health check"),
    operation("get", "/v1/attachments", "AttachmentList").help("All attachments, ordered by name"),
    operation("get", "/v1/attachments/{name}", "AttachmentView").help("An attachment"),
    operation("put", "/v1/attachments/{name}", "AttachmentView")
        .help("Attach a link, or change an attached one; idempotent")
        .body("AttachmentSpec"),
    operation("delete", "/v1/attachments/{name}", "Detached").help("Remove a link; idempotent"),
    operation("get", "/v1/attachments/{name}/{path}", "Any").help(
        "Control API of the attachment's run: links, stats, report, changes and the other paths, \
         with their methods",
    ),
    operation("get", "/v1/networks", "NetworkList").help("All networks, ordered by name"),
    operation("get", "/v1/networks/{name}", "NetworkView").help("A network"),
    operation("put", "/v1/networks/{name}", "NetworkView")
        .help("Run a topology, or this machine's part of one; idempotent")
        .body("NetworkSpec"),
    operation("delete", "/v1/networks/{name}", "NetworkEnded").help("End a network; idempotent"),
    operation("get", "/v1/networks/{name}/{path}", "Any").help(
        "Control API of the network's run; while the network is not running, its last report",
    ),
];

pub(super) fn document() -> Value {
    let mut paths = Map::new();
    for operation in OPERATIONS {
        let entry = paths.entry(operation.path).or_insert_with(|| json!({}));
        entry[operation.method] = described(operation);
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

fn described(operation: Operation) -> Value {
    let braces = ["name", "path"].into_iter();
    let parameters = braces
        .filter(|name| operation.path.contains(&format!("{{{name}}}")))
        .map(|name| {
            json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } })
        });
    let content = |schema| json!({ JSON: { "schema": { "$ref": place(schema) } } });
    let good = |text: &str| json!({ "description": text, "content": content(operation.answer) });
    let mut responses = json!({
        "200": good("Done"),
        "default": { "description": "An error", "content": content("Error") },
    });
    if operation.method == "put" {
        responses["201"] = good("Made");
    }
    let mut described = json!({
        "summary": operation.help,
        "parameters": parameters.collect::<Vec<_>>(),
        "responses": responses,
    });
    if let Some(body) = operation.body {
        described["requestBody"] = json!({ "required": true, "content": content(body) });
    }
    described
}

fn schemas() -> Map<String, Value> {
    type OfNode = (Detached, ErrorBody, Health, NodeOverview);
    type OfAttachments = (AttachmentList, AttachmentSpec, AttachmentView);
    type OfNetworks = (NetworkEnded, NetworkList, NetworkSpec, NetworkView);
    let mut generator = schema_settings().into_generator();
    generator.subschema_for::<(OfNode, OfAttachments, OfNetworks)>();
    let mut schemas = generator.take_definitions(true);
    schemas.insert("Any".to_owned(), json!({}));
    schemas
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::document::check_references;

    #[test]
    fn every_reference_resolves() {
        let document = document();
        assert!(check_references(&document, &document) > 20);
        let target = "/components/schemas/AttachmentSpec/properties/target";
        assert!(document.pointer(target).is_some());
    }
}
