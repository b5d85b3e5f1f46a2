//! The page of the control API, generated from a run's OpenAPI document.

use std::path::Path;

use super::json::Json;
use super::options;
use crate::runner::target_dir;

/// Fetches a run's document and renders it as Markdown.
pub fn page(program: &Path) -> Result<String, String> {
    let socket = target_dir().join("book.sock");
    let socket = socket.to_string_lossy();
    let address = "http://longwire/v1/openapi.json";
    let ask = ["curl", "-sS", "--fail", "--unix-socket", &socket, address];
    let arguments = [&["exec", "-q", "--control", &socket, "--"][..], &ask].concat();
    let text = options::output(program, &arguments)?;
    let document = Json::read(&text).ok_or("the OpenAPI document is no JSON")?;
    Ok(operations(&document) + &schemas(&document))
}

fn operations(document: &Json) -> String {
    let mut page = "\n## Operations\n".to_owned();
    let paths = document.get("paths").into_iter().flat_map(Json::fields);
    for (path, methods) in paths {
        let shared = methods.get("parameters").map_or(&[][..], Json::list);
        for (method, operation) in methods.fields().filter(|(name, _)| name != "parameters") {
            page += &format!("\n### {} {path}\n\n", method.to_uppercase());
            for field in ["summary", "description"] {
                let text = operation.text(field);
                if !text.is_empty() {
                    page += &format!("{}\n\n", sentence(text));
                }
            }
            let own = operation.get("parameters").map_or(&[][..], Json::list);
            page += &parameters(shared.iter().chain(own));
            if let Some(body) = operation.get("requestBody") {
                page += &format!("Body: {}.\n\n", contents(body));
            }
            page += &responses(operation);
        }
    }
    page
}

fn parameters<'a>(all: impl Iterator<Item = &'a Json>) -> String {
    let rows: String = all
        .map(|parameter| {
            let schema = parameter.get("schema").map_or(String::new(), type_of);
            let (name, place) = (parameter.text("name"), parameter.text("in"));
            let text = cell(parameter.text("description"));
            format!("| `{name}` | {place} | {schema} | {text} |\n")
        })
        .collect();
    if rows.is_empty() {
        rows
    } else {
        format!("| parameter | in | type | meaning |\n|---|---|---|---|\n{rows}\n")
    }
}

fn responses(operation: &Json) -> String {
    let mut rows = "| status | body | meaning |\n|---|---|---|\n".to_owned();
    let all = operation
        .get("responses")
        .into_iter()
        .flat_map(Json::fields);
    for (status, response) in all {
        let text = cell(response.text("description"));
        rows += &format!("| {status} | {} | {text} |\n", contents(response));
    }
    rows
}

/// Returns the possible types of a body.
fn contents(body: &Json) -> String {
    let contents = body.get("content").into_iter().flat_map(Json::fields);
    let types = contents.map(|(media, content)| {
        let schema = content.get("schema").map_or(String::new(), type_of);
        if schema.is_empty() {
            format!("`{media}`")
        } else {
            schema
        }
    });
    types.collect::<Vec<_>>().join(", ")
}

fn schemas(document: &Json) -> String {
    let mut page = "\n## Schemas\n".to_owned();
    let components = document.get("components");
    let schemas = components.and_then(|components| components.get("schemas"));
    for (name, schema) in schemas.into_iter().flat_map(Json::fields) {
        page += &format!("\n### {name}\n\n");
        let text = schema.text("description");
        if !text.is_empty() {
            page += &format!("{}\n\n", sentence(text));
        }
        let rows = fields(schema, "");
        page += &if rows.is_empty() {
            format!("Type: {}.\n", type_of(schema))
        } else {
            format!("| field | type | meaning |\n|---|---|---|\n{rows}")
        };
    }
    page
}

/// Returns a row per field, nested objects included.
fn fields(schema: &Json, before: &str) -> String {
    let mut rows = String::new();
    let properties = schema.get("properties").into_iter().flat_map(Json::fields);
    for (name, field) in properties {
        let name = format!("{before}{name}");
        let text = cell(field.text("description"));
        rows += &format!("| `{name}` | {} | {text} |\n", type_of(field));
        rows += &fields(field, &format!("{name}."));
        if let Some(items) = field.get("items") {
            rows += &fields(items, &format!("{name}[]."));
        }
    }
    rows
}

/// Returns a type as text, with a link if it is named.
fn type_of(schema: &Json) -> String {
    if let Some(name) = schema
        .text("$ref")
        .rsplit('/')
        .next()
        .filter(|name| !name.is_empty())
    {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    for any in ["anyOf", "oneOf"] {
        if let Some(all) = schema.get(any) {
            let types: Vec<String> = all.list().iter().map(type_of).collect();
            return types.join(" or ");
        }
    }
    let values = schema.get("enum").map_or(&[][..], Json::list);
    if !values.is_empty() {
        let values: Vec<String> = values
            .iter()
            .map(|v| format!("`{}`", v.as_text()))
            .collect();
        return values.join(", ");
    }
    let types = match schema.get("type") {
        Some(Json::List(all)) => all
            .iter()
            .map(Json::as_text)
            .collect::<Vec<_>>()
            .join(" or "),
        Some(one) => one.as_text().to_owned(),
        None => String::new(),
    };
    match schema.get("items") {
        Some(items) => format!("list of {}", type_of(items)),
        None => types,
    }
}

/// Returns a description as a sentence on one line, to which Markdown's rules do not
/// apply.
fn sentence(text: &str) -> String {
    let text = plain(text);
    if text.ends_with(['.', ':', '?']) {
        text
    } else {
        text + "."
    }
}

/// Returns a description for a table cell.
fn cell(text: &str) -> String {
    plain(text).replace('|', "\\|")
}

fn plain(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    let text = text.replace('<', "&lt;").replace('*', "\\*");
    text.replace('[', "\\[")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_becomes_tables() {
        let text = r##"{"paths": {"/v1/x": {"get": {"summary": "Reads x", "responses":
            {"200": {"description": "x", "content": {"application/json":
            {"schema": {"$ref": "#/components/schemas/X"}}}}}}}},
            "components": {"schemas": {"X": {"properties": {"n": {"type": "integer",
            "description": "a|b"}}}}}}"##;
        let document = Json::read(text).expect("a document");
        assert!(operations(&document).contains("### GET /v1/x\n\nReads x.\n\n"));
        assert!(operations(&document).contains("| 200 | [X](#x) | x |\n"));
        assert!(schemas(&document).contains("### X\n"));
        assert!(schemas(&document).contains("| `n` | integer | a\\|b |\n"));
    }
}
