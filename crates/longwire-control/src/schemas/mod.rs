//! The schemas of bodies and answers, in JSON Schema 2020-12. Those of what is
//! sent follow from the tables of the topologies' reader.

mod answers;

use serde_json::{Map, Value, json};

use longwire_topology::fields::{CHANGE, LINK, SET};
use longwire_topology::schema;

/// The reference to a schema of this name.
pub fn place(schema: &str) -> String {
    format!("#/components/schemas/{schema}")
}

/// All schemas, by name.
pub fn all() -> Map<String, Value> {
    let mut all = Map::new();
    let sent = [("Change", &CHANGE), ("NewLink", &LINK), ("Options", &SET)];
    for (name, section) in sent {
        let mut schema = schema::of_section(section);
        lead_to_options(&mut schema);
        all.insert(name.to_owned(), schema);
    }
    for (option, schema) in schema::options() {
        all.insert(component(&option), schema);
    }
    all.extend(answers::all().map(|(name, schema)| (name.to_owned(), schema)));
    all
}

/// The name of the component with what an option takes: `RateOption`.
fn component(option: &str) -> String {
    let mut name = String::new();
    for word in option.split('-') {
        let (first, rest) = word.split_at(word.len().min(1));
        name += &first.to_uppercase();
        name += rest;
    }
    name + "Option"
}

/// References to options, as they stand in this document.
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

/// An object with these fields, all of them required.
fn object(help: &str, fields: &[(&str, Value)]) -> Value {
    object_with(help, fields, &[])
}

/// An object with these fields, and others that may be left out.
fn object_with(help: &str, fields: &[(&str, Value)], optional: &[(&str, Value)]) -> Value {
    let required: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    let all = fields.iter().chain(optional);
    let properties: Map<String, Value> = all
        .map(|(name, schema)| ((*name).to_owned(), schema.clone()))
        .collect();
    json!({
        "type": "object",
        "description": help,
        "properties": properties,
        "required": required,
    })
}

fn text(help: &str) -> Value {
    json!({ "type": "string", "description": help })
}

fn count(help: &str) -> Value {
    json!({ "type": "integer", "minimum": 0, "description": help })
}

fn real(help: &str) -> Value {
    json!({ "type": "number", "description": help })
}

fn flag(help: &str) -> Value {
    json!({ "type": "boolean", "description": help })
}

fn list(of: &Value) -> Value {
    json!({ "type": "array", "items": of })
}

fn texts(help: &str) -> Value {
    json!({ "type": "array", "items": { "type": "string" }, "description": help })
}

fn counts(help: &str) -> Value {
    json!({
        "type": "object",
        "description": help,
        "additionalProperties": { "type": "integer", "minimum": 0 },
    })
}

fn reference(schema: &str) -> Value {
    json!({ "$ref": place(schema) })
}

fn or_null(schema: Value) -> Value {
    json!({ "anyOf": [schema, { "type": "null" }] })
}
