//! The query of a request: parameters from a table, from which reading, messages and the OpenAPI document follow.

use std::borrow::Cow;

use longwire_engine::Nanos;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use super::refusal::Refusal;

/// A parameter that a route takes.
#[derive(Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// The kind of its values.
    pub kind: Kind,
    /// One line of help.
    pub help: &'static str,
}

impl Parameter {
    /// Returns a parameter with its line of help.
    pub const fn new(name: &'static str, kind: Kind, help: &'static str) -> Parameter {
        Parameter { name, kind, help }
    }
}

/// The kinds of parameters.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A text.
    Text,
    /// A whole number in these bounds.
    Number(u64, u64),
    /// A time with its unit, in these bounds.
    Time(Nanos, Nanos),
    /// `true` or `false`.
    Flag,
    /// One of some words.
    Choice(&'static [&'static str]),
}

/// Times in the OpenAPI document: up to 79,999 of a unit, to the nanosecond.
const TIME_PATTERN: &str =
    r"^(0|[0-7]?[0-9]{1,4}((\.[0-9]{1,3})?us|(\.[0-9]{1,6})?ms|(\.[0-9]{1,9})?s))$";

/// A value that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Given {
    Text(String),
    Number(u64),
    Time(Nanos),
    Flag(bool),
}

/// The parameters of a request, checked.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(&'static str, Given)>);

impl Query {
    /// Reads what stands behind the question mark.
    ///
    /// # Errors
    /// 400, for a parameter that is not known, comes twice, or has a value
    /// that it does not take.
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
            if query.find(known.name).is_some() {
                return Err(Refusal::bad(format!("?{name}= is there twice")));
            }
            let given = known.kind.read(value);
            let given = given.map_err(|wanted| {
                Refusal::bad(format!("?{name}= takes {wanted} ({})", known.help))
            })?;
            query.0.push((known.name, given));
        }
        Ok(query)
    }

    fn find(&self, name: &str) -> Option<&Given> {
        let mut given = self.0.iter();
        given
            .find(|(given, _)| *given == name)
            .map(|(_, value)| value)
    }

    /// A text or a choice.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.find(name) {
            Some(Given::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// A number.
    pub fn number(&self, name: &str) -> Option<u64> {
        match self.find(name) {
            Some(Given::Number(number)) => Some(*number),
            _ => None,
        }
    }

    /// A time.
    pub fn time(&self, name: &str) -> Option<Nanos> {
        match self.find(name) {
            Some(Given::Time(time)) => Some(*time),
            _ => None,
        }
    }

    /// A flag; not set when it is not there.
    pub fn flag(&self, name: &str) -> bool {
        self.find(name) == Some(&Given::Flag(true))
    }
}

fn unknown(name: &str, parameters: &[Parameter]) -> Refusal {
    let names: Vec<&str> = parameters.iter().map(|known| known.name).collect();
    let there = match names.as_slice() {
        [] => "this path takes no parameters".to_owned(),
        names => format!("there are {}", names.join(", ")),
    };
    Refusal::bad(format!("?{name}= is not known; {there}"))
}

impl Kind {
    /// Reads a value, or says what would do.
    fn read(self, value: String) -> Result<Given, String> {
        match self {
            Kind::Text => Ok(Given::Text(value)),
            Kind::Number(least, most) => {
                let number = value.parse::<u64>().ok();
                let number = number.filter(|number| (least..=most).contains(number));
                let wanted = || format!("a whole number from {least} to {most}");
                number.map(Given::Number).ok_or_else(wanted)
            }
            Kind::Time(least, most) => {
                let time = value.parse::<Nanos>().ok();
                let time = time.filter(|time| (least..=most).contains(time));
                let wanted = || format!("a time from {least} to {most}, as in 1s");
                time.map(Given::Time).ok_or_else(wanted)
            }
            Kind::Flag => match value.as_str() {
                "true" => Ok(Given::Flag(true)),
                "false" => Ok(Given::Flag(false)),
                _ => Err("true or false".to_owned()),
            },
            Kind::Choice(words) => {
                if words.contains(&value.as_str()) {
                    Ok(Given::Text(value))
                } else {
                    Err(words.join(" or "))
                }
            }
        }
    }

    /// Its JSON schema.
    pub fn schema(self) -> Value {
        match self {
            Kind::Text => json!({ "type": "string" }),
            Kind::Time(least, most) => {
                let bounds = format!("from {least} to {most}, as in 1s or 250ms");
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

/// Decodes a part of a query, in which a plus sign is a space, as forms write
/// it (WHATWG URL, section 5.1).
fn decode_form(text: &str) -> Result<String, Refusal> {
    decode(&text.replace('+', " "))
}

/// Decodes `%XX` (RFC 3986, section 2.1).
///
/// # Errors
/// 400 when it is not UTF-8 then.
pub fn decode(text: &str) -> Result<String, Refusal> {
    let decoded = percent_decode_str(text).decode_utf8();
    let decoded = decoded.map(Cow::into_owned);
    decoded.map_err(|_| Refusal::bad(format!("'{text}' is not UTF-8 once %XX is read")))
}

#[cfg(test)]
mod tests {
    use super::*;

    static PARAMETERS: [Parameter; 5] = [
        Parameter::new("match", Kind::Text, "names"),
        Parameter::new("limit", Kind::Number(1, 10), "how many"),
        Parameter::new(
            "every",
            Kind::Time(Nanos::from_millis(50), Nanos::from_secs(3600)),
            "how often",
        ),
        Parameter::new("check", Kind::Flag, "whether"),
        Parameter::new("links", Kind::Choice(&["sum", "each"]), "which"),
    ];

    fn parse(text: &str) -> Result<Query, Refusal> {
        Query::parse(Some(text), &PARAMETERS)
    }

    #[test]
    fn values_are_read_in_their_kinds() {
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
    fn anything_else_is_refused() {
        for text in [
            "limit=0",
            "limit=11",
            "limit=-1",
            "limit",
            "every=49ms",
            "every=3601s",
            "every=fast",
            "check=yes",
            "check",
            "links=all",
            "match=a&match=b",
            "metch=a",
            "match=%ff",
        ] {
            let refusal = parse(text).err();
            let status = refusal.map(|refusal| refusal.status().as_u16());
            assert_eq!(status, Some(400), "{text}");
        }
    }
}
