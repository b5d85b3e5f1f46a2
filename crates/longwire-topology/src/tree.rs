//! The file as a tree of values that know their place: whether its shape is
//! right, and what stands where.

use longwire_engine::{PARTS, Part};

use super::fields::{Kind, Section};
use super::problem::{Complaints, meant};
use super::value::{Content, NumberKind, Span, Table, Value};

/// A text and where it is.
#[derive(Clone, Debug)]
pub(super) struct Placed<T> {
    pub value: T,
    pub span: Span,
}

/// Complains of all fields that a section does not have, and of all values
/// that are not what their field takes.
pub(super) fn check(section: &Section, table: &Table<'_>, at: &str, complaints: &mut Complaints) {
    for (name, span, value) in table.iter() {
        let path = under(at, name);
        let part = Part::named(name).filter(|_| section.options);
        if let Some(field) = section.field(name) {
            check_value(field.kind, value, &path, complaints);
        } else if let Some(part) = part {
            if let Err(expected) = option_texts(part, value) {
                let found = value.type_name();
                let reason = format!("takes {expected}, and this is of type {found}");
                complaints.refuse(
                    value.span.clone(),
                    path,
                    reason,
                    "write it as on the command line",
                );
            }
        } else {
            let parts = PARTS.iter().filter(|_| section.options);
            let known = section.fields.iter().map(|field| field.name);
            let known = known.chain(parts.map(|part| part.name));
            let reason = format!("there is no '{name}' here");
            complaints.refuse(span.clone(), path, reason, meant(name, known));
        }
    }
}

/// A field's name behind that of the table it is in.
pub(super) fn under(at: &str, name: &str) -> String {
    match at {
        "" => name.to_owned(),
        at => format!("{at}.{name}"),
    }
}

fn check_value(kind: Kind, value: &Value, path: &str, complaints: &mut Complaints) {
    let expected = match (kind, &value.content) {
        (Kind::Text, Content::Text(_)) | (Kind::Flag, Content::Flag(_)) => return,
        (Kind::Text, _) => "a text in quotes".to_owned(),
        (Kind::Flag, _) => "true or false".to_owned(),
        (Kind::Texts, Content::Text(_)) => return,
        (Kind::Texts, Content::List(items)) if items.iter().all(is_text) => return,
        (Kind::Texts, _) => "a text in quotes, or a list of them".to_owned(),
        (Kind::Tuple(least, most), Content::List(items))
            if items.iter().all(is_text) && (least..=most).contains(&items.len()) =>
        {
            return;
        }
        (Kind::Tuple(least, most), _) => format!("a list of {least} to {most} texts in quotes"),
        (Kind::Pairs, Content::List(items)) if items.iter().all(is_pair) => return,
        (Kind::Pairs, _) => "a list of pairs, as in [[\"left\", \"right\"]]".to_owned(),
        (Kind::Number(least, most), _) => match value.as_whole() {
            Some(number) if (least..=most).contains(&number) => return,
            _ => format!("a whole number, {least} to {most}"),
        },
        (Kind::Choice(words), Content::Text(word)) if words.contains(&&**word) => return,
        (Kind::Choice(words), _) => format!("one of \"{}\"", words.join("\", \"")),
        (Kind::TextMap, Content::Table(table)) => {
            return check_each(table, path, |_| Kind::Text, complaints);
        }
        (Kind::TextOrTableMap(section), Content::Table(table)) => {
            let kind = |value: &Value<'_>| match value.content {
                Content::Table(_) => Kind::Table(section),
                _ => Kind::Text,
            };
            return check_each(table, path, kind, complaints);
        }
        (Kind::Table(section), Content::Table(table)) => {
            return check(section, table, path, complaints);
        }
        (Kind::TableMap(section), Content::Table(table)) => {
            return check_each(table, path, |_| Kind::Table(section), complaints);
        }
        (Kind::Tables(section), Content::List(items)) => {
            for item in items {
                check_value(Kind::Table(section), item, path, complaints);
            }
            return;
        }
        (Kind::Tables(_), _) => format!("tables, each under [[{path}]]"),
        (Kind::TextMap | Kind::TextOrTableMap(_) | Kind::Table(_) | Kind::TableMap(_), _) => {
            "a table".to_owned()
        }
    };
    let shown = match &value.content {
        Content::Text(text) => format!("\"{text}\""),
        Content::Number(text, _, NumberKind::Integer) => text.to_string(),
        _ => format!("a value of type {}", value.type_name()),
    };
    complaints.refuse(
        value.span.clone(),
        path,
        format!("is {shown}"),
        format!("write {expected}"),
    );
}

/// Checks the values of a table whose names are the user's.
fn check_each(
    table: &Table<'_>,
    path: &str,
    kind: impl Fn(&Value<'_>) -> Kind,
    complaints: &mut Complaints,
) {
    for (name, _, value) in table.iter() {
        let path = format!("{path}.{name}");
        check_value(kind(value), value, &path, complaints);
    }
}

fn is_text(value: &Value<'_>) -> bool {
    value.as_str().is_some()
}

fn is_pair(value: &Value<'_>) -> bool {
    let pair = value.as_list();
    pair.is_some_and(|pair| pair.len() == 2 && pair.iter().all(is_text))
}

/// A text of a table; `None` where it is missing or something else.
pub(super) fn text<'t>(table: &'t Table<'_>, name: &str) -> Option<Placed<&'t str>> {
    let value = table.get(name)?;
    placed(value)
}

/// One text or several.
pub(super) fn texts<'t>(table: &'t Table<'_>, name: &str) -> Vec<Placed<&'t str>> {
    let Some(value) = table.get(name) else {
        return Vec::new();
    };
    match &value.content {
        Content::List(items) => items.iter().filter_map(placed).collect(),
        _ => placed(value).into_iter().collect(),
    }
}

/// A value that is a text, and where it is.
pub(super) fn placed<'t>(value: &'t Value<'_>) -> Option<Placed<&'t str>> {
    Some(Placed {
        value: value.as_str()?,
        span: value.span.clone(),
    })
}

/// A whole number of a table.
pub(super) fn whole(table: &Table<'_>, name: &str) -> Option<u64> {
    table.get(name)?.as_whole()
}

/// A flag of a table.
pub(super) fn flag(table: &Table<'_>, name: &str) -> Option<bool> {
    table.get(name)?.as_bool()
}

/// A table in a table.
pub(super) fn table<'t, 'i>(parent: &'t Table<'i>, name: &str) -> Option<&'t Table<'i>> {
    parent.get(name)?.as_table()
}

/// The tables under `[[name]]`, each with its place.
pub(super) fn tables<'t, 'i>(parent: &'t Table<'i>, name: &str) -> Vec<Placed<&'t Table<'i>>> {
    let items = parent.get(name).and_then(Value::as_list);
    let placed = |value: &'t Value<'i>| {
        let (value, span) = (value.as_table()?, value.span.clone());
        Some(Placed { value, span })
    };
    items.into_iter().flatten().filter_map(placed).collect()
}

/// The entries of a table in the order of the source.
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

/// A value with a unit, such as a time.
pub(super) fn unit<T: std::str::FromStr<Err: std::fmt::Display>>(
    table: &Table<'_>,
    name: &str,
    at: &str,
    complaints: &mut Complaints,
) -> Option<T> {
    let text = text(table, name)?;
    match text.value.parse() {
        Ok(value) => Some(value),
        Err(error) => {
            let remedy = "write a number with its unit, as on the command line";
            complaints.refuse(
                text.span,
                under(at, name),
                T::Err::to_string(&error),
                remedy,
            );
            None
        }
    }
}

/// The texts of an option's value: numbers may stand without quotes.
fn option_texts(part: &Part, value: &Value<'_>) -> Result<Vec<Placed<String>>, &'static str> {
    let one = |value: &Value<'_>| {
        let text = match &value.content {
            Content::Text(text) | Content::Number(text, ..) => text.to_string(),
            Content::Null => part.default_text(),
            _ => return Err("a text in quotes"),
        };
        let span = value.span.clone();
        Ok(Placed { value: text, span })
    };
    match &value.content {
        Content::List(items) if part.is_repeated => items.iter().map(one).collect(),
        _ if part.is_repeated => one(value)
            .map(|text| vec![text])
            .map_err(|_| "a text in quotes, or a list of them"),
        _ => one(value).map(|text| vec![text]),
    }
}

/// The options in a table that a change sets back to their defaults.
pub(super) fn resets(table: &Table<'_>) -> Vec<&'static Part> {
    let is_null = |part: &&Part| {
        let value = table.get(part.name);
        value.is_some_and(|value| matches!(value.content, Content::Null))
    };
    PARTS.iter().filter(is_null).collect()
}

/// The options of a link in a table, as texts with their places.
pub(super) fn options(table: &Table<'_>) -> Vec<(&'static Part, Placed<String>)> {
    let mut found = Vec::new();
    for part in &PARTS {
        let texts = table.get(part.name).map(|value| option_texts(part, value));
        let texts = texts.and_then(Result::ok).unwrap_or_default();
        found.extend(texts.into_iter().map(|text| (part, text)));
    }
    found
}
