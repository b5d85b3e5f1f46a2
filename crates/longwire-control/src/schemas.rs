//! Schemas of the OpenAPI document, in JSON Schema 2020-12. Those of requests derive from the
//! topology parser's tables, those of responses from their types.

use longwire_client::ErrorBody;
use longwire_fabric::LinkView;
use longwire_topology::fields::{CHANGE, LINK, SET};
use longwire_topology::schema;
use schemars::Schema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::transform::RecursiveTransform;
use serde_json::{Map, Value, json};

use super::registry::Models;
use super::responses::{
    ChangeResult, Changes, Links, Overview, Paths, Ports, Report, Rules, Skipped, Stats,
    StatsEvent, Upcoming,
};
use super::view::columns::{Columns, HistoryEvent};
use super::view::fidelity::Fidelity;
use super::view::flows::Flows;
use super::view::table::TablePage;

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
    all.extend(responses());
    all
}

/// Returns the schemas of responses and their parts by name.
fn responses() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let settings =
        settings.with(|settings| settings.definitions_path = "/components/schemas".into());
    let mut generator = settings
        .with_transform(RecursiveTransform(simplify))
        .into_generator();
    for add in [
        SchemaGenerator::subschema_for::<ChangeResult>,
        SchemaGenerator::subschema_for::<Changes>,
        SchemaGenerator::subschema_for::<ErrorBody>,
        SchemaGenerator::subschema_for::<Report>,
        SchemaGenerator::subschema_for::<LinkView>,
        SchemaGenerator::subschema_for::<Links>,
        SchemaGenerator::subschema_for::<Overview>,
        SchemaGenerator::subschema_for::<Paths>,
        SchemaGenerator::subschema_for::<Ports>,
        SchemaGenerator::subschema_for::<Rules>,
        SchemaGenerator::subschema_for::<Skipped>,
        SchemaGenerator::subschema_for::<Stats>,
        SchemaGenerator::subschema_for::<Upcoming>,
        SchemaGenerator::subschema_for::<StatsEvent>,
        SchemaGenerator::subschema_for::<Columns>,
        SchemaGenerator::subschema_for::<Fidelity>,
        SchemaGenerator::subschema_for::<Flows>,
        SchemaGenerator::subschema_for::<HistoryEvent>,
        SchemaGenerator::subschema_for::<Models>,
        SchemaGenerator::subschema_for::<TablePage>,
    ] {
        add(&mut generator);
    }
    generator.take_definitions(true)
}

/// Removes number formats, defaults, and null for omitted fields from a schema. Writes
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

/// Removes null from the types of a property.
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

/// Permits null for options, which resets them.
fn allow_null(section: &mut Value) {
    let options = schema::options();
    let properties = section["properties"].as_object_mut();
    for (name, property) in properties.into_iter().flatten() {
        let option = options.get(name).map(|option| &option["description"]);
        *property = json!({
            "description": option,
            "anyOf": [property.take(), { "type": "null" }],
        });
    }
}

/// Returns the component of an option: `RateOption`.
fn component(option: &str) -> String {
    let mut name = String::new();
    for word in option.split('-') {
        let (first, rest) = word.split_at(word.len().min(1));
        name += &first.to_uppercase();
        name += rest;
    }
    name + "Option"
}

/// Rewrites references to options for this document.
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
