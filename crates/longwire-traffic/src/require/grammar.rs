//! Syntax of requirements: comma-separated clauses, each with a name, a comparison and a value.

use std::cmp::Ordering::{self, Equal, Greater, Less};

use longwire_runtime::suggest;
use longwire_units::UnitError;

/// A clause, split into its parts.
pub(crate) struct SplitClause<'a> {
    pub name: &'a str,
    pub comparison: Comparator,
    pub value: &'a str,
}

/// The orderings of a value and its bound that meet a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Comparator(&'static [Ordering]);

/// Comparison operators; longer ones come first, so that `<=` is not read as `<`.
const COMPARISONS: [(&str, Comparator); 5] = [
    ("<=", Comparator(&[Less, Equal])),
    (">=", Comparator(&[Equal, Greater])),
    ("<", Comparator(&[Less])),
    (">", Comparator(&[Greater])),
    ("=", Comparator(&[Equal])),
];

/// Returns the clauses of an expression.
///
/// # Errors
/// If there are none, or one is empty. The error includes `example`.
pub(crate) fn clauses<'a>(
    text: &'a str,
    example: &'static str,
) -> Result<Vec<&'a str>, RequireError> {
    let clauses: Vec<&str> = text.split(',').map(str::trim).collect();
    if clauses.iter().all(|clause| clause.is_empty()) {
        return Err(RequireError::Empty { example });
    }
    if clauses.contains(&"") {
        return Err(RequireError::EmptyClause(text.to_owned()));
    }
    Ok(clauses)
}

impl<'a> SplitClause<'a> {
    /// Splits a clause.
    ///
    /// # Errors
    /// If it contains no comparison.
    pub fn of(text: &'a str) -> Result<SplitClause<'a>, RequireError> {
        let missing = || RequireError::NoComparison(text.to_owned());
        let (name, rest) = text.split_at(text.find(['<', '>', '=']).ok_or_else(missing)?);
        let mut comparisons = COMPARISONS.into_iter();
        let found = comparisons.find(|(sign, _)| rest.starts_with(sign));
        let (sign, comparison) = found.ok_or_else(missing)?;
        Ok(SplitClause {
            name: name.trim(),
            comparison,
            value: rest[sign.len()..].trim(),
        })
    }
}

impl Comparator {
    pub fn holds(self, found: f64, wanted: f64) -> bool {
        let order = found.partial_cmp(&wanted);
        order.is_some_and(|order| self.0.contains(&order))
    }

    /// Whether the bound is a maximum.
    pub fn is_maximum(self) -> bool {
        !self.0.contains(&Greater)
    }
}

/// Error in a requirement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum RequireError {
    #[error("empty requirement; for example: {example}")]
    Empty { example: &'static str },
    #[error("'{0}' has an empty condition; remove the extra comma")]
    EmptyClause(String),
    #[error("'{0}' is not a comparison; write NAME, one of < <= = >= >, and a value")]
    NoComparison(String),
    #[error("unknown grade '{name}'; did you mean '{close}'?")]
    UnknownGrade { name: String, close: &'static str },
    #[error("unknown name '{name}'; {}`longwire exec --help` lists all names", nearest(.name, .known))]
    UnknownName { name: String, known: String },
    #[error("'{clause}': {source}")]
    Value { clause: String, source: UnitError },
    #[error(
        "'{clause}': '{value}' is not a count; write a count such as 5, or a share such as 0.1%"
    )]
    Count { clause: String, value: String },
    #[error("'{clause}': '{value}' is not a share; write a percentage such as 0.1%")]
    Share { clause: String, value: String },
    #[error("'{0}': only artifacts and drops can be compared with a share")]
    NotShared(String),
    #[error("'{clause}' applies to the whole run, not to a link; remove '{link}.'")]
    OfRun { clause: String, link: String },
    #[error("unknown name '{name}'{}; known: {known}", suggest::aside(.name, .known))]
    UnknownReceived { name: String, known: String },
    #[error("'{clause}': {source}")]
    Received {
        clause: String,
        source: Box<RequireError>,
    },
}

/// Returns a "did you mean" question with the closest known names; empty if none is close.
fn nearest(name: &str, known: &str) -> String {
    const SHOWN: usize = 3;
    match suggest::nearest(name, known.split(", "), SHOWN).as_slice() {
        [] => String::new(),
        names => format!("did you mean {}? ", suggest::either(names)),
    }
}
