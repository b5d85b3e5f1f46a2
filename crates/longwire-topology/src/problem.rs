//! Errors and warnings about a file, with positions.

use longwire_units::count_of;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::value::{JsonSource, Span};
use longwire_runtime::suggest::closest;

/// Maximum number of problems kept, which bounds memory for a file with a million bad lines;
/// further problems are only counted.
pub const PROBLEMS_MAX: usize = 100;

/// An error or warning about a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// Name of the file, as given.
    pub file: String,
    /// Line, counted from 1; 0 for the whole file.
    pub line: usize,
    /// Column in characters, counted from 1; 0 for the whole line.
    pub column: usize,
    /// JSON pointer (RFC 6901) to the value in a body; empty for the whole body and outside of
    /// JSON.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pointer: String,
    /// Field or option, such as `link.rate`.
    pub field: String,
    /// Reason of the problem.
    pub reason: String,
    /// Remedy; empty if there is none.
    pub remedy: String,
    /// Whether the file violates its schema, rather than having an unsuitable value or name.
    #[serde(skip)]
    pub is_malformed: bool,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file)?;
        for number in [self.line, self.column]
            .iter()
            .filter(|number| **number > 0)
        {
            write!(f, "{number}:")?;
        }
        if !self.field.is_empty() {
            write!(f, " {}:", self.field)?;
        }
        write!(f, " {}", self.reason)?;
        match self.remedy.as_str() {
            "" => Ok(()),
            remedy => write!(f, "; {remedy}"),
        }
    }
}

/// A position in the current file, or a line of another file that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A byte range in the file, or a value in the body.
    Span(Span),
    /// A line in a CSV file: the file's name, as given, and the line number, from 1.
    Row(String, usize),
}

impl From<Span> for Place {
    fn from(span: Span) -> Place {
        Place::Span(span)
    }
}

#[derive(Debug)]
enum Source<'a> {
    /// TOML text. Line offsets are computed on first use.
    Text { text: &'a str, lines: Vec<usize> },
    /// A JSON body.
    Json(JsonSource),
}

/// Collects problems and resolves their positions.
#[derive(Debug)]
pub(super) struct Diagnostics<'a> {
    file: &'a str,
    source: Source<'a>,
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
    more: usize,
    /// Whether problems count as schema violations.
    pub checking_shape: bool,
    /// Whether problems may quote CSV rows: the sender of a change may not be allowed to read the
    /// file.
    pub may_quote_rows: bool,
}

impl<'a> Diagnostics<'a> {
    pub fn new(file: &'a str, text: &'a str) -> Diagnostics<'a> {
        let lines = Vec::new();
        Diagnostics::with(file, Source::Text { text, lines })
    }

    /// Creates a collector for a JSON body.
    pub fn of_json(source: JsonSource) -> Diagnostics<'a> {
        Diagnostics::with(source.file, Source::Json(source))
    }

    fn with(file: &'a str, source: Source<'a>) -> Diagnostics<'a> {
        Diagnostics {
            file,
            source,
            problems: Vec::new(),
            warnings: Vec::new(),
            more: 0,
            checking_shape: false,
            may_quote_rows: true,
        }
    }

    /// Records an error; beyond [`PROBLEMS_MAX`] errors, only counts it.
    pub fn refuse(
        &mut self,
        place: impl Into<Place>,
        field: impl Into<String>,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        if self.problems.len() >= PROBLEMS_MAX {
            self.more += 1;
            return;
        }
        let problem = self.problem(place.into(), field.into(), reason.into(), remedy.into());
        self.problems.push(problem);
    }

    /// Records a warning, unless there are already [`PROBLEMS_MAX`].
    pub fn warn(
        &mut self,
        place: impl Into<Place>,
        field: impl Into<String>,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        if self.warnings.len() < PROBLEMS_MAX {
            let problem = self.problem(place.into(), field.into(), reason.into(), remedy.into());
            self.warnings.push(problem);
        }
    }

    /// Records a warning, unless there is one with the same reason.
    pub fn warn_once(&mut self, place: Place, field: String, reason: String) {
        if self.warnings.iter().all(|known| known.reason != reason) {
            self.warn(place, field, reason, "");
        }
    }

    pub(crate) fn problem(
        &mut self,
        place: Place,
        field: String,
        reason: String,
        remedy: String,
    ) -> Problem {
        if !self.may_quote_rows
            && let Place::Row(file, line) = &place
        {
            return Problem {
                file: file.clone(),
                line: *line,
                field: "csv".to_owned(),
                reason: format!("'{file}', line {line}: not a valid row of links"),
                remedy: "run `longwire check` on a topology that names this file for details"
                    .to_owned(),
                ..Problem::default()
            };
        }
        let mut problem = Problem {
            file: self.file.to_owned(),
            field,
            reason,
            remedy,
            is_malformed: self.checking_shape,
            ..Problem::default()
        };
        match (place, &mut self.source) {
            (Place::Row(file, line), _) => (problem.file, problem.line) = (file, line),
            (Place::Span(span), Source::Json(source)) => {
                problem.pointer = source.pointer(span.start);
            }
            (Place::Span(span), Source::Text { text, lines }) => {
                (problem.line, problem.column) = line_and_column(text, lines, span.start);
            }
        }
        problem
    }

    /// Adds another file's problems.
    pub fn merge(&mut self, other: Diagnostics<'_>) {
        let room = PROBLEMS_MAX.saturating_sub(self.problems.len());
        self.more += other.more + other.problems.len().saturating_sub(room);
        self.problems.extend(other.problems.into_iter().take(room));
        let room = PROBLEMS_MAX.saturating_sub(self.warnings.len());
        self.warnings.extend(other.warnings.into_iter().take(room));
    }

    pub fn has_no_errors(&self) -> bool {
        self.problems.is_empty()
    }

    /// Returns the number of errors so far, including those only counted.
    pub fn refused(&self) -> usize {
        self.problems.len() + self.more
    }

    /// Returns the warnings.
    ///
    /// # Errors
    /// All errors, sorted by position.
    pub fn finish(mut self) -> Result<Vec<Problem>, Vec<Problem>> {
        let by_place = |problem: &Problem| (problem.file.clone(), problem.line, problem.column);
        self.warnings.sort_by_key(by_place);
        if self.problems.is_empty() {
            return Ok(self.warnings);
        }
        self.problems.sort_by_key(by_place);
        if self.more > 0 {
            self.problems.push(Problem {
                file: self.file.to_owned(),
                reason: format!("and {}", count_of(self.more as u64, "more problem")),
                remedy: "fix these first".to_owned(),
                ..Problem::default()
            });
        }
        Err(self.problems)
    }
}

/// Converts a byte offset to a line and column, from 1.
fn line_and_column(text: &str, lines: &mut Vec<usize>, at: usize) -> (usize, usize) {
    if lines.is_empty() {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        lines.push(0);
        lines.extend(ends.map(|(at, _)| at + 1));
    }
    let line = lines.partition_point(|start| *start <= at).max(1);
    let start = lines[line - 1];
    let before = text.get(start..at.min(text.len()));
    (line, before.map_or(0, |before| before.chars().count()) + 1)
}

/// Suggests the closest known name, or lists the known names.
pub(super) fn suggestion<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    // Removed links and paths have empty names.
    let known: Vec<&str> = known.into_iter().filter(|name| !name.is_empty()).collect();
    let state = STATES.iter().find(|(word, _)| *word == text);
    let state = state.map(|(_, state)| *state);
    let meant = state.filter(|state| known.contains(state));
    match meant.or_else(|| closest(text, known.iter().copied())) {
        Some(word) => format!("did you mean '{word}'?"),
        None if known.is_empty() => "none exist".to_owned(),
        None if known.len() <= LISTED_MAX => format!("known: {}", known.join(", ")),
        None => format!("known: {}, …", known[..LISTED_MAX].join(", ")),
    }
}

/// State names that users confuse with directions, and the correct words.
const STATES: [(&str, &str); 2] = [("down", "off"), ("up", "on")];

/// Maximum number of names listed.
const LISTED_MAX: usize = 24;

#[cfg(test)]
mod meant_tests {
    use super::suggestion;

    #[test]
    fn removed_links_are_not_listed() {
        assert_eq!(
            suggestion("nosuch", ["", "adsl1", "adsl2", ""]),
            "known: adsl1, adsl2"
        );
        assert_eq!(suggestion("nosuch", [""]), "none exist");
    }
}
