//! What is wrong with a file, and where.

use std::fmt;
use std::ops::Range;

use serde::Serialize;

/// How many problems are kept, so that a file with a million bad lines does
/// not fill memory with complaints; the rest are counted.
pub const PROBLEMS_MAX: usize = 100;

/// Something wrong, or doubtful, in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The file, as it was named.
    pub file: String,
    /// From 1; 0 when it is about the file as a whole.
    pub line: usize,
    /// In characters, from 1; 0 when it is about the line as a whole.
    pub column: usize,
    /// What was being set, as in `link.rate`.
    pub field: String,
    /// What is wrong.
    pub reason: String,
    /// What to do.
    pub remedy: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem {
            file, line, column, ..
        } = self;
        write!(f, "{file}:")?;
        if *line > 0 {
            write!(f, "{line}:")?;
        }
        if *column > 0 {
            write!(f, "{column}:")?;
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

/// A place in the file that is being read: bytes of it, or a line of another
/// file that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Bytes of the file.
    Span(Range<usize>),
    /// A line of a CSV file.
    Row {
        /// The file, as it was named.
        file: String,
        /// From 1.
        line: usize,
    },
}

impl From<Range<usize>> for Place {
    fn from(span: Range<usize>) -> Place {
        Place::Span(span)
    }
}

/// The problems found so far, and what is needed to say where they are.
#[derive(Debug)]
pub(super) struct Complaints<'a> {
    file: &'a str,
    text: &'a str,
    /// Where lines begin; found when first needed.
    lines: Vec<usize>,
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
    more: usize,
    /// Whether problems in rows of another file tell nothing of what is in
    /// them.
    rows_unquoted: bool,
}

impl<'a> Complaints<'a> {
    pub fn new(file: &'a str, text: &'a str) -> Complaints<'a> {
        Complaints {
            file,
            text,
            lines: Vec::new(),
            problems: Vec::new(),
            warnings: Vec::new(),
            more: 0,
            rows_unquoted: false,
        }
    }

    /// From here on, problems in rows of another file name only its line: who
    /// named the file may not be allowed to read it.
    pub fn quote_no_rows(&mut self) {
        self.rows_unquoted = true;
    }

    /// Notes a reason to refuse the file.
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

    /// Notes something that is allowed and probably not meant.
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

    fn problem(&mut self, place: Place, field: String, reason: String, remedy: String) -> Problem {
        if self.rows_unquoted
            && let Place::Row { file, line } = &place
        {
            return Problem {
                file: file.clone(),
                line: *line,
                column: 0,
                field: "csv".to_owned(),
                reason: format!("'{file}', line {line}: not a row of links"),
                remedy: "`longwire check` of a topology that names this file tells more".to_owned(),
            };
        }
        let (file, line, column) = match place {
            Place::Span(span) => {
                let (line, column) = self.line_and_column(span.start);
                (self.file.to_owned(), line, column)
            }
            Place::Row { file, line } => (file, line, 0),
        };
        Problem {
            file,
            line,
            column,
            field,
            reason,
            remedy,
        }
    }

    fn line_and_column(&mut self, at: usize) -> (usize, usize) {
        if self.lines.is_empty() {
            let ends = self
                .text
                .bytes()
                .enumerate()
                .filter(|(_, byte)| *byte == b'\n');
            self.lines = std::iter::once(0)
                .chain(ends.map(|(at, _)| at + 1))
                .collect();
        }
        let line = self.lines.partition_point(|start| *start <= at).max(1);
        let start = self.lines[line - 1];
        let before = self.text.get(start..at.min(self.text.len()));
        (line, before.map_or(0, |before| before.chars().count()) + 1)
    }

    /// Adds what was found in another file.
    pub fn join(&mut self, other: Complaints<'_>) {
        let room = PROBLEMS_MAX.saturating_sub(self.problems.len());
        self.more += other.more + other.problems.len().saturating_sub(room);
        self.problems.extend(other.problems.into_iter().take(room));
        let room = PROBLEMS_MAX.saturating_sub(self.warnings.len());
        self.warnings.extend(other.warnings.into_iter().take(room));
    }

    /// Whether nothing was refused.
    pub fn is_fine(&self) -> bool {
        self.problems.is_empty()
    }

    /// All warnings of a good file, or what is wrong with it.
    ///
    /// # Errors
    /// The problems by their place.
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
                line: 0,
                column: 0,
                field: String::new(),
                reason: format!("there are {} more problems", self.more),
                remedy: "mend these first".to_owned(),
            });
        }
        Err(self.problems)
    }
}

/// `; did you mean 'rate'?`, or what there is.
pub(super) fn meant<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    // A longer text is no misspelt name, and to compare it takes long.
    let likely = known.iter().filter(|_| text.len() <= MEANT_MAX);
    let close = likely
        .map(|word| (distance(text, word), *word))
        .min_by_key(|(distance, _)| *distance);
    match close {
        Some((distance, word)) if distance <= 1 + text.len() / 4 => {
            format!("did you mean '{word}'?")
        }
        _ if known.is_empty() => "there are none".to_owned(),
        _ if known.len() <= LISTED_MAX => format!("there are {}", known.join(", ")),
        _ => format!("there are {}, …", known[..LISTED_MAX].join(", ")),
    }
}

/// The longest text, in bytes, that is taken to be a misspelt name.
const MEANT_MAX: usize = 256;

/// How many names a message lists.
const LISTED_MAX: usize = 24;

/// How many letters must be put in, taken out, changed, or swapped with the
/// next one (the optimal string alignment distance).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > 1 + a.len() / 4 {
        return usize::MAX;
    }
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let changed = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = changed.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}
