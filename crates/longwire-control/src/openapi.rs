//! OpenAPI 3.1 document, generated from the route table and the topology parser's tables.

use longwire_client::ErrorBody;
use longwire_network::LinkView;
use longwire_topology::fields::{CHANGE, LINK, SET};
use longwire_topology::schema;
use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use serde_json::{Map, Value, json};

use crate::registry::Models;
use crate::reply::{EVENTS, JSON, METRICS_TEXT, OPEN_METRICS};
use crate::responses::{
    ChangeResult, Changes, Links, Overview, Paths, Ports, Report, Rules, Skipped, Stats,
    StatsEvent, Upcoming,
};
use crate::route::{Answer, Parameter, Route};
use crate::view::fidelity::Fidelity;
use crate::view::flows::Flows;
use crate::view::history::{Columns, HistoryEvent};
use crate::view::table::TablePage;

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
            "schemas": all(),
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "TCP needs the token of --control-token-file, or, for reading \
                                    only, that of --control-read-token-file. A Unix socket needs \
                                    no token.",
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

/// Returns the operation ID, such as `get_v1_links_name`.
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
    ("403", "Read-only token, or a request from another origin"),
    ("429", "Rate limit exceeded; see Retry-After"),
    (
        "503",
        "Too many requests or streams in progress; see Retry-After",
    ),
];

/// Error statuses of routes with a body.
const WITH_BODY: [(&str, &str); 2] = [
    ("408", "Timeout reading the request body"),
    ("413", "Body too long"),
];

fn responses(route: &Route) -> Value {
    let reference = |schema: &str| json!({ "schema": { "$ref": place(schema) } });
    let (kind, content) = match route.answer {
        Answer::Json(schema) => (JSON, reference(schema)),
        Answer::Document => (JSON, json!({ "schema": { "type": "object" } })),
        Answer::Metrics => (METRICS_TEXT, json!({ "schema": { "type": "string" } })),
        Answer::Events(schema) => {
            let help = format!(
                "Server-sent events with JSON data: {}. Event `end` is the run's last; event \
                 `error` says why the stream ended.",
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

/// Returns a reference to a schema.
pub fn place(schema: &str) -> String {
    format!("#/components/schemas/{schema}")
}

/// Returns all schemas by name.
pub fn all() -> Map<String, Value> {
    let mut all = Map::new();
    let sent = [("Change", &CHANGE), ("NewLink", &LINK), ("Options", &SET)];
    for (name, section) in sent {
        let mut schema = schema::section(section);
        lead_to_options(&mut schema);
        match name {
            "Options" => allow_null(&mut schema),
            "Change" => allow_null(&mut schema["properties"]["set"]["additionalProperties"]),
            _ => {}
        }
        all.insert(name.to_owned(), schema);
    }
    for (option, schema) in schema::options() {
        all.insert(component(&option), schema);
    }
    all.extend(response_schemas());
    all
}

/// Returns the settings of schemas that refer to each other.
pub fn schema_settings() -> SchemaSettings {
    let settings = SchemaSettings::draft2020_12();
    settings.with(|settings| settings.definitions_path = "/components/schemas".into())
}

/// Returns the schemas of responses and their parts, by name.
fn response_schemas() -> Map<String, Value> {
    let mut generator = schema_settings()
        .for_serialize()
        .with_transform(RecursiveTransform(simplify))
        .into_generator();
    type Changing = (ChangeResult, Changes, ErrorBody, Skipped, Upcoming);
    type Network = (LinkView, Links, Models, Overview, Paths, Ports, Rules);
    type Counted = (Report, Stats, StatsEvent);
    type Watched = (Columns, Fidelity, Flows, HistoryEvent, TablePage);
    generator.subschema_for::<(Changing, Network, Counted, Watched)>();
    generator.take_definitions(true)
}

/// Simplifies a schema: removes number formats, defaults, and null for omitted fields, and writes
/// enumerations as plain lists.
fn simplify(schema: &mut Schema) {
    schema.remove("format");
    schema.remove("default");
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace('\n', " ");
    }
    let words = schema.get("oneOf").and_then(Value::as_array);
    let words = words.map(|words| words.iter().filter_map(|word| word.get("const").cloned()));
    if let Some(words) = words.map(Vec::from_iter) {
        schema.remove("oneOf");
        schema.insert("enum".to_owned(), words.into());
    }
    let required = schema.get("required").and_then(Value::as_array);
    let required = required.cloned().unwrap_or_default();
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (name, property) in properties.into_iter().flatten() {
        if !required.iter().any(|required| required == name) {
            forbid_null(property);
        }
    }
}

/// Removes null from a property's types.
fn forbid_null(property: &mut Value) {
    if let Some(types) = property.get_mut("type").and_then(Value::as_array_mut) {
        types.retain(|kind| kind != "null");
        if let [kind] = types.as_slice() {
            property["type"] = kind.clone();
        }
    }
    if let Some(any) = property.get_mut("anyOf").and_then(Value::as_array_mut) {
        any.retain(|schema| schema["type"] != "null");
        if let [Value::Object(one)] = any.as_mut_slice() {
            let mut one = std::mem::take(one);
            if let Some(property) = property.as_object_mut() {
                property.remove("anyOf");
                property.append(&mut one);
            }
        }
    }
}

/// Permits null for options; null resets an option.
fn allow_null(section: &mut Value) {
    let options = schema::options();
    for (name, property) in section["properties"].as_object_mut().into_iter().flatten() {
        let option = options.get(name).map(|option| &option["description"]);
        *property = json!({
            "description": option,
            "anyOf": [property.take(), { "type": "null" }],
        });
    }
}

/// Returns the component name of an option, such as `RateOption`.
fn component(option: &str) -> String {
    let mut name = String::new();
    for word in option.split('-') {
        let (first, rest) = word.split_at(word.len().min(1));
        name += &first.to_uppercase();
        name += rest;
    }
    name + "Option"
}

/// Rewrites references to options for the OpenAPI document.
fn lead_to_options(schema: &mut Value) {
    const THERE: &str = "#/$defs/options/";
    match schema {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if name == "$ref" => {
                        if let Some(option) = text.strip_prefix(THERE) {
                            *text = place(&component(option));
                        }
                    }
                    value => lead_to_options(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(lead_to_options),
        _ => {}
    }
}
