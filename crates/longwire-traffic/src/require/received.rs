//! Requirements on a run's receivers.

use super::RequireError;
use super::place::{named, no_such_link};
use crate::receive::{ReceiveRequirement, ReceivedByLink};

/// Prefix of requirements on receivers.
const PREFIX: &str = "received.";

/// Separates the name of a link from a requirement on its receiver.
const BEHIND_LINK: &str = ".received.";

#[derive(Clone, Debug, PartialEq)]
pub(super) struct ReceivedClause {
    /// Text of the clause.
    pub(super) text: String,
    /// Link; `None` means all links.
    link: Option<String>,
    requirement: ReceiveRequirement,
}

impl ReceivedClause {
    /// Parses a clause on receivers: `received.lost=0`, `out1.received.delay.p99<1ms`. Returns
    /// `None` for other clauses.
    ///
    /// # Errors
    /// If no valid requirement follows `received.`.
    pub(super) fn parse(clause: &str) -> Option<Result<ReceivedClause, RequireError>> {
        let (link, condition) = match clause.strip_prefix(PREFIX) {
            Some(condition) => (None, condition),
            None => {
                let (link, condition) = clause.split_once(BEHIND_LINK)?;
                (Some(link.to_owned()), condition)
            }
        };
        let text = clause.to_owned();
        Some(match condition.parse() {
            Ok(requirement) => Ok(ReceivedClause {
                text,
                link,
                requirement,
            }),
            Err(source) => Err(RequireError::Received {
                clause: text,
                source: Box::new(source),
            }),
        })
    }

    /// Returns a sentence for each link that does not meet the requirement.
    pub(super) fn unmet(&self, links: &[&str], received: &ReceivedByLink) -> Vec<String> {
        let about = match &self.link {
            Some(name) => named(name, links),
            None => (0..links.len()).collect(),
        };
        if let (Some(name), true) = (&self.link, about.is_empty()) {
            return vec![no_such_link(&self.text, name, links)];
        }
        let about = about.into_iter().map(|index| links[index]);
        let mut about = about
            .filter_map(|link| Some((link, received.get(link)?)))
            .peekable();
        if about.peek().is_none() {
            return vec![format!("{}: no receiver", self.text)];
        }
        let unmet = about.flat_map(|(link, received)| {
            let said = self.requirement.unmet(received).into_iter();
            said.map(move |said| format!("{link}: {said}"))
        });
        unmet.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receive::{ReceiveReport, TraceReport};

    fn received(lost: u64) -> ReceiveReport {
        ReceiveReport {
            port: "packet:far".to_owned(),
            trace: Some(TraceReport {
                lost,
                behind_last: 1,
                ..TraceReport::default()
            }),
            ..ReceiveReport::default()
        }
    }

    #[test]
    fn a_requirement_applies_to_one_receiver_or_to_all() {
        let links = ["out1", "out2"];
        let all = [("out1", received(0)), ("out2", received(5))];
        let all = all.map(|(name, report)| (name.to_owned(), report)).into();
        let parse = ReceivedClause::parse;
        let unmet = |text| match parse(text) {
            Some(Ok(clause)) => clause.unmet(&links, &all),
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(unmet("out1.received.lost<=1"), Vec::<String>::new());
        assert_eq!(unmet("received.lost<=1"), ["out2: lost<=1: was 6"]);
        assert_eq!(unmet("out3.received.lost<=1").len(), 1);
        assert!(parse("lateness.p99<1us").is_none());
        let refused = parse("received.nonsense=1").and_then(Result::err);
        let refused = refused.map(|error| error.to_string()).unwrap_or_default();
        assert!(refused.contains("known: packets"), "{refused}");
        let clause = parse("received.lost=0").and_then(Result::ok);
        let unmet = clause.map(|clause| clause.unmet(&[""], &ReceivedByLink::new()));
        assert_eq!(unmet.map(|unmet| unmet.len()), Some(1));
    }
}
