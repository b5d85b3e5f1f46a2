//! `--require`: conditions on a run, as an expression such as
//! `artifacts-own<0.1%,lateness-own.p99<1ms`.
//!
//! Clauses are separated by commas and must all hold. A clause is a name, a
//! comparison and a value; it holds for every link, or for one if a link's name
//! precedes the measure: `up.lateness.p99<50us`, `adsl7.down.drops=0`. The set
//! of links is known when the run has ended. Counts of artifacts and drops are
//! compared with a count or, written with `%`, with a share of the frames.

mod measure;
mod names;
mod received;

use std::str::FromStr;

use longwire_engine::Nanos;
use longwire_runtime::{LinkReport, RunReport, suggest};
use longwire_units::words::percent;
use longwire_units::{UnitError, parse_count};

use self::measure::Measure;
pub use self::measure::frames;
use self::names::{known, named, no_such_link};
use self::received::ReceivedClause;
use crate::receive::{ReceiveRequireError, ReceivedByLink};

/// The recommended line for CI where links carry hundreds of frames: at least 95 % of the
/// frames of each link met the configuration, apart from those that a witnessed pause of the
/// machine or the start of the program made late, and none was lost. A test that never used
/// its link has no artifacts, and must not pass. Below 100 frames, use a count instead of the
/// share (docs/ci.md).
pub const RECOMMENDED: &str = "artifacts-lost=0,artifacts-own<5%,packets_in>0";

/// Conditions that a run must meet.
#[derive(Clone, Debug)]
pub struct Requirement {
    clauses: Vec<Clause>,
    received: Vec<ReceivedClause>,
}

/// One condition.
#[derive(Clone, Debug)]
struct Clause {
    /// The clause as it was written.
    text: String,
    /// The link; `None` is every link.
    link: Option<String>,
    measure: Measure,
    comparison: Comparator,
    value: Value,
}

/// The value with which a measure is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    /// In nanoseconds for times, else a count.
    Plain(u64),
    /// A share of the frames: 1 is all of them.
    Share(f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparator {
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

/// The error of a requirement that is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum RequireError {
    #[error("nothing is required; write for example {RECOMMENDED}")]
    Empty,
    #[error("'{text}' has an empty condition; remove the comma next to it")]
    EmptyClause { text: String },
    #[error("'{clause}' compares nothing; write a name, one of < <= = >= > and a value")]
    NoComparison { clause: String },
    #[error("'{name}' is not known; {}`longwire exec --help` has all names", nearest(.name, .known))]
    UnknownName { name: String, known: String },
    #[error("'{clause}': {source}")]
    Value { clause: String, source: UnitError },
    #[error("'{clause}': '{value}' is no count; write a count, as in 5, or a share, as in 0.1%")]
    Count { clause: String, value: String },
    #[error("'{clause}': '{value}' is not a share; write a number and %, as in 0.1%")]
    Share { clause: String, value: String },
    #[error("'{clause}': only artifacts and drops are compared with a share of the frames")]
    NotShared { clause: String },
    #[error("'{clause}' is about the whole run, not about one link; leave '{link}.' out")]
    OfRun { clause: String, link: String },
    #[error("'{clause}': {source}")]
    Received {
        clause: String,
        source: ReceiveRequireError,
    },
}

/// Returns a question with the known names that are closest to a name, if any are close.
fn nearest(name: &str, known: &str) -> String {
    const SHOWN: usize = 3;
    match suggest::nearest(name, known.split(", "), SHOWN).as_slice() {
        [] => String::new(),
        names => format!("did you mean {}? ", suggest::either(names)),
    }
}

impl FromStr for Requirement {
    type Err = RequireError;

    fn from_str(text: &str) -> Result<Requirement, RequireError> {
        if text.split(',').all(|clause| clause.trim().is_empty()) {
            return Err(RequireError::Empty);
        }
        let clauses = text.split(',').map(str::trim);
        let mut required = Requirement {
            clauses: Vec::new(),
            received: Vec::new(),
        };
        for clause in clauses {
            if clause.is_empty() {
                return Err(RequireError::EmptyClause {
                    text: text.to_owned(),
                });
            }
            match ReceivedClause::parse(clause) {
                Some(received) => required.received.push(received?),
                None => required.clauses.push(clause.parse()?),
            }
        }
        Ok(required)
    }
}

impl FromStr for Clause {
    type Err = RequireError;

    fn from_str(text: &str) -> Result<Clause, RequireError> {
        let missing = || RequireError::NoComparison {
            clause: text.to_owned(),
        };
        let at = text.find(['<', '>', '=']).ok_or_else(missing)?;
        let (name, rest) = text.split_at(at);
        let (sign, comparison) = COMPARISONS
            .into_iter()
            .find(|(sign, _)| rest.starts_with(sign))
            .ok_or_else(missing)?;
        let (link, measure) = parse_name(name.trim())?;
        if let (Some(link), true) = (&link, measure.is_of_run()) {
            return Err(RequireError::OfRun {
                clause: text.to_owned(),
                link: link.clone(),
            });
        }
        let value = parse_value(text, &measure, rest[sign.len()..].trim())?;
        Ok(Clause {
            text: text.to_owned(),
            link,
            measure,
            comparison,
            value,
        })
    }
}

/// Parses the value of a clause, in the unit of its measure.
fn parse_value(clause: &str, measure: &Measure, text: &str) -> Result<Value, RequireError> {
    if let Some(number) = text.strip_suffix('%') {
        if !measure.is_shared() {
            return Err(RequireError::NotShared {
                clause: clause.to_owned(),
            });
        }
        let percent: Option<f64> = number.trim().parse().ok();
        let percent = percent.filter(|percent| percent.is_finite() && *percent >= 0.0);
        return match percent {
            Some(percent) => Ok(Value::Share(percent / 100.0)),
            None => Err(RequireError::Share {
                clause: clause.to_owned(),
                value: text.to_owned(),
            }),
        };
    }
    let value = if measure.is_time() {
        text.parse().map(Nanos::as_nanos)
    } else {
        parse_count(text)
    };
    value.map(Value::Plain).map_err(|source| {
        let clause = clause.to_owned();
        // A fraction of a count is probably a share.
        if measure.is_shared() && text.parse::<f64>().is_ok_and(|value| value >= 0.0) {
            RequireError::Count {
                clause,
                value: text.to_owned(),
            }
        } else {
            RequireError::Value { clause, source }
        }
    })
}

/// Splits a name into its link, if there is one, and its measure. A link's name
/// may have dots: the longest suffix that is a measure is taken.
fn parse_name(name: &str) -> Result<(Option<String>, Measure), RequireError> {
    let unknown = match measure::parse(name) {
        Ok(measure) => return Ok((None, measure)),
        Err(unknown) => unknown,
    };
    let mut nearest = None;
    for (at, _) in name.match_indices('.') {
        let (link, rest) = (&name[..at], &name[at + 1..]);
        match measure::parse(rest) {
            Ok(measure) if !link.is_empty() => return Ok((Some(link.to_owned()), measure)),
            Err(error) if measure::is_family(rest) => nearest = Some(error),
            _ => {}
        }
    }
    // In `ac.down.drops.lost`, the reason of drops is wrong, not the link.
    Err(if measure::is_family(name) {
        unknown
    } else {
        nearest.unwrap_or(unknown)
    })
}

impl Requirement {
    /// Returns a sentence for each clause that names an unknown link. For a
    /// network whose links are fixed, before its run.
    pub fn unknown<'a>(&self, names: impl Iterator<Item = &'a str>) -> Vec<String> {
        let links = names.map(|name| LinkReport {
            name: name.to_owned(),
            ..LinkReport::default()
        });
        let links: Vec<LinkReport> = links.collect();
        let clauses = self.clauses.iter();
        let unknown = clauses.filter_map(|clause| {
            let name = clause.link.as_ref()?;
            let is_unknown = named(name, &links).is_empty();
            let known = || known(name, &links, "are");
            is_unknown.then(|| format!("{}: there is no link '{name}'; {}", clause.text, known()))
        });
        unknown.collect()
    }

    /// Returns the clauses that limit times of frames to less than this.
    pub fn bounds_below(&self, least: Nanos) -> Vec<&str> {
        let is_finer = |clause: &&Clause| {
            let limits = !matches!(
                clause.comparison,
                Comparator::Greater | Comparator::GreaterOrEqual
            );
            let below = matches!(clause.value, Value::Plain(value) if value < least.as_nanos());
            limits && below && clause.measure.is_of_clocks()
        };
        let finer = self.clauses.iter().filter(is_finer);
        finer.map(|clause| clause.text.as_str()).collect()
    }

    /// Returns a sentence for each clause and link that the run did not meet; of
    /// receivers, see [`Requirement::unmet_by_receivers`].
    pub fn unmet(&self, report: &RunReport) -> Vec<String> {
        let mut unmet = Vec::new();
        for clause in &self.clauses {
            if let Some(found) = clause.measure.of_run(report) {
                unmet.extend(clause.unmet_by(found, "the run"));
                continue;
            }
            match &clause.link {
                None => {
                    // Of a network only the ports' lateness is measured, and the links' drops.
                    let links = report.links.iter();
                    let links = links.filter(|link| clause.measure.is_measured(link));
                    unmet.extend(links.filter_map(|link| clause.unmet(link)));
                }
                Some(name) => {
                    let links = named(name, &report.links);
                    if links.is_empty() {
                        unmet.push(no_such_link(&clause.text, name, &report.links));
                    }
                    unmet.extend(links.into_iter().filter_map(|link| clause.unmet(link)));
                }
            }
        }
        unmet
    }

    /// Returns a sentence for each requirement on receivers that they did not meet.
    pub fn unmet_by_receivers(
        &self,
        links: &[LinkReport],
        received: &ReceivedByLink,
    ) -> Vec<String> {
        let clauses = self.received.iter();
        clauses
            .flat_map(|clause| clause.unmet(links, received))
            .collect()
    }
}

impl Clause {
    fn unmet(&self, link: &LinkReport) -> Option<String> {
        let name = &link.name;
        match self.measure.of(link) {
            Some(found) => match self.value {
                Value::Plain(_) => self.unmet_by(found, name),
                Value::Share(wanted) => self.unmet_share(found, wanted, link),
            },
            None if self.measure.is_measured(link) => {
                Some(format!("{}: {name} has no send stamps", self.text))
            }
            None if self.measure.is_of_links() => Some(format!(
                "{}: of a network's ports no drops and other effects of models are counted, only \
                 of its links: name a link in place of {name}",
                self.text
            )),
            None => Some(format!(
                "{}: of a network's links no lateness is measured, only of its ports: name the \
                 port at which {name}'s frames leave",
                self.text
            )),
        }
    }

    fn unmet_by(&self, found: f64, subject: &str) -> Option<String> {
        let Value::Plain(wanted) = self.value else {
            return None;
        };
        if self.comparison.holds(found, wanted as f64) {
            return None;
        }
        let found = self.measure.show(found);
        Some(format!("{}: {subject} had {found}", self.text))
    }

    fn unmet_share(&self, count: f64, wanted: f64, link: &LinkReport) -> Option<String> {
        let frames = measure::frames(link);
        // If no frame was counted, any artifact exceeds every share.
        let share = count / (frames as f64).max(1.0);
        if self.comparison.holds(share, wanted) {
            return None;
        }
        Some(format!(
            "{}: {} had {}, {count} of {frames} frames",
            self.text,
            link.name,
            percent(share)
        ))
    }
}

impl Comparator {
    fn holds(self, found: f64, wanted: f64) -> bool {
        match self {
            Comparator::Less => found < wanted,
            Comparator::LessOrEqual => found <= wanted,
            Comparator::Equal => found == wanted,
            Comparator::GreaterOrEqual => found >= wanted,
            Comparator::Greater => found > wanted,
        }
    }
}

#[cfg(test)]
mod tests;
