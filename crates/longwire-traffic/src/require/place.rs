//! Places in a report, to which requirements and verdicts refer.

use std::borrow::Cow;

use longwire_runtime::counters::{NamedCounts, Traffic};
use longwire_runtime::deciding::PortReport;
use longwire_runtime::report::PeerReport;
use longwire_runtime::{Artifact, LinkReport, RunReport, suggest};

/// A place where frames or artifacts are counted.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a> {
    /// A port.
    Port(&'a PortReport),
    /// One direction of a link.
    Link(&'a LinkReport),
    /// The exchange with another host.
    Host(&'a PeerReport),
    /// The recording of a run.
    Recording(&'a RunReport),
}

impl<'a> Place<'a> {
    /// Returns the places at which artifacts are counted: ports or, in a report without ports,
    /// links.
    pub fn measured(report: &'a RunReport) -> Vec<Place<'a>> {
        let ports = report.ports.iter().map(Place::Port);
        let links = report.links.iter().map(Place::Link);
        let links = links.filter(|_| report.ports.is_empty());
        let peers = report.hosts.iter().flat_map(|hosts| &hosts.peers);
        let hosts = peers.map(Place::Host);
        let hosts = hosts.filter(|host| host.artifacts().total() > 0);
        let recording = (report.counts.unrecorded > 0).then_some(Place::Recording(report));
        ports.chain(links).chain(hosts).chain(recording).collect()
    }

    /// Returns the name used in requirements and verdicts.
    pub fn name(&self) -> Cow<'a, str> {
        match self {
            Place::Port(port) => Cow::Borrowed(&port.name),
            Place::Link(link) => Cow::Borrowed(&link.name),
            Place::Host(peer) => format!("host {}", peer.name).into(),
            Place::Recording(_) => "recording".into(),
        }
    }

    /// Returns the artifacts of the place by kind.
    pub fn artifacts(&self) -> Cow<'a, NamedCounts> {
        match self {
            Place::Port(port) => Cow::Borrowed(&port.artifacts),
            // A network counts artifacts at its ports, except for late handovers, which its links
            // count.
            Place::Link(link) if link.artifacts.is_empty() => {
                let late = (Artifact::Late.name(), link.handovers.late);
                let overload = (Artifact::Overload.name(), link.handovers.overload);
                Cow::Owned([late, overload].into())
            }
            Place::Link(link) => Cow::Borrowed(&link.artifacts),
            Place::Host(peer) => Cow::Owned(peer.artifacts()),
            Place::Recording(run) => {
                Cow::Owned([(Artifact::Unrecorded.name(), run.counts.unrecorded)].into())
            }
        }
    }

    /// Whether this place counts artifacts of a kind, or of all kinds. Links of a network count
    /// only late handovers.
    pub(super) fn counts_artifacts(&self, kind: Option<Artifact>) -> bool {
        match self {
            Place::Link(link) if link.artifacts.is_empty() => {
                matches!(kind, Some(Artifact::Late | Artifact::Overload))
            }
            _ => true,
        }
    }

    /// Returns the number of artifacts of these kinds.
    pub fn count(&self, chosen: impl Fn(Artifact) -> bool) -> u64 {
        let artifacts = self.artifacts();
        let kinds = Artifact::ALL.into_iter().filter(|kind| chosen(*kind));
        kinds.map(|kind| artifacts.of(kind.name())).sum()
    }

    /// Returns the frames and bytes of the place.
    pub fn traffic(&self) -> Traffic {
        match self {
            Place::Port(port) => port.traffic,
            Place::Link(link) => link.traffic,
            Place::Host(peer) => Traffic {
                packets_in: peer.frames_received + peer.artifacts().total(),
                packets_out: peer.frames_received,
                ..Traffic::default()
            },
            Place::Recording(run) => Traffic {
                packets_in: run.ports.iter().map(|port| port.traffic.packets_in).sum(),
                ..Traffic::default()
            },
        }
    }

    /// Returns the number of frames to which shares refer: those that entered or left, whichever is
    /// larger, plus those lost by an ingress port.
    pub fn frames(&self) -> u64 {
        let lost = |kind| matches!(kind, Artifact::RingFull | Artifact::TooLong);
        let traffic = self.traffic();
        traffic.packets_in.max(traffic.packets_out) + self.count(lost)
    }

    /// Returns the link, if the place is one.
    pub(super) fn link(&self) -> Option<&'a LinkReport> {
        match self {
            Place::Link(link) => Some(link),
            _ => None,
        }
    }
}

/// Parses a direction: `up` or `ab`, `down` or `ba`.
fn direction(name: &str) -> Option<&'static str> {
    match name {
        "up" | "ab" => Some("up"),
        "down" | "ba" => Some("down"),
        _ => None,
    }
}

/// Strips the direction from a name; `None` if it has none.
fn without_direction(name: &str) -> Option<&str> {
    let (link, way) = name.rsplit_once('.')?;
    matches!(way, "up" | "down").then_some(link)
}

/// Returns the indices of the places selected by a name: an exact name, a direction of the only
/// link, or a link with two directions.
pub(super) fn named(name: &str, names: &[&str]) -> Vec<usize> {
    let chosen = |is: &dyn Fn(&str) -> bool| -> Vec<usize> {
        (0..names.len()).filter(|index| is(names[*index])).collect()
    };
    let found = chosen(&|known| known == name);
    if !found.is_empty() {
        return found;
    }
    let Some(way) = direction(name) else {
        return chosen(&|known| without_direction(known) == Some(name));
    };
    let mut directions = names.iter().filter_map(|known| without_direction(known));
    let Some(only) = directions.next() else {
        return Vec::new();
    };
    if directions.any(|other| other != only) {
        return Vec::new();
    }
    let wanted = format!("{only}.{way}");
    chosen(&|known| known == wanted)
}

/// Maximum number of names listed.
const LISTED_MAX: usize = 12;

/// Returns an error that lists the existing links.
pub(super) fn no_such_link(clause: &str, name: &str, names: &[&str]) -> String {
    let known = known(name, names, "were");
    format!("{clause}: no link named '{name}'; {known}")
}

/// Returns a similar name or, after "there `are`", the existing links.
pub(super) fn known(name: &str, names: &[&str], are: &str) -> String {
    match suggest::closest(name, names.iter().copied()) {
        Some(close) => format!("did you mean '{close}'?"),
        None if names.is_empty() => format!("there {are} none"),
        None => {
            let listed: Vec<&str> = names.iter().take(LISTED_MAX).copied().collect();
            let more = match names.len().saturating_sub(LISTED_MAX) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("there {are} {}{more}", listed.join(", "))
        }
    }
}
