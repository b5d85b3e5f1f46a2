//! Checks a file's shape against the field tables, and reads values with their positions.

use longwire_engine::{PARTS, Part};

use super::fields::{Kind, Section};
use super::problem::{Diagnostics, suggestion};
use super::value::{Content, Span, Table, Value};

/// A value with its position.
#[derive(Clone, Debug)]
pub(super) struct Placed<T> {
    pub value: T,
    pub span: Span,
}

/// Reports unknown fields and values of the wrong type.
pub(super) fn check(section: &Section, table: &Table<'_>, at: &str, diagnostics: &mut Diagnostics) {
    for (name, span, value) in table.iter() {
        // Formatted for problems only: a file may have 100,000 links.
        let path = || under(at, name);
        let part = || Part::named(name).filter(|_| section.options);
        if let Some(field) = section.field(name) {
            check_value(field.kind, value, &path, diagnostics);
        } else if let Some(part) = part() {
            if let Err(expected) = option_texts(part, value) {
                let found = value.type_name();
                let reason = format!("expected {expected}, found {found}");
                let remedy = "write it as on the command line";
                diagnostics.refuse(value.span.clone(), path(), reason, remedy);
            }
        } else {
            let parts = PARTS.iter().filter(|_| section.options);
            let known = section.fields.iter().map(|field| field.name);
            let known = known.chain(parts.map(|part| part.name));
            let reason = format!("unknown key '{name}'");
            diagnostics.refuse(span.clone(), path(), reason, suggestion(name, known));
        }
    }
}

/// Appends a field to a path.
pub(super) fn under(at: &str, name: &str) -> String {
    match at {
        "" => name.to_owned(),
        at => format!("{at}.{name}"),
    }
}

/// Checks the value at the path that `path` returns.
fn check_value(
    kind: Kind,
    value: &Value,
    path: &dyn Fn() -> String,
    diagnostics: &mut Diagnostics,
) {
    let expected = match (kind, &value.content) {
        (Kind::Text, Content::Text(_)) | (Kind::Flag, Content::Flag(_)) => return,
        (Kind::Text, _) => "a string".to_owned(),
        (Kind::Flag, _) => "true or false".to_owned(),
        (Kind::Texts, Content::Text(_)) => return,
        (Kind::Texts, Content::List(items)) if items.iter().all(is_text) => return,
        (Kind::Texts, _) => "a string or a list of strings".to_owned(),
        (Kind::Tuple(least, most), Content::List(items))
            if items.iter().all(is_text) && (least..=most).contains(&items.len()) =>
        {
            return;
        }
        (Kind::Tuple(least, most), _) => format!("a list of {least} to {most} strings"),
        (Kind::Pairs, Content::List(items)) if items.iter().all(is_pair) => return,
        (Kind::Pairs, _) => "a list of pairs such as [[\"left\", \"right\"]]".to_owned(),
        (Kind::Number(least, most), _) => match value.as_whole() {
            Some(number) if (least..=most).contains(&number) => return,
            _ => format!("an integer from {least} to {most}"),
        },
        (Kind::Choice(words), Content::Text(word)) if words.contains(&&**word) => return,
        (Kind::Choice(words), _) => format!("one of \"{}\"", words.join("\", \"")),
        (Kind::TextMap, Content::Table(table)) => {
            return check_each(table, &path(), |_| Kind::Text, diagnostics);
        }
        (Kind::TextOrTableMap(section), Content::Table(table)) => {
            let kind = |value: &Value<'_>| match value.content {
                Content::Table(_) => Kind::Table(section),
                _ => Kind::Text,
            };
            return check_each(table, &path(), kind, diagnostics);
        }
        (Kind::Table(section), Content::Table(table)) => {
            return check(section, table, &path(), diagnostics);
        }
        (Kind::TableMap(section), Content::Table(table)) => {
            return check_each(table, &path(), |_| Kind::Table(section), diagnostics);
        }
        (Kind::Tables(section), Content::List(items)) => {
            for item in items {
                check_value(Kind::Table(section), item, path, diagnostics);
            }
            return;
        }
        (Kind::Tables(_), _) => format!("tables under [[{}]]", path()),
        (Kind::TextMap | Kind::TextOrTableMap(_) | Kind::Table(_) | Kind::TableMap(_), _) => {
            "a table".to_owned()
        }
    };
    let shown = match &value.content {
        Content::Text(text) => format!("\"{text}\""),
        Content::Integer(text, _) => text.to_string(),
        _ => format!("a value of type {}", value.type_name()),
    };
    let (reason, remedy) = (format!("is {shown}"), format!("write {expected}"));
    diagnostics.refuse(value.span.clone(), path(), reason, remedy);
}

/// Checks the values in a table with arbitrary keys.
fn check_each(
    table: &Table<'_>,
    path: &str,
    kind: impl Fn(&Value<'_>) -> Kind,
    diagnostics: &mut Diagnostics,
) {
    for (name, _, value) in table.iter() {
        let path = || format!("{path}.{name}");
        check_value(kind(value), value, &path, diagnostics);
    }
}

fn is_text(value: &Value<'_>) -> bool {
    value.as_str().is_some()
}

fn is_pair(value: &Value<'_>) -> bool {
    let pair = value.as_list();
    pair.is_some_and(|pair| pair.len() == 2 && pair.iter().all(is_text))
}

/// Returns a string in a table; `None` if missing or of another type.
pub(super) fn text<'t>(table: &'t Table<'_>, name: &str) -> Option<Placed<&'t str>> {
    placed(table.get(name)?)
}

/// Returns a string or a list of strings.
pub(super) fn texts<'t>(table: &'t Table<'_>, name: &str) -> Vec<Placed<&'t str>> {
    let Some(value) = table.get(name) else {
        return Vec::new();
    };
    match &value.content {
        Content::List(items) => items.iter().filter_map(placed).collect(),
        _ => placed(value).into_iter().collect(),
    }
}

/// Like [`texts`], without positions.
pub(super) fn strings(table: &Table<'_>, name: &str) -> Vec<String> {
    let texts = texts(table, name).into_iter();
    texts.map(|text| text.value.to_owned()).collect()
}

/// Returns a string with its position.
pub(super) fn placed<'t>(value: &'t Value<'_>) -> Option<Placed<&'t str>> {
    Some(Placed {
        value: value.as_str()?,
        span: value.span.clone(),
    })
}

/// Returns a non-negative integer.
pub(super) fn whole(table: &Table<'_>, name: &str) -> Option<u64> {
    table.get(name)?.as_whole()
}

pub(super) fn flag(table: &Table<'_>, name: &str) -> Option<bool> {
    table.get(name)?.as_bool()
}

pub(super) fn table<'t, 'i>(parent: &'t Table<'i>, name: &str) -> Option<&'t Table<'i>> {
    parent.get(name)?.as_table()
}

/// Returns the tables under `[[name]]` with their positions.
pub(super) fn tables<'t, 'i>(parent: &'t Table<'i>, name: &str) -> Vec<Placed<&'t Table<'i>>> {
    let items = parent.get(name).and_then(Value::as_list);
    let placed = |value: &'t Value<'i>| {
        let (value, span) = (value.as_table()?, value.span.clone());
        Some(Placed { value, span })
    };
    items.into_iter().flatten().filter_map(placed).collect()
}

/// Returns a table's entries in source order.
pub(super) fn entries<'t, 'i>(table: &'t Table<'i>) -> Vec<(Placed<&'t str>, &'t Value<'i>)> {
    let entries = table.iter().map(|(name, span, value)| {
        let name = Placed {
            value: name,
            span: span.clone(),
        };
        (name, value)
    });
    let mut entries: Vec<_> = entries.collect();
    entries.sort_by_key(|(key, _)| key.span.start);
    entries
}

/// Parses a value with a unit, such as a time.
pub(super) fn unit<T: std::str::FromStr<Err: std::fmt::Display>>(
    table: &Table<'_>,
    name: &str,
    at: &str,
    diagnostics: &mut Diagnostics,
) -> Option<T> {
    let text = text(table, name)?;
    let remedy = "write a number with its unit, as on the command line";
    parsed(&text, under(at, name), remedy, diagnostics)
}

/// Parses a string; reports an invalid one.
pub(super) fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(
    text: &Placed<&str>,
    at: String,
    remedy: &str,
    diagnostics: &mut Diagnostics,
) -> Option<T> {
    let parsed = text.value.parse();
    let refused = |error: T::Err| {
        diagnostics.refuse(text.span.clone(), at, error.to_string(), remedy);
    };
    parsed.map_err(refused).ok()
}

/// Returns the texts of an option's value, which may be numbers without quotes.
fn option_texts(part: &Part, value: &Value<'_>) -> Result<Vec<Placed<String>>, &'static str> {
    let one = |value: &Value<'_>| {
        let text = match &value.content {
            Content::Text(text) | Content::Integer(text, _) | Content::Float(text) => {
                text.to_string()
            }
            Content::Null => part.default_text(),
            _ => return Err("a string"),
        };
        let span = value.span.clone();
        Ok(Placed { value: text, span })
    };
    match &value.content {
        Content::List(items) if part.is_repeated => items.iter().map(one).collect(),
        _ if part.is_repeated => one(value)
            .map(|text| vec![text])
            .map_err(|_| "a string or a list of strings"),
        _ => one(value).map(|text| vec![text]),
    }
}

/// Returns the options that a change resets to their defaults.
pub(super) fn resets(table: &Table<'_>) -> Vec<&'static Part> {
    let is_null = |part: &&Part| {
        let value = table.get(part.name);
        value.is_some_and(|value| matches!(value.content, Content::Null))
    };
    PARTS.iter().filter(is_null).collect()
}

/// Returns a table's link options, as texts with their positions.
pub(super) fn options(table: &Table<'_>) -> Vec<(&'static Part, Placed<String>)> {
    let mut found = Vec::new();
    for part in &PARTS {
        let texts = table.get(part.name).map(|value| option_texts(part, value));
        let texts = texts.and_then(Result::ok).unwrap_or_default();
        found.extend(texts.into_iter().map(|text| (part, text)));
    }
    found
}
