//! Model syntax, shared by all interfaces: `name`, `name:key=value,key=value`, or a leading value
//! without a key where unambiguous.

use longwire_units::{UnitError, parse_count, parse_ratio, parse_real};

mod arguments;
mod model;

pub use arguments::{Arguments, reads};
pub use model::ModelSpec;

use crate::prelude::*;

/// Unit of a model parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A time, such as `20ms`.
    Time,
    /// A rate, such as `10mbit`.
    Rate,
    /// A size in bytes, such as `64kb`.
    Size,
    /// A number of packets, such as `100p`.
    Packets,
    /// A probability, such as `1%`.
    Probability,
    /// A correlation, such as `25%` or `-10%`.
    Correlation,
    /// A ratio without a unit, such as `1e-6`.
    Ratio,
    /// A natural number, such as `100`.
    Count,
    /// An integer, such as `-4`.
    Signed,
    /// A real number, such as `1.5`.
    Real,
    /// A file name; the string is an example of the file's contents, for help, documentation and
    /// tests.
    File(&'static str),
    /// Any text without commas; the string is an example.
    Text(&'static str),
    /// Every `key=value` that no other parameter accepts, for plugins. Only the last parameter may
    /// have this unit.
    Rest,
    /// One of these keywords.
    Choice(&'static [&'static str]),
}

impl Unit {
    /// Returns an example value, for help and messages.
    pub fn example(self) -> &'static str {
        match self {
            Unit::Time => "20ms",
            Unit::Rate => "10mbit",
            Unit::Size => "64kb",
            Unit::Packets => "100p",
            Unit::Probability => "1%",
            Unit::Correlation => "25%",
            Unit::Ratio => "1e-6",
            Unit::Count => "100",
            Unit::Signed => "-4",
            Unit::Real => "1.5",
            Unit::File(_) => "example.file",
            Unit::Text(example) => example,
            Unit::Rest => "value",
            Unit::Choice(words) => words.first().copied().unwrap_or("word"),
        }
    }
}

/// A model parameter.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Key.
    pub name: &'static str,
    /// Unit.
    pub unit: Unit,
    /// Default value; `None` if the parameter is required, or optional without a default.
    pub default: Option<&'static str>,
    /// One-line help.
    pub help: &'static str,
    /// Range of values, if narrower than the unit's.
    pub range: Option<ParamRange>,
}

impl Param {
    /// Creates a parameter without default and help.
    pub const fn new(name: &'static str, unit: Unit) -> Param {
        Param {
            name,
            unit,
            default: None,
            help: "",
            range: None,
        }
    }

    /// Creates a parameter with a default and without help.
    pub const fn with_default(name: &'static str, unit: Unit, default: &'static str) -> Param {
        Param::new(name, unit).default(default)
    }

    /// Sets the default.
    pub const fn default(mut self, default: &'static str) -> Param {
        self.default = Some(default);
        self
    }

    /// Sets the one-line help.
    pub const fn help(mut self, help: &'static str) -> Param {
        self.help = help;
        self
    }

    /// Sets an inclusive range, described by `words`; values outside it are rejected when parsed.
    /// Only units of plain numbers may have ranges.
    pub const fn within(
        mut self,
        min: &'static str,
        max: &'static str,
        words: &'static str,
    ) -> Param {
        self.range = Some(ParamRange { min, max, words });
        self
    }

    /// Rejects a value outside the range.
    fn check_range(&self, text: &str) -> Result<(), UnitError> {
        let Some(range) = self.range else {
            return Ok(());
        };
        let (min, max) = (self.number(range.min)?, self.number(range.max)?);
        if (min..=max).contains(&self.number(text)?) {
            return Ok(());
        }
        Err(UnitError::OutOfRange {
            text: text.into(),
            range: range.words,
        })
    }

    fn number(&self, text: &str) -> Result<f64, UnitError> {
        match self.unit {
            Unit::Count => parse_count(text).map(|count| count as f64),
            Unit::Ratio => parse_ratio(text),
            _ => parse_real(text),
        }
    }
}

/// Inclusive range of a plain-number parameter; bounds are in the specification syntax.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamRange {
    /// Minimum.
    pub min: &'static str,
    /// Maximum.
    pub max: &'static str,
    /// Description of the range, for messages.
    pub words: &'static str,
}

/// Description of a registered model, the source of its help, documentation and checks.
#[derive(Clone, Copy, Debug)]
pub struct ModelInfo {
    /// Name in specifications.
    pub name: &'static str,
    /// One-line help, citing the source of the formula if there is one.
    pub summary: &'static str,
    /// Parameters. A value without a key is assigned to the first whose unit accepts it.
    pub params: &'static [Param],
}

/// Error in a model's text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum SpecError {
    #[error("no value; write {expected}")]
    Empty { expected: String },
    #[error("unknown {kind} model '{name}'; known: {known}; or a plain value such as {example}")]
    UnknownModel {
        kind: &'static str,
        name: String,
        known: String,
        example: &'static str,
    },
    #[error("{model} has no parameter '{key}'; it takes {known}")]
    UnknownParam {
        model: &'static str,
        key: String,
        known: String,
    },
    #[error("{model}: '{key}' is given twice")]
    Repeated { model: &'static str, key: String },
    #[error("{model}: '{text}' has a stray comma; remove it")]
    EmptyItem { model: &'static str, text: String },
    #[error("{model}: '{key}' is required; for example: {key}={example}")]
    Missing {
        model: &'static str,
        key: &'static str,
        example: &'static str,
    },
    #[error("{model}: '{key}' has no value; for example: {key}={example}")]
    NoValue {
        model: &'static str,
        key: &'static str,
        example: &'static str,
    },
    #[error("{model}: {key}: {source}")]
    Value {
        model: &'static str,
        key: &'static str,
        source: UnitError,
    },
    #[error(transparent)]
    Plain(#[from] UnitError),
    #[error("'{text}' has no unit: {written}")]
    NoUnit { text: String, written: String },
    #[error("{model}: no parameter takes '{text}'; for example: {examples}")]
    Misfit {
        model: &'static str,
        text: String,
        examples: String,
    },
    #[error("{model}: {key}: '{text}' is not one of {known}")]
    Choice {
        model: &'static str,
        key: &'static str,
        text: String,
        known: String,
    },
    #[error("{model}: {key}: {path}: {message}")]
    File {
        model: &'static str,
        key: &'static str,
        path: String,
        message: String,
    },
    #[error("{model}: {key}: {path}: {message}")]
    Content {
        model: &'static str,
        key: &'static str,
        path: String,
        message: String,
    },
    #[error("{model}: {message}")]
    Unfit {
        model: &'static str,
        message: String,
    },
}

impl SpecError {
    /// Returns the message without excerpts from files that the model read, for clients that may
    /// specify a file but not read it.
    pub fn without_content(&self) -> String {
        let SpecError::Content {
            model,
            key,
            path,
            message,
        } = self
        else {
            return self.to_string();
        };
        let numbered = message.strip_prefix("line ");
        let number = numbered.and_then(|rest| rest.split_once(':'));
        let line = number.and_then(|(line, _)| line.parse::<u64>().ok());
        let place = match line {
            Some(line) => format!("line {line} is"),
            None => "it is".to_owned(),
        };
        format!("{model}: {key}: {path}: {place} not in the format of '{model}'")
    }
}
