//! Specifications as one line of text: `rate=10mbit delay=20ms`.

use core::fmt;
use core::str::FromStr;

use super::OptionError;
use crate::loader::{Loader, NoLoader};
use crate::parts::{LinkSpec, PARTS, Part};
use crate::prelude::*;

/// Error in a link specification.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum LinkSpecError {
    #[error("'{0}' has no name; expected NAME=VALUE, such as delay=20ms")]
    NoName(String),
    #[error("'{0}' has no value; expected NAME=VALUE, such as delay=20ms")]
    NoValue(String),
    #[error("unknown option '{name}'; options are {}", names())]
    Unknown { name: String },
    #[error("{0} is given twice")]
    Repeated(&'static str),
    #[error(transparent)]
    Option(#[from] OptionError),
}

/// Returns all option names, for messages.
fn names() -> String {
    let names: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
    names.join(", ")
}

/// Returns the part with this name.
pub(super) fn part(name: &str) -> Result<&'static Part, LinkSpecError> {
    Part::named(name).ok_or_else(|| LinkSpecError::Unknown {
        name: name.to_string(),
    })
}

/// Parses a line of `NAME=VALUE` pairs. A value may contain spaces: a word without `=`, or with a
/// comparison (`==`, `>=`), continues the previous value.
pub(super) fn read(line: &str, loader: &dyn Loader) -> Result<LinkSpec, LinkSpecError> {
    let mut pairs: Vec<(&str, String)> = Vec::new();
    for word in line.split_whitespace() {
        let pair = word.split_once('=');
        let pair = pair.filter(|(name, value)| is_name(name) && !value.starts_with('='));
        match (pair, pairs.last_mut()) {
            (Some((_, "")), _) => return Err(LinkSpecError::NoValue(word.to_string())),
            (Some((name, value)), _) => pairs.push((name, value.to_string())),
            (None, Some((_, value))) => {
                value.push(' ');
                value.push_str(word);
            }
            (None, None) => return Err(LinkSpecError::NoName(word.to_string())),
        }
    }
    let mut spec = LinkSpec::default();
    for (name, value) in pairs {
        let part = part(name)?;
        if part.texts(&spec).is_some() && !part.is_repeated {
            return Err(LinkSpecError::Repeated(part.name));
        }
        part.add(&mut spec, &value, loader)?;
    }
    Ok(spec)
}

/// Whether a word before `=` could be an option name.
fn is_name(word: &str) -> bool {
    !word.is_empty()
        && word
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'-')
}

impl FromStr for LinkSpec {
    type Err = LinkSpecError;

    /// Parses a line whose models use no files or plugins; otherwise, use [`LinkSpec::parse`].
    fn from_str(line: &str) -> Result<LinkSpec, LinkSpecError> {
        read(line, &NoLoader)
    }
}

impl fmt::Display for LinkSpec {
    /// Writes a line that parses to an equal specification.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.given().iter().enumerate() {
            let blank = if index > 0 { " " } else { "" };
            write!(f, "{blank}{name}={value}")?;
        }
        Ok(())
    }
}
