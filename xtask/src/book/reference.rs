//! Reference pages: the control API, from the OpenAPI document of a run, and the options of
//! commands, from their help.

use std::path::Path;
use std::process::Command;

use crate::book::json::Json;
use crate::runner::target_dir;

/// Fetches a run's document and renders it as Markdown.
pub fn api_page(program: &Path) -> Result<String, String> {
    let socket = target_dir().join("book.sock");
    let socket = socket.to_string_lossy();
    let address = "http://longwire/v1/openapi.json";
    let ask = ["curl", "-sS", "--fail", "--unix-socket", &socket, address];
    let arguments = [&["exec", "-q", "--control", &socket, "--"][..], &ask].concat();
    let text = output(program, &arguments)?;
    let document = Json::read(&text).ok_or("the OpenAPI document is not valid JSON")?;
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
    let rows = all.map(|parameter| {
        let schema = parameter.get("schema").map_or(String::new(), type_of);
        let (name, place) = (parameter.text("name"), parameter.text("in"));
        let text = cell(parameter.text("description"));
        format!("| `{name}` | {place} | {schema} | {text} |\n")
    });
    let rows: String = rows.collect();
    if rows.is_empty() {
        rows
    } else {
        format!("| parameter | in | type | meaning |\n|---|---|---|---|\n{rows}\n")
    }
}

fn responses(operation: &Json) -> String {
    let mut rows = "| status | body | meaning |\n|---|---|---|\n".to_owned();
    let all = operation.get("responses").into_iter();
    for (status, response) in all.flat_map(Json::fields) {
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

/// Returns a table row per field, including fields of nested objects.
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
    let name = schema.text("$ref").rsplit('/').next().unwrap_or_default();
    if !name.is_empty() {
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
        let values = values.iter().map(|v| format!("`{}`", v.as_text()));
        return values.collect::<Vec<String>>().join(", ");
    }
    if let Some(items) = schema.get("items") {
        return format!("list of {}", type_of(items));
    }
    let types = match schema.get("type") {
        Some(Json::List(all)) => all.iter().map(Json::as_text).collect(),
        one => vec![one.map_or("", Json::as_text)],
    };
    types.join(" or ")
}

/// Returns a description as a sentence on one line, without Markdown markup.
fn sentence(text: &str) -> String {
    let text = plain(text);
    if text.ends_with(['.', ':', '?']) {
        text
    } else {
        text + "."
    }
}

/// Escapes a description for a Markdown table cell.
fn cell(text: &str) -> String {
    plain(text).replace('|', "\\|")
}

fn plain(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    let text = text.replace('<', "&lt;").replace('*', "\\*");
    text.replace('[', "\\[")
}

/// Returns the output of the program, or an error if it fails.
pub fn output(program: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| format!("{}: {error}", program.display()))?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(format!("longwire {}: {error}", arguments.join(" ")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns a section for the program and for each command.
pub fn options_page(program: &Path) -> Result<String, String> {
    let mut page = String::new();
    add(program, &mut Vec::new(), &mut page)?;
    Ok(page)
}

/// Appends the sections of a command and of its subcommands.
fn add(program: &Path, command: &mut Vec<String>, page: &mut String) -> Result<(), String> {
    let mut arguments: Vec<&str> = command.iter().map(String::as_str).collect();
    arguments.push("--help");
    let help = output(program, &arguments)?;
    let name = [&["longwire".to_owned()][..], command].concat().join(" ");
    *page += &format!("\n## {name}\n\n```text\n{}\n```\n", help.trim_end());
    for below in commands(&help) {
        command.push(below.to_owned());
        add(program, command, page)?;
        command.pop();
    }
    Ok(())
}

/// Returns the subcommands in a help text, except `help`. A group of options may also have the
/// title Commands, but its lines are indented further.
fn commands(help: &str) -> Vec<&str> {
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let list = list.take_while(|line| !line.is_empty());
    list.filter_map(|line| line.strip_prefix("  "))
        .filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase()))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect()
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

    #[test]
    fn commands_are_not_options() {
        let help = "Usage: x\n\nCommands:\n  run   A link\n  help  Print\n\nOptions:\n  -h\n";
        assert_eq!(commands(help), ["run"]);
        assert!(commands("Commands:\n      --peer <CMD>\n          A command\n").is_empty());
    }
}
