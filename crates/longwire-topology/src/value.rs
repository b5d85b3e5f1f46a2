//! A tree of values from TOML or JSON, each with its position.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Map, Value as Json};
use toml::de::{DeTable, DeValue};

use super::problem::Problem;

/// A position: a byte range in TOML text, or a number that [`JsonSource`] assigned to a value.
/// `0..0` is the whole source.
pub(super) type Span = Range<usize>;

/// Values by name.
#[derive(Debug, Default)]
pub(super) struct Table<'t>(BTreeMap<Cow<'t, str>, (Span, Value<'t>)>);

/// A value with its position.
#[derive(Debug)]
pub(super) struct Value<'t> {
    pub content: Content<'t>,
    pub span: Span,
}

#[derive(Debug)]
pub(super) enum Content<'t> {
    Text(Cow<'t, str>),
    /// An integer as written, and its value if it is not negative.
    Integer(Cow<'t, str>, Option<u64>),
    /// Any other number as written.
    Float(Cow<'t, str>),
    Flag(bool),
    List(Vec<Value<'t>>),
    Table(Table<'t>),
    /// A TOML date or time, which no field accepts.
    Time,
    /// A JSON null, which resets an option to its default.
    Null,
}

impl<'t> Table<'t> {
    pub fn get(&self, name: &str) -> Option<&Value<'t>> {
        self.0.get(name).map(|(_, value)| value)
    }

    pub fn contains_key(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(Cow::as_ref)
    }

    /// Iterates over names, positions and values, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Span, &Value<'t>)> {
        let entries = self.0.iter();
        entries.map(|(name, (span, value))| (name.as_ref(), span, value))
    }
}

impl<'t> Value<'t> {
    pub fn as_str(&self) -> Option<&str> {
        match &self.content {
            Content::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self.content {
            Content::Flag(flag) => Some(flag),
            _ => None,
        }
    }

    /// Returns a non-negative integer.
    pub fn as_whole(&self) -> Option<u64> {
        match self.content {
            Content::Integer(_, whole) => whole,
            _ => None,
        }
    }

    pub fn as_list(&self) -> Option<&[Value<'t>]> {
        match &self.content {
            Content::List(items) => Some(items),
            _ => None,
        }
    }

    pub fn as_table(&self) -> Option<&Table<'t>> {
        match &self.content {
            Content::Table(table) => Some(table),
            _ => None,
        }
    }

    /// Returns the type's name in TOML.
    pub fn type_name(&self) -> &'static str {
        match &self.content {
            Content::Text(_) => "string",
            Content::Integer(..) => "integer",
            Content::Float(_) => "float",
            Content::Flag(_) => "boolean",
            Content::List(_) => "array",
            Content::Table(_) => "table",
            Content::Time => "datetime",
            Content::Null => "null",
        }
    }
}

impl<'t> From<DeTable<'t>> for Table<'t> {
    fn from(table: DeTable<'t>) -> Table<'t> {
        let entries = table.into_iter().map(|(key, value)| {
            let span = key.span();
            (key.into_inner(), (span, Value::from(value)))
        });
        Table(entries.collect())
    }
}

impl<'t> From<toml::Spanned<DeValue<'t>>> for Value<'t> {
    fn from(value: toml::Spanned<DeValue<'t>>) -> Value<'t> {
        let span = value.span();
        let content = match value.into_inner() {
            DeValue::String(text) => Content::Text(text),
            DeValue::Integer(number) => {
                let digits = number.as_str().replace('_', "");
                let whole = u64::from_str_radix(&digits, number.radix()).ok();
                Content::Integer(number.to_string().into(), whole)
            }
            DeValue::Float(number) => Content::Float(number.as_str().to_owned().into()),
            DeValue::Boolean(flag) => Content::Flag(flag),
            DeValue::Datetime(_) => Content::Time,
            DeValue::Array(items) => Content::List(items.into_iter().map(Value::from).collect()),
            DeValue::Table(table) => Content::Table(table.into()),
        };
        Value { content, span }
    }
}

/// Maximum length of names and of strings in JSON, in bytes. Problems quote both.
const NAME_MAX: usize = 4 << 10;
const TEXT_MAX: usize = 1 << 20;

/// Numbers the values of a JSON body, so that problems can point to them.
#[derive(Debug, Default)]
pub(super) struct JsonSource {
    /// Name shown in problems instead of a file name.
    pub file: &'static str,
    /// The container of each value, and its name or index in that container. Values are numbered
    /// from 1.
    steps: Vec<(usize, Step)>,
}

/// A problem with the form of a body.
type Fault = Box<Problem>;

#[derive(Clone, Debug)]
enum Step {
    Name(String),
    Place(usize),
}

impl JsonSource {
    /// Creates an empty source with a name.
    pub fn of(file: &'static str) -> JsonSource {
        let steps = Vec::new();
        JsonSource { file, steps }
    }

    /// Reads a body.
    ///
    /// # Errors
    /// If the body is not an object, or contains an invalid null or an overlong name or string.
    pub fn read<'t>(&mut self, body: Option<&'t Map<String, Json>>) -> Result<Table<'t>, Fault> {
        let remedy = "send an object such as {\"set\": {\"NAME\": {\"rate\": \"5mbit\"}}}";
        let no_object = || self.fault("the change is not a JSON object", remedy);
        self.table(body.ok_or_else(no_object)?, 0)
    }

    /// Returns a problem with the form of the body.
    fn fault(&self, reason: &str, remedy: &str) -> Fault {
        Box::new(Problem {
            file: self.file.to_owned(),
            reason: reason.to_owned(),
            remedy: remedy.to_owned(),
            is_malformed: true,
            ..Problem::default()
        })
    }

    fn too_long(&self) -> Fault {
        let reason = "a name is longer than 4 KiB, or a string longer than 1 MiB";
        self.fault(reason, "select links by pattern, and pass data in a file")
    }

    /// Returns the JSON Pointer (RFC 6901) to a value; empty for the whole body.
    pub fn pointer(&self, number: usize) -> String {
        let Some((parent, step)) = self.step(number) else {
            return String::new();
        };
        let token = match step {
            Step::Name(name) => name.replace('~', "~0").replace('/', "~1"),
            Step::Place(place) => place.to_string(),
        };
        format!("{}/{token}", self.pointer(*parent))
    }

    /// Returns a value's path for messages, without list indices.
    fn path(&self, number: usize) -> String {
        let Some((parent, step)) = self.step(number) else {
            return String::new();
        };
        let before = self.path(*parent);
        match step {
            Step::Place(_) => before,
            Step::Name(name) if before.is_empty() => name.clone(),
            Step::Name(name) => format!("{before}.{name}"),
        }
    }

    /// Returns whether a value is an option under `/set/NAME/OPTION`.
    fn is_option(&self, number: usize) -> bool {
        if let Some((links, Step::Name(_))) = self.step(number)
            && let Some((set, Step::Name(_))) = self.step(*links)
        {
            matches!(self.step(*set), Some((0, Step::Name(name))) if name == "set")
        } else {
            false
        }
    }

    fn step(&self, number: usize) -> Option<&(usize, Step)> {
        self.steps.get(number.checked_sub(1)?)
    }

    fn number(&mut self, parent: usize, step: Step) -> usize {
        self.steps.push((parent, step));
        self.steps.len()
    }

    fn table<'t>(
        &mut self,
        fields: &'t Map<String, Json>,
        parent: usize,
    ) -> Result<Table<'t>, Fault> {
        let mut table = BTreeMap::new();
        for (name, value) in fields {
            if name.len() > NAME_MAX {
                return Err(self.too_long());
            }
            let number = self.number(parent, Step::Name(name.clone()));
            let value = self.value(value, number)?;
            table.insert(Cow::from(name.as_str()), (number..number, value));
        }
        Ok(Table(table))
    }

    fn value<'t>(&mut self, value: &'t Json, number: usize) -> Result<Value<'t>, Fault> {
        let content = match value {
            Json::Null if self.is_option(number) => Content::Null,
            Json::Null => {
                let remedy = "remove it; only options under set can be null";
                let mut fault = self.fault("is null", remedy);
                (fault.field, fault.pointer) = (self.path(number), self.pointer(number));
                return Err(fault);
            }
            Json::Bool(flag) => Content::Flag(*flag),
            Json::Number(number) => number_of_json(number),
            Json::String(text) if text.len() > TEXT_MAX => return Err(self.too_long()),
            Json::String(text) => Content::Text(text.as_str().into()),
            Json::Array(items) => {
                let items = items.iter().enumerate().map(|(place, item)| {
                    let number = self.number(number, Step::Place(place));
                    self.value(item, number)
                });
                Content::List(items.collect::<Result<_, _>>()?)
            }
            Json::Object(fields) => Content::Table(self.table(fields, number)?),
        };
        let span = number..number;
        Ok(Value { content, span })
    }
}

/// Converts a number; `2.0` counts as an integer (JSON Schema 2020-12, section 6.1.1).
fn number_of_json(number: &serde_json::Number) -> Content<'static> {
    /// 2^53: an `f64` represents every integer up to this magnitude exactly.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    let real = number
        .as_f64()
        .filter(|real| number.is_f64() && real.fract() == 0.0);
    match real.filter(|real| real.abs() <= EXACT_MAX) {
        Some(real) => {
            let whole = real as i64;
            Content::Integer(whole.to_string().into(), u64::try_from(whole).ok())
        }
        None if number.is_f64() => Content::Float(number.to_string().into()),
        None => Content::Integer(number.to_string().into(), number.as_u64()),
    }
}

#[cfg(test)]
mod tests {
    use longwire_testbed::support::rows;
    use serde_json::json;

    use super::*;

    fn read(body: &Json) -> Result<(Table<'_>, JsonSource), Fault> {
        let mut source = JsonSource::default();
        Ok((source.read(body.as_object())?, source))
    }

    #[test]
    fn json_numbers_keep_their_type() {
        let body = json!({ "x": [1, -2, 2.5, 1e30, 3.0, u64::MAX] });
        let (table, _) = read(&body).expect("a table");
        let items = table.get("x").and_then(Value::as_list).expect("a list");
        let of = |value: &Value| (value.as_whole(), value.type_name());
        let expected = [
            (Some(1), "integer"),
            (None, "integer"),
            (None, "float"),
            (None, "float"),
            (Some(3), "integer"),
            (Some(u64::MAX), "integer"),
        ];
        assert_eq!(items.iter().map(of).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn pointers_lead_to_the_value() {
        let body = json!({ "add": { "link": [{ "a/b~c": "x" }, { "rate": [["deep"]] }] } });
        let (table, source) = read(&body).expect("a table");
        let add = table.get("add").and_then(Value::as_table).expect("a table");
        let links = add.get("link").and_then(Value::as_list).expect("a list");
        let first = links[0].as_table().expect("a table");
        for (value, pointer) in [
            (first.get("a/b~c").expect("a value"), "/add/link/0/a~1b~0c"),
            (&links[1], "/add/link/1"),
        ] {
            assert_eq!(source.pointer(value.span.start), pointer);
            assert!(body.pointer(pointer).is_some(), "{pointer}");
        }
        assert_eq!(source.pointer(0), "");
    }

    #[test]
    fn names_and_texts_have_bounds() {
        let of = |name: usize, value: usize| {
            let body = json!({ "set": { "x".repeat(name): [{ "rate": "x".repeat(value) }] } });
            read(&body).map(drop)
        };
        assert_eq!(of(NAME_MAX, TEXT_MAX), Ok(()));
        for (name, value) in [(NAME_MAX + 1, 1), (1, TEXT_MAX + 1)] {
            let fault = of(name, value).expect_err("too long");
            let reason = "a name is longer than 4 KiB, or a string longer than 1 MiB";
            assert_eq!(fault.reason, reason);
        }
    }

    #[test]
    fn a_null_is_refused_with_its_pointer() {
        for [body, field, pointer] in rows(
            r#"
            {"set": null} | set | /set
            {"set": {"a": null}} | set.a | /set/a
            {"set": {"a": {"loss": [null]}}} | set.a.loss | /set/a/loss/0
            {"add": {"a": {"rate": null}}} | add.a.rate | /add/a/rate
            {"x": {"set": {"a": {"rate": null}}}} | x.set.a.rate | /x/set/a/rate
            "#,
        ) {
            let body: Json = serde_json::from_str(body).expect("JSON");
            let fault = read(&body).map(drop).expect_err("a null");
            assert_eq!((&*fault.field, &*fault.pointer), (field, pointer));
            assert_eq!(fault.reason, "is null");
        }
        let body = json!({ "set": { "a": { "rate": null } } });
        assert_eq!(read(&body).map(drop), Ok(()), "the default of an option");
    }
}
