//! Parses matchers, and derives matchers for the reverse direction.

use longwire_packet::bridge::PortIndex;
use longwire_packet::classify::{KEYS, Matcher, MatcherError};

use super::plan::PortPlan;
use super::problem::suggestion;
use longwire_runtime::suggest::closest;

/// Resolves port names in matchers.
#[derive(Clone, Copy, Debug)]
pub(super) struct PortNames<'a> {
    pub ports: &'a [PortPlan],
    /// The pairs of ports, if every port belongs to a pair.
    pub pairs: Option<&'a [(PortIndex, PortIndex)]>,
}

/// The reason and the remedy.
type MatcherProblem = (String, String);

impl PortNames<'_> {
    /// Parses a matcher in [`Matcher`] syntax, with port names.
    pub fn read(&self, text: &str) -> Result<Matcher, MatcherProblem> {
        const KEY: &str = "in-port=";
        let (fields, filter) = match text.find("filter") {
            Some(at) => text.split_at(at),
            None => (text, ""),
        };
        let mut numbered = String::with_capacity(text.len());
        for (index, part) in fields.split(',').enumerate() {
            if index > 0 {
                numbered.push(',');
            }
            let port = part.trim().strip_prefix(KEY).map(str::trim);
            match port.filter(|port| port.parse::<u16>().is_err()) {
                Some(name) => {
                    let place = self.ports.iter().position(|port| port.name == name);
                    let place = place.ok_or_else(|| self.no_port(name))?;
                    numbered = numbered + KEY + &place.to_string();
                }
                None => numbered.push_str(part),
            }
        }
        numbered.push_str(filter);
        let matcher: Matcher = numbered.parse().map_err(|error: MatcherError| {
            let field = error.field.as_str();
            match closest(field, KEYS).filter(|close| *close != field) {
                Some(close) => {
                    let reason = format!("unknown field '{field}'");
                    (reason, format!("did you mean '{close}'?"))
                }
                None => (
                    error.to_string(),
                    "docs/topology.md lists the fields".to_owned(),
                ),
            }
        })?;
        match matcher.arrival_port {
            Some(PortIndex(port)) if usize::from(port) >= self.ports.len() => {
                Err(self.no_port(&port.to_string()))
            }
            _ => Ok(matcher),
        }
    }

    fn no_port(&self, name: &str) -> MatcherProblem {
        let known = self.ports.iter().map(|port| port.name.as_str());
        (format!("no port named '{name}'"), suggestion(name, known))
    }

    /// Returns the matcher for direction up. Between two ports, a matcher without an address or an
    /// ingress port selects frames from the first port.
    pub fn directed(&self, matcher: Matcher) -> Matcher {
        let names_end = matcher.source.is_some()
            || matcher.destination.is_some()
            || matcher.source_mac.is_some()
            || matcher.destination_mac.is_some()
            || matcher.filter.is_some();
        let arrival_port = match self.pairs {
            Some([(first, _)]) if !names_end => matcher.arrival_port.or(Some(*first)),
            _ => matcher.arrival_port,
        };
        Matcher {
            arrival_port,
            ..matcher
        }
    }

    /// Returns the matcher for direction down: source and destination are swapped, and the ingress
    /// port is replaced by its paired port.
    pub fn back(&self, matcher: &Matcher) -> Result<Matcher, MatcherProblem> {
        let remedy = "write matchers for the reverse direction (down = { match = … } of a link, \
                      match-back of a path), or set shared = true";
        let refused = |reason: &str| (reason.to_owned(), remedy.to_owned());
        if matcher.filter.is_some() {
            return Err(refused("a filter has no reverse"));
        }
        let unpaired = || refused("in-port has no reverse unless ports are paired");
        let partner = |port| self.partner(port).ok_or_else(unpaired);
        let arrival_port = matcher.arrival_port.map(partner).transpose()?;
        let back = Matcher {
            source: matcher.destination,
            destination: matcher.source,
            source_ports: matcher.destination_ports,
            destination_ports: matcher.source_ports,
            source_mac: matcher.destination_mac,
            destination_mac: matcher.source_mac,
            arrival_port,
            ..matcher.clone()
        };
        if back == *matcher {
            let reason = "the matcher is symmetric: its reverse matches the same frames";
            let port = |place: usize| self.ports.get(place).map_or("NAME", |port| &port.name);
            let down = match self.pairs {
                Some(_) => String::new(),
                None => format!(" and down = {{ match = 'in-port={}' }}", port(1)),
            };
            let remedy = format!(
                "add in-port={}, the port where frames in direction up arrive{down}, or set \
                 shared = true",
                port(0)
            );
            return Err((reason.to_owned(), remedy));
        }
        Ok(back)
    }

    fn partner(&self, port: PortIndex) -> Option<PortIndex> {
        let both = self.pairs?.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]);
        both.into_iter().find(|(a, _)| *a == port).map(|(_, b)| b)
    }
}
