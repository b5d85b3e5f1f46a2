//! Validates values against the subset of JSON Schema that the document uses.

use serde_json::Value;

/// Checks a value; the error names the place that violates the schema.
pub fn check(value: &Value, schema: &Value, document: &Value, at: &str) -> Result<(), String> {
    let wrong = |what: String| Err(format!("{at}: {what}: {value}"));
    if let Some(reference) = schema["$ref"].as_str() {
        let there = document.pointer(&reference[1..]);
        let there = there.ok_or_else(|| format!("{at}: {reference} does not exist"))?;
        return check(value, there, document, at);
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let tried = any.iter().map(|schema| check(value, schema, document, at));
        let failed: Vec<String> = tried.filter_map(Result::err).collect();
        return if failed.len() < any.len() {
            Ok(())
        } else {
            wrong(format!("none of {failed:?}"))
        };
    }
    if let Some(words) = schema["enum"].as_array()
        && !words.contains(value)
    {
        return wrong(format!("not one of {words:?}"));
    }
    if schema.get("const").is_some_and(|wanted| wanted != value) {
        return wrong("not the constant".to_owned());
    }
    let types = match &schema["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
        one => Vec::from_iter(one.as_str()),
    };
    if !types.is_empty() && !types.iter().any(|kind| is(value, kind)) {
        return wrong(format!("not of type {types:?}"));
    }
    if let (Some(least), Some(number)) = (schema["minimum"].as_f64(), value.as_f64())
        && number < least
    {
        return wrong(format!("less than {least}"));
    }
    if let Some(items) = value.as_array() {
        for (index, item) in items.iter().enumerate() {
            check(item, &schema["items"], document, &format!("{at}[{index}]"))?;
        }
    }
    check_fields(value, schema, document, at)
}

fn check_fields(value: &Value, schema: &Value, document: &Value, at: &str) -> Result<(), String> {
    let Some(fields) = value.as_object() else {
        return Ok(());
    };
    for name in schema["required"].as_array().into_iter().flatten() {
        let name = name.as_str().expect("a name");
        if !fields.contains_key(name) {
            return Err(format!("{at}: '{name}' is missing: {value}"));
        }
    }
    for (name, value) in fields {
        let at = format!("{at}.{name}");
        let others = &schema["additionalProperties"];
        match schema["properties"].get(name) {
            Some(schema) => check(value, schema, document, &at)?,
            None if others == false => return Err(format!("{at}: not in the schema")),
            None if others.is_object() => check(value, others, document, &at)?,
            None => {}
        }
    }
    Ok(())
}

fn is(value: &Value, kind: &str) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => panic!("{kind} is not a type"),
    }
}
