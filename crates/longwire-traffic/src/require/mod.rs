//! `--require`: requirements on a run, such as `artifacts-own<0.1%,lateness-own.p99<1ms`.
//!
//! All clauses, separated by commas, must hold. A clause is a [grade](Grade), or a name, a
//! comparison and a value. Artifacts and lateness are measured at ports, frames and drops on links.
//! A prefix selects one port or link: `far.lateness.p99<50us`, `adsl7.down.drops=0`; whether it
//! exists may be known only at the end of the run. Artifacts and drops are compared with a count
//! or, with `%`, with a share of the frames.

pub(crate) mod grammar;
mod measure;
mod place;
mod received;

use std::str::FromStr;

use longwire_engine::Nanos;
pub use longwire_runtime::Grade;
use longwire_runtime::RunReport;
use longwire_units::parse_count;
use longwire_units::words::percent;

pub use self::grammar::RequireError;
use self::grammar::{Comparator, SplitClause};
use self::measure::Measure;
pub use self::place::Place;
use self::place::{known, named, no_such_link};
use self::received::ReceivedClause;
use crate::receive::ReceivedByLink;

/// Recommended for CI: the run is at least nearly faithful (decision 0055), and each link carried a
/// frame. Without the second clause, a test that never used its link would pass, because it has no
/// artifacts.
pub const RECOMMENDED: &str = "nearly-faithful,packets_in>0";

/// Properties of a run that determine which measures it has besides those of its links and ports.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunKind {
    /// Whether its links are known in advance, because clients cannot add any.
    pub is_fixed: bool,
    /// Whether it sends a feed, so that departures are measured.
    pub replays: bool,
    /// Whether it has receivers.
    pub receives: bool,
}

/// A conjunction of requirements on a run.
#[derive(Clone, Debug)]
pub struct Requirement {
    grades: Vec<Grade>,
    clauses: Vec<Clause>,
    received: Vec<ReceivedClause>,
}

#[derive(Clone, Debug)]
struct Clause {
    /// Text of the clause.
    text: String,
    /// Link or port; `None` means all that have the measure.
    place: Option<String>,
    measure: Measure,
    comparison: Comparator,
    value: Value,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    /// Nanoseconds for times, otherwise a count.
    Plain(u64),
    /// A share of the frames, 0 to 1.
    Share(f64),
}

impl FromStr for Requirement {
    type Err = RequireError;

    fn from_str(text: &str) -> Result<Requirement, RequireError> {
        let mut required = Requirement {
            grades: Vec::new(),
            clauses: Vec::new(),
            received: Vec::new(),
        };
        for clause in grammar::clauses(text, RECOMMENDED)? {
            if let Some(grade) = Grade::named(clause) {
                required.grades.push(grade);
                continue;
            }
            if let Some(close) = Grade::nearest(clause) {
                return Err(RequireError::UnknownGrade {
                    name: clause.to_owned(),
                    close: close.name(),
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
        let split = SplitClause::of(text)?;
        let (place, measure) = parse_name(split.name)?;
        if let (Some(place), true) = (&place, measure.is_of_run()) {
            return Err(RequireError::OfRun {
                clause: text.to_owned(),
                link: place.clone(),
            });
        }
        let value = parse_value(text, &measure, split.value)?;
        Ok(Clause {
            text: text.to_owned(),
            place,
            measure,
            comparison: split.comparison,
            value,
        })
    }
}

/// Parses the value of a clause, in the unit of its measure.
fn parse_value(clause: &str, measure: &Measure, text: &str) -> Result<Value, RequireError> {
    if let Some(number) = text.strip_suffix('%') {
        if !measure.is_shared() {
            return Err(RequireError::NotShared(clause.to_owned()));
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
        // A fraction was probably intended as a share.
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

/// Splits a name into an optional place and a measure. Names of links may contain dots, so the
/// longest suffix that is a measure applies.
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
    // In `ac.down.drops.lost`, the unknown part is the drop reason, not the link.
    Err(if measure::is_family(name) {
        unknown
    } else {
        nearest.unwrap_or(unknown)
    })
}

impl Requirement {
    /// Returns a sentence for each clause that no run with these ports and links can meet, because
    /// it names an unknown place or a measure that the run does not have.
    pub fn unmeetable(&self, ports: &[&str], links: &[&str], kind: RunKind) -> Vec<String> {
        let names = [ports, links].concat();
        let clauses = self.clauses.iter().filter_map(|clause| {
            let why = clause.unmeetable(&names, ports.len(), kind)?;
            Some(format!("{}: {why}", clause.text))
        });
        let received = self.received.iter().filter(|_| !kind.receives);
        let received = received.map(|clause| format!("{}: no receiver", clause.text));
        clauses.chain(received).collect()
    }

    /// Returns the clauses that require frame times below `least`.
    pub fn bounds_below(&self, least: Nanos) -> Vec<&str> {
        let is_finer = |clause: &&Clause| {
            let below = matches!(clause.value, Value::Plain(value) if value < least.as_nanos());
            clause.comparison.is_maximum() && below && clause.measure.is_of_clocks()
        };
        let finer = self.clauses.iter().filter(is_finer);
        finer.map(|clause| clause.text.as_str()).collect()
    }

    /// Whether a clause requires a better grade than `grade`.
    pub fn misses(&self, grade: Grade) -> bool {
        self.grades.iter().any(|wanted| !wanted.is_met_by(grade))
    }

    /// Returns a sentence for each clause and each place at which the run, with this grade, did not
    /// meet the clause. For receivers, see [`Requirement::unmet_by_receivers`].
    pub fn unmet(&self, report: &RunReport, grade: Grade) -> Vec<String> {
        let wanted = self.grades.iter().filter(|wanted| !wanted.is_met_by(grade));
        let wanted = wanted.map(|wanted| {
            let wanted = wanted.name();
            match grade {
                Grade::NoFrames => format!("{wanted}: the run had no frames"),
                found => format!("{wanted}: the run was {}", found.name()),
            }
        });
        let mut unmet: Vec<String> = wanted.collect();
        let links: Vec<Place<'_>> = report.links.iter().map(Place::Link).collect();
        let measured = Place::measured(report);
        for clause in &self.clauses {
            if let Some(found) = clause.measure.of_run(report) {
                unmet.extend(clause.unmet_by(found, 0, "the run"));
                continue;
            }
            // The outputs of a replay are both links and ports, with equal names.
            let (first, others) = if clause.measure.is_at_ports() {
                (&measured, &links)
            } else {
                (&links, &measured)
            };
            let Some(name) = &clause.place else {
                unmet.extend(first.iter().filter_map(|place| clause.unmet(place)));
                continue;
            };
            let is_new = |place: &&Place<'_>| first.iter().all(|one| one.name() != place.name());
            let all: Vec<&Place<'_>> = first.iter().chain(others.iter().filter(is_new)).collect();
            let names: Vec<String> = all.iter().map(|place| place.name().into_owned()).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let found = named(name, &names);
            if found.is_empty() {
                unmet.push(no_such_link(&clause.text, name, &names));
            }
            let places = found.into_iter().map(|index| all[index]);
            unmet.extend(places.filter_map(|place| clause.unmet(place)));
        }
        unmet
    }

    /// Returns a sentence for each unmet requirement on receivers.
    pub fn unmet_by_receivers(&self, report: &RunReport, received: &ReceivedByLink) -> Vec<String> {
        let names: Vec<&str> = report.links.iter().map(|link| link.name.as_str()).collect();
        let clauses = self.received.iter();
        clauses
            .flat_map(|clause| clause.unmet(&names, received))
            .collect()
    }
}

impl Clause {
    /// Returns the reason why no run can meet the clause, if there is one. The first `ports` names
    /// are those of ports.
    fn unmeetable(&self, names: &[&str], ports: usize, kind: RunKind) -> Option<String> {
        match self.measure.times() {
            Some("gap") if !kind.replays => {
                return Some("only replays measure gaps".to_owned());
            }
            Some("sent") if !kind.replays => {
                return Some("only replays take send stamps".to_owned());
            }
            _ => {}
        }
        let name = self.place.as_ref()?;
        let found = named(name, names);
        if found.is_empty() {
            let known = known(name, names, "are");
            return kind
                .is_fixed
                .then(|| format!("no link named '{name}'; {known}"));
        }
        let is_port = !kind.replays && found.iter().all(|index| *index < ports);
        (is_port && !self.measure.is_at_ports() && !self.measure.is_of_traffic()).then(|| {
            format!("ports count no drops or model effects; name a link instead of {name}")
        })
    }

    fn unmet(&self, place: &Place<'_>) -> Option<String> {
        let name = place.name();
        if let Some(found) = self.measure.of(place) {
            return self.unmet_by(found, place.frames(), &name);
        }
        let why = match self.measure.times() {
            Some("sent") => format!("{name} has no send stamps"),
            Some("gap") => format!("{name} has no gaps; only replays measure them"),
            _ if self.measure.is_at_ports() => {
                format!(
                    "artifacts and lateness are counted at ports; name the output port of {name}"
                )
            }
            _ => format!("ports count no drops or model effects; name a link instead of {name}"),
        };
        Some(format!("{}: {why}", self.text))
    }

    /// Compares a value with its bound, or its share of `frames`.
    fn unmet_by(&self, found: f64, frames: u64, subject: &str) -> Option<String> {
        // Without counted frames, any artifact exceeds every share.
        let share = found / (frames as f64).max(1.0);
        let (holds, shown) = match self.value {
            Value::Plain(wanted) => {
                let holds = self.comparison.holds(found, wanted as f64);
                (holds, self.measure.show(found))
            }
            Value::Share(wanted) => {
                let shown = format!("{}, {found} of {frames} frames", percent(share));
                (self.comparison.holds(share, wanted), shown)
            }
        };
        (!holds).then(|| format!("{}: {subject} had {shown}", self.text))
    }
}

#[cfg(test)]
mod tests;
