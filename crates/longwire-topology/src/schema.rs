//! JSON Schema of the file, generated from the parser's tables.
//!
//! The schema uses JSON Schema 2020-12, for completion and validation in TOML editors. Only the
//! parser checks cross-references, such as link names.

use serde_json::{Map, Value, json};

use super::fields::{FILE, Kind, Section};
use longwire_engine::PARTS;

/// Returns the file's schema.
pub fn schema() -> Value {
    let mut schema = section(&FILE);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("Longwire topology");
    schema["$defs"] = json!({ "options": options() });
    schema
}

/// Returns the schemas of all link options by name.
pub fn options() -> Map<String, Value> {
    let one = || json!({ "type": ["string", "number"] });
    let mut properties = Map::new();
    for part in &PARTS {
        let mut value = if part.is_repeated {
            json!({ "anyOf": [one(), { "type": "array", "items": one() }] })
        } else {
            one()
        };
        value["description"] = json!(part.summary);
        properties.insert(part.name.to_owned(), value);
    }
    properties
}

/// Returns a section's schema. Link options are references to `#/$defs/options/NAME`, which
/// [`options`] describes.
pub fn section(section: &Section) -> Value {
    let mut properties = Map::new();
    if section.options {
        for part in &PARTS {
            let place = format!("#/$defs/options/{}", part.name);
            properties.insert(part.name.to_owned(), json!({ "$ref": place }));
        }
    }
    for field in section.fields {
        let mut value = kind(field.kind);
        value["description"] = json!(field.help);
        properties.insert(field.name.to_owned(), value);
    }
    json!({
        "type": "object",
        "description": section.help,
        "properties": properties,
        "additionalProperties": false,
    })
}

fn kind(kind: Kind) -> Value {
    let text = || json!({ "type": "string" });
    let list = |least: usize, most: Option<usize>| {
        let mut list = json!({ "type": "array", "items": text(), "minItems": least });
        if let Some(most) = most {
            list["maxItems"] = json!(most);
        }
        list
    };
    match kind {
        Kind::Text => text(),
        Kind::Texts => json!({ "anyOf": [text(), list(0, None)] }),
        Kind::Tuple(least, most) => list(least, Some(most)),
        Kind::Pairs => json!({ "type": "array", "items": list(2, Some(2)) }),
        Kind::Number(least, most) => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Choice(words) => json!({ "enum": words }),
        Kind::TextMap => json!({ "type": "object", "additionalProperties": text() }),
        Kind::TextOrTableMap(of) => {
            let each = json!({ "anyOf": [text(), section(of)] });
            json!({ "type": "object", "additionalProperties": each })
        }
        Kind::Table(of) => section(of),
        Kind::TableMap(of) => {
            json!({ "type": "object", "additionalProperties": section(of) })
        }
        Kind::Tables(of) => json!({ "type": "array", "items": section(of) }),
    }
}
