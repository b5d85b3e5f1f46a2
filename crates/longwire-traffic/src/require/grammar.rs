//! The grammar of conditions: clauses with commas between them, each a name, a comparison
//! and a value.

use super::RequireError;

/// A clause, split.
pub(crate) struct SplitClause<'a> {
    pub name: &'a str,
    pub comparison: Comparator,
    pub value: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparator {
    Less,
    LessOrEqual,
    Equal,
    GreaterOrEqual,
    Greater,
}

/// How comparisons are written; those of two characters come first, so that
/// `<=` is not read as `<`.
const COMPARISONS: [(&str, Comparator); 5] = [
    ("<=", Comparator::LessOrEqual),
    (">=", Comparator::GreaterOrEqual),
    ("<", Comparator::Less),
    (">", Comparator::Greater),
    ("=", Comparator::Equal),
];

/// Returns the clauses of an expression.
///
/// # Errors
/// If there are none, with `example`; or if one is empty.
pub(crate) fn clauses<'a>(
    text: &'a str,
    example: &'static str,
) -> Result<Vec<&'a str>, RequireError> {
    let clauses: Vec<&str> = text.split(',').map(str::trim).collect();
    if clauses.iter().all(|clause| clause.is_empty()) {
        return Err(RequireError::Empty { example });
    }
    if clauses.contains(&"") {
        return Err(RequireError::EmptyClause {
            text: text.to_owned(),
        });
    }
    Ok(clauses)
}

impl<'a> SplitClause<'a> {
    /// Splits a clause.
    ///
    /// # Errors
    /// If it has no comparison.
    pub fn of(text: &'a str) -> Result<SplitClause<'a>, RequireError> {
        let missing = || RequireError::NoComparison {
            clause: text.to_owned(),
        };
        let at = text.find(['<', '>', '=']).ok_or_else(missing)?;
        let (name, rest) = text.split_at(at);
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
        match self {
            Comparator::Less => found < wanted,
            Comparator::LessOrEqual => found <= wanted,
            Comparator::Equal => found == wanted,
            Comparator::GreaterOrEqual => found >= wanted,
            Comparator::Greater => found > wanted,
        }
    }
}
