//! The file as a tree of values that know their place: whether its shape is
//! right, and what stands where.

use std::ops::Range;

use longwire_engine::LinkOptions;
use toml::de::{DeTable, DeValue};

use super::fields::{Kind, Section};
use super::problem::{Complaints, meant};
use longwire_engine::options::LINK_OPTIONS;

/// A value and where it is.
pub(super) type Value<'i> = toml::Spanned<DeValue<'i>>;

/// A text and where it is.
#[derive(Clone, Debug)]
pub(super) struct Placed<T> {
    pub value: T,
    pub span: Range<usize>,
}

/// Complains of all fields that a section does not have, and of all values
/// that are not what their field takes.
pub(super) fn check(section: &Section, table: &DeTable, at: &str, complaints: &mut Complaints) {
    for (key, value) in table {
        let name: &str = key.get_ref();
        let path = under(at, name);
        if let Some(field) = section.field(name) {
            check_value(field.kind, value, &path, complaints);
        } else if section.options && is_option(name) {
            if let Err(expected) = option_texts(name, value) {
                let found = value.get_ref().type_str();
                let reason = format!("takes {expected}, and this is of type {found}");
                complaints.refuse(
                    value.span(),
                    path,
                    reason,
                    "write it as on the command line",
                );
            }
        } else {
            let options = LINK_OPTIONS.iter().filter(|_| section.options);
            let known = section.fields.iter().map(|field| field.name);
            let known = known.chain(options.map(|option| option.name));
            let reason = format!("there is no '{name}' here");
            complaints.refuse(key.span(), path, reason, meant(name, known));
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

/// Whether a link has such an option.
pub(super) fn is_option(name: &str) -> bool {
    LINK_OPTIONS.iter().any(|option| option.name == name)
}

fn check_value(kind: Kind, value: &Value, path: &str, complaints: &mut Complaints) {
    let found = value.get_ref();
    let expected = match (kind, found) {
        (Kind::Text, DeValue::String(_)) | (Kind::Flag, DeValue::Boolean(_)) => return,
        (Kind::Text, _) => "a text in quotes".to_owned(),
        (Kind::Flag, _) => "true or false".to_owned(),
        (Kind::Texts, DeValue::String(_)) => return,
        (Kind::Texts, DeValue::Array(items)) if items.iter().all(is_text) => return,
        (Kind::Texts, _) => "a text in quotes, or a list of them".to_owned(),
        (Kind::Tuple(least, most), DeValue::Array(items))
            if items.iter().all(is_text) && (least..=most).contains(&items.len()) =>
        {
            return;
        }
        (Kind::Tuple(least, most), _) => format!("a list of {least} to {most} texts in quotes"),
        (Kind::Pairs, DeValue::Array(items)) if items.iter().all(is_pair) => return,
        (Kind::Pairs, _) => "a list of pairs, as in [[\"left\", \"right\"]]".to_owned(),
        (Kind::Number(least, most), _) => match number(found) {
            Some(number) if (least..=most).contains(&number) => return,
            _ => format!("a whole number, {least} to {most}"),
        },
        (Kind::Choice(words), DeValue::String(word)) if words.contains(&&**word) => return,
        (Kind::Choice(words), _) => format!("one of \"{}\"", words.join("\", \"")),
        (Kind::TextMap, DeValue::Table(table)) => {
            for (key, value) in table {
                let path = format!("{path}.{}", key.get_ref());
                check_value(Kind::Text, value, &path, complaints);
            }
            return;
        }
        (Kind::Table(section), DeValue::Table(table)) => {
            return check(section, table, path, complaints);
        }
        (Kind::TableMap(section), DeValue::Table(table)) => {
            for (key, value) in table {
                let path = format!("{path}.{}", key.get_ref());
                check_value(Kind::Table(section), value, &path, complaints);
            }
            return;
        }
        (Kind::Tables(section), DeValue::Array(items)) => {
            for item in items {
                check_value(Kind::Table(section), item, path, complaints);
            }
            return;
        }
        (Kind::Tables(_), _) => format!("tables, each under [[{path}]]"),
        (Kind::TextMap | Kind::Table(_) | Kind::TableMap(_), _) => "a table".to_owned(),
    };
    let shown = match found {
        DeValue::String(text) => format!("\"{text}\""),
        DeValue::Integer(number) => number.to_string(),
        other => format!("a value of type {}", other.type_str()),
    };
    complaints.refuse(
        value.span(),
        path,
        format!("is {shown}"),
        format!("write {expected}"),
    );
}

fn is_text(value: &Value) -> bool {
    value.get_ref().is_str()
}

fn is_pair(value: &Value) -> bool {
    let pair = value.get_ref().as_array();
    pair.is_some_and(|pair| pair.len() == 2 && pair.iter().all(is_text))
}

fn number(value: &DeValue) -> Option<u64> {
    let integer = value.as_integer()?;
    u64::from_str_radix(&integer.as_str().replace('_', ""), integer.radix()).ok()
}

/// A text of a table; `None` where it is missing or something else.
pub(super) fn text<'t>(table: &'t DeTable, name: &str) -> Option<Placed<&'t str>> {
    let value = table.get(name)?;
    Some(Placed {
        value: value.get_ref().as_str()?,
        span: value.span(),
    })
}

/// One text or several.
pub(super) fn texts<'t>(table: &'t DeTable, name: &str) -> Vec<Placed<&'t str>> {
    let Some(value) = table.get(name) else {
        return Vec::new();
    };
    let placed = |value: &'t Value| {
        let (text, span) = (value.get_ref().as_str()?, value.span());
        Some(Placed { value: text, span })
    };
    match value.get_ref() {
        DeValue::Array(items) => items.iter().filter_map(placed).collect(),
        _ => placed(value).into_iter().collect(),
    }
}

/// A whole number of a table.
pub(super) fn whole(table: &DeTable, name: &str) -> Option<u64> {
    number(table.get(name)?.get_ref())
}

/// A flag of a table.
pub(super) fn flag(table: &DeTable, name: &str) -> Option<bool> {
    table.get(name)?.get_ref().as_bool()
}

/// A table in a table.
pub(super) fn table<'t, 'i>(parent: &'t DeTable<'i>, name: &str) -> Option<&'t DeTable<'i>> {
    parent.get(name)?.get_ref().as_table()
}

/// The tables under `[[name]]`, each with its place.
pub(super) fn tables<'t, 'i>(parent: &'t DeTable<'i>, name: &str) -> Vec<Placed<&'t DeTable<'i>>> {
    let items = parent
        .get(name)
        .and_then(|value| value.get_ref().as_array());
    let placed = |value: &'t Value<'i>| {
        let (table, span) = (value.get_ref().as_table()?, value.span());
        Some(Placed { value: table, span })
    };
    items.into_iter().flatten().filter_map(placed).collect()
}

/// The entries of a table in the order of the file.
pub(super) fn entries<'t, 'i>(table: &'t DeTable<'i>) -> Vec<(Placed<&'t str>, &'t Value<'i>)> {
    let entry = |(key, value): (&'t toml::Spanned<_>, _)| {
        let key: &'t toml::Spanned<std::borrow::Cow<'i, str>> = key;
        let (name, span): (&str, _) = (key.get_ref(), key.span());
        (Placed { value: name, span }, value)
    };
    let mut entries: Vec<_> = table.iter().map(entry).collect();
    entries.sort_by_key(|(key, _)| key.span.start);
    entries
}

/// A value with a unit, such as a time.
pub(super) fn unit<T: std::str::FromStr<Err: std::fmt::Display>>(
    table: &DeTable,
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
fn option_texts(name: &str, value: &Value) -> Result<Vec<Placed<String>>, &'static str> {
    let mut texts = LinkOptions::default();
    texts.set(name, String::new());
    let is_list = !(texts.loss.is_empty() && texts.rewrite.is_empty());
    let one = |value: &Value| {
        let text = match value.get_ref() {
            DeValue::String(text) => text.clone().into_owned(),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.as_str().to_owned(),
            _ => return Err("a text in quotes"),
        };
        let span = value.span();
        Ok(Placed { value: text, span })
    };
    match value.get_ref() {
        DeValue::Array(items) if is_list => items.iter().map(one).collect(),
        _ if is_list => one(value)
            .map(|text| vec![text])
            .map_err(|_| "a text in quotes, or a list of them"),
        _ => one(value).map(|text| vec![text]),
    }
}

/// The options of a link in a table, as texts with their places.
pub(super) fn options(table: &DeTable) -> Vec<(&'static str, Placed<String>)> {
    let mut found = Vec::new();
    for option in &LINK_OPTIONS {
        let texts = table
            .get(option.name)
            .map(|value| option_texts(option.name, value));
        let texts = texts.and_then(Result::ok).unwrap_or_default();
        found.extend(texts.into_iter().map(|text| (option.name, text)));
    }
    found
}
