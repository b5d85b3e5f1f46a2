//! Routes, and matching requests to them.

use std::borrow::Cow;

use longwire_engine::Nanos;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use crate::reply::{Refusal, Reply};
use crate::state::ApiState;
use crate::stream::MakeSource;

/// HTTP method of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Reads; also serves `HEAD`.
    Get,
    /// Creates, or triggers.
    Post,
    /// Changes.
    Patch,
    /// Removes.
    Delete,
}

impl Method {
    /// Returns the method's name.
    pub fn name(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
        }
    }

    fn is(self, name: &str) -> bool {
        name == self.name() || (self == Method::Get && name == "HEAD")
    }
}

/// A parsed request.
#[derive(Debug, Default)]
pub struct Call {
    /// Value of the path parameter; empty if the route has none.
    pub name: String,
    pub query: Query,
    /// Request body; `null` if absent.
    pub body: Value,
    /// `Accept` header; empty if absent.
    pub accept: String,
    /// Whether the token allows changes.
    pub may_change: bool,
}

/// Handler of a route.
#[derive(Clone, Copy)]
pub enum Work {
    /// Small read, performed immediately.
    Quick(fn(&ApiState, &Call) -> Result<Reply, Refusal>),
    /// Large read, performed at low priority.
    Slow(fn(&ApiState, &Call) -> Result<Reply, Refusal>),
    /// Builds a change of the run. The text is the JSON pointer to the request body within the
    /// change.
    Change(fn(&Call) -> Value, &'static str),
    /// Builds the event source of a stream.
    Stream(MakeSource),
}

/// Kind of response, for the OpenAPI document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// JSON with this schema.
    Json(&'static str),
    /// Event stream of JSON with this schema.
    Events(&'static str),
    /// Metrics as text.
    Metrics,
    /// OpenAPI document.
    Document,
}

/// A path with a method.
pub struct Route {
    pub method: Method,
    /// Path; one segment may be a placeholder in braces.
    pub path: &'static str,
    /// Help text, one line.
    pub help: &'static str,
    pub parameters: &'static [Parameter],
    /// Body schema, if any.
    pub body: Option<&'static str>,
    pub answer: Answer,
    pub work: Work,
}

impl Route {
    /// Returns whether the route requires permission to change.
    pub fn changes(&self) -> bool {
        self.method != Method::Get
    }

    /// Returns the name of the placeholder.
    pub fn braces(&self) -> Option<&'static str> {
        self.path.split('/').filter_map(in_braces).next()
    }

    /// Matches a path; returns the placeholder's value, or an empty text without a placeholder.
    fn fits<'a>(&self, path: &'a str) -> Option<&'a str> {
        let mut found = "";
        let mut segments = path.split('/');
        for wanted in self.path.split('/') {
            let segment = segments.next()?;
            match in_braces(wanted) {
                Some(_) if segment.is_empty() => return None,
                Some(_) => found = segment,
                None if segment == wanted => {}
                None => return None,
            }
        }
        segments.next().is_none().then_some(found)
    }
}

fn in_braces(segment: &'static str) -> Option<&'static str> {
    segment.strip_prefix('{')?.strip_suffix('}')
}

/// Returns the route of a request, and the value of its placeholder.
///
/// # Errors
/// 404 for an unknown path, 405 for an unsupported method, 400 for a name that is not UTF-8.
pub fn find<'a>(
    routes: &'a [Route],
    method: &str,
    path: &str,
) -> Result<(&'a Route, String), Refusal> {
    let fitting = routes
        .iter()
        .filter_map(|route| Some((route, route.fits(path)?)));
    let fitting: Vec<(&Route, &str)> = fitting.collect();
    if fitting.is_empty() {
        let error = "no such path; GET /v1/openapi.json lists all";
        return Err(Refusal::missing(error));
    }
    let allowed = fitting.iter().map(|(route, _)| route.method.name());
    let allowed: Vec<&str> = allowed.collect();
    let taken = fitting
        .into_iter()
        .find(|(route, _)| route.method.is(method));
    let (route, name) = taken.ok_or_else(|| Refusal::method(&allowed))?;
    Ok((route, decode(name)?))
}

/// A query parameter of a route.
#[derive(Debug)]
pub struct Parameter {
    pub name: &'static str,
    /// Kind of its values.
    pub kind: Kind,
    /// Help text, one line.
    pub help: &'static str,
}

impl Parameter {
    pub const fn new(name: &'static str, kind: Kind) -> Parameter {
        let help = "";
        Parameter { name, kind, help }
    }

    pub const fn help(self, help: &'static str) -> Parameter {
        Parameter { help, ..self }
    }
}

/// Kind of values.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Any string.
    Text,
    /// Integer within inclusive bounds.
    Number(u64, u64),
    /// Duration with a unit, within inclusive bounds.
    Time(Nanos, Nanos),
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Choice(&'static [&'static str]),
}

/// Durations in the OpenAPI document: up to 79,999 of any unit, with nanosecond resolution.
const TIME_PATTERN: &str =
    r"^(0|[0-7]?[0-9]{1,4}((\.[0-9]{1,3})?us|(\.[0-9]{1,6})?ms|(\.[0-9]{1,9})?s))$";

/// Valid query parameters.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(&'static str, String)>);

impl Query {
    /// Parses a query.
    ///
    /// # Errors
    /// 400 for unknown, repeated or invalid parameters.
    pub fn parse(text: Option<&str>, parameters: &'static [Parameter]) -> Result<Query, Refusal> {
        let mut query = Query::default();
        let parts = text
            .unwrap_or("")
            .split('&')
            .filter(|part| !part.is_empty());
        for part in parts {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let (name, value) = (decode_form(name)?, decode_form(value)?);
            let known = parameters.iter().find(|known| known.name == name);
            let known = known.ok_or_else(|| unknown(&name, parameters))?;
            if query.text(known.name).is_some() {
                return Err(Refusal::bad(format!("?{name}= is given twice")));
            }
            known.kind.check(&value).map_err(|wanted| {
                Refusal::bad(format!("?{name}= takes {wanted} ({})", known.help))
            })?;
            query.0.push((known.name, value));
        }
        Ok(query)
    }

    /// Returns a value as it was given.
    pub fn text(&self, name: &str) -> Option<&str> {
        let mut given = self.0.iter();
        Some(&given.find(|(given, _)| *given == name)?.1)
    }

    /// Returns an integer.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    /// Returns a duration.
    pub fn time(&self, name: &str) -> Option<Nanos> {
        self.text(name)?.parse().ok()
    }

    /// Returns a flag; false by default.
    pub fn flag(&self, name: &str) -> bool {
        self.text(name) == Some("true")
    }
}

fn unknown(name: &str, parameters: &[Parameter]) -> Refusal {
    let names: Vec<&str> = parameters.iter().map(|known| known.name).collect();
    let there = match names.as_slice() {
        [] => "this path takes no parameters".to_owned(),
        names => format!("parameters: {}", names.join(", ")),
    };
    Refusal::bad(format!("unknown parameter ?{name}=; {there}"))
}

impl Kind {
    /// Checks a value; the error describes valid values.
    fn check(self, value: &str) -> Result<(), String> {
        let (is_valid, wanted) = match self {
            Kind::Text => return Ok(()),
            Kind::Number(least, most) => (
                value
                    .parse()
                    .is_ok_and(|number| (least..=most).contains(&number)),
                format!("an integer from {least} to {most}"),
            ),
            Kind::Time(least, most) => (
                value
                    .parse()
                    .is_ok_and(|time| (least..=most).contains(&time)),
                format!("a time from {least} to {most}, such as 1s"),
            ),
            Kind::Flag => (
                matches!(value, "true" | "false"),
                "true or false".to_owned(),
            ),
            Kind::Choice(words) => (words.contains(&value), words.join(" or ")),
        };
        is_valid.then_some(()).ok_or(wanted)
    }

    /// Returns the JSON schema.
    pub fn schema(self) -> Value {
        match self {
            Kind::Text => json!({ "type": "string" }),
            Kind::Time(least, most) => {
                let bounds = format!("from {least} to {most}, such as 1s or 250ms");
                json!({ "type": "string", "pattern": TIME_PATTERN, "description": bounds })
            }
            Kind::Number(least, most) => {
                json!({ "type": "integer", "minimum": least, "maximum": most })
            }
            Kind::Flag => json!({ "type": "boolean" }),
            Kind::Choice(words) => json!({ "enum": words }),
        }
    }
}

/// Decodes a query component, in which `+` is a space (WHATWG URL, section 5.1).
fn decode_form(text: &str) -> Result<String, Refusal> {
    decode(&text.replace('+', " "))
}

/// Decodes `%XX` (RFC 3986, section 2.1).
///
/// # Errors
/// 400 if the result is not UTF-8.
pub fn decode(text: &str) -> Result<String, Refusal> {
    let decoded = percent_decode_str(text).decode_utf8();
    let decoded = decoded.map(Cow::into_owned);
    decoded.map_err(|_| Refusal::bad(format!("'{text}' does not decode to valid UTF-8")))
}

#[cfg(test)]
mod tests {
    use super::*;

    static PARAMETERS: [Parameter; 5] = [
        Parameter::new("match", Kind::Text),
        Parameter::new("limit", Kind::Number(1, 10)),
        Parameter::new(
            "every",
            Kind::Time(Nanos::from_millis(50), Nanos::from_secs(3600)),
        ),
        Parameter::new("check", Kind::Flag),
        Parameter::new("links", Kind::Choice(&["sum", "each"])),
    ];

    fn parse(text: &str) -> Result<Query, Refusal> {
        Query::parse(Some(text), &PARAMETERS)
    }

    #[test]
    fn values_are_parsed_by_kind() {
        let query = parse("match=a%2Ab+c%2B&limit=10&&every=50ms&check=true&links=each");
        let query = query.expect("it is right");
        assert_eq!(query.text("match"), Some("a*b c+"));
        assert_eq!(query.number("limit"), Some(10));
        assert_eq!(query.time("every"), Some(Nanos::from_millis(50)));
        assert!(query.flag("check"));
        assert_eq!(query.text("links"), Some("each"));
        let empty = Query::parse(None, &PARAMETERS).expect("nothing is right");
        assert_eq!(empty.text("match"), None);
        assert!(!empty.flag("check"));
    }

    #[test]
    fn invalid_queries_are_refused() {
        let texts = "limit=0 limit=11 limit=-1 limit every=49ms every=3601s every=fast check=yes \
                     check links=all match=a&match=b metch=a match=%ff";
        for text in texts.split(' ') {
            let refusal = parse(text).err();
            let status = refusal.map(|refusal| refusal.status().as_u16());
            assert_eq!(status, Some(400), "{text}");
        }
    }
}
