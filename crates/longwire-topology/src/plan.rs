//! The plan of a run.

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use longwire_attach::Target as AttachTarget;
use longwire_engine::LinkSpec;
use longwire_engine::presets::Duplex;
use longwire_io::attach::Selection;
use longwire_packet::bridge::{BridgeConfig, PortIndex};
use longwire_packet::classify::{Matcher, Order};
use longwire_runtime::OnPortLoss;

use super::problem::Problem;
use super::timeline::Timeline;
use crate::glob;

/// A direction of a link or path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// The direction of frames that `match` selects.
    Up,
    /// The reverse direction.
    Down,
}

impl Direction {
    /// Returns the opposite direction.
    pub fn reversed(self) -> Direction {
        match self {
            Direction::Up => Direction::Down,
            Direction::Down => Direction::Up,
        }
    }

    /// Returns the suffix used in link names.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Up => "up",
            Direction::Down => "down",
        }
    }
}

/// A port in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortPlan {
    /// Name in the file.
    pub name: String,
    /// Port to open, in command-line syntax: `packet:eth1`.
    pub opens: String,
}

/// A port attached to an interface in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachPlan {
    /// Index of the port.
    pub port: PortIndex,
    /// Namespace that contains the interface.
    pub target: AttachTarget,
    /// Interface name; `None` selects the default route's interface.
    pub interface: Option<String>,
    /// Packets that enter the network.
    pub selection: Selection,
    /// Whether the target may be the host's network namespace.
    pub host_network: bool,
}

/// A port whose interface loses its carrier while all links toward the port are off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CarrierPlan {
    /// Index of the port.
    pub port: PortIndex,
    /// Patterns of links toward the port, in the syntax of a scenario.
    pub links: Vec<String>,
}

/// A named link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkPlan {
    /// Name.
    pub name: Arc<str>,
    /// Options for direction up, or for both directions if shared.
    pub up: Arc<LinkSpec>,
    /// Options for direction down; `None` if both directions share one queue and rate, or direction
    /// down carries no frames.
    pub down: Option<Arc<LinkSpec>>,
    /// Whether direction down carries no frames.
    pub is_one_way: bool,
}

impl LinkPlan {
    /// Returns whether the link was removed. Its slot remains, because indices of links do not
    /// change.
    pub fn is_removed(&self) -> bool {
        self.name.is_empty()
    }
}

/// A link on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Index in [`Topology::links`].
    pub link: u32,
    /// Direction in which the path's direction up crosses the link.
    pub direction: Direction,
}

/// Links crossed in sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPlan {
    /// Name.
    pub name: Arc<str>,
    /// Links in the order of direction up, without duplicates.
    pub hops: Vec<Hop>,
}

impl PathPlan {
    /// Returns whether the path was removed.
    pub fn is_removed(&self) -> bool {
        self.name.is_empty()
    }

    /// Returns the hops in one direction, in order.
    pub fn hops(&self, direction: Direction) -> Vec<Hop> {
        let reversed = |hop: &Hop| Hop {
            link: hop.link,
            direction: hop.direction.reversed(),
        };
        match direction {
            Direction::Up => self.hops.clone(),
            Direction::Down => self.hops.iter().rev().map(reversed).collect(),
        }
    }
}

/// A link or path that a rule selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// A single link in [`Topology::links`].
    Link(u32),
    /// A path in [`Topology::paths`].
    Path(u32),
}

impl Class {
    /// Returns whether this is one of the first `links` links or `paths` paths.
    pub(super) fn is_before(self, links: usize, paths: usize) -> bool {
        match self {
            Class::Link(link) => (link as usize) < links,
            Class::Path(path) => (path as usize) < paths,
        }
    }
}

/// A rule's target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// Link or path.
    pub class: Class,
    /// Direction.
    pub direction: Direction,
}

/// A classifier rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulePlan {
    /// Condition on frames.
    pub matcher: Matcher,
    /// Link or path for matching frames, with the direction.
    pub target: Target,
}

/// Handling of frames that match no rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unmatched {
    /// Forward them without crossing a link.
    #[default]
    Pass,
    /// Drop them.
    Drop,
    /// Send them up this link.
    Link(u32),
}

/// One of several hosts that run a network together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPlan {
    /// Name.
    pub name: String,
    /// Address at which other hosts reach this one.
    pub address: SocketAddr,
    /// Address on which it listens.
    pub listen: SocketAddr,
    /// Ports that it opens.
    pub ports: Vec<PortIndex>,
}

/// Hosts that run a network together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Hosts in file order. The first is the time master.
    pub hosts: Vec<HostPlan>,
    /// File with the shared key, or the problem if it may not be read. A key passed separately
    /// takes precedence.
    pub key: Option<Result<PathBuf, Box<Problem>>>,
    /// Maximum UDP payload between hosts, in bytes.
    pub mtu: u16,
    /// Host index by port.
    pub owners: Vec<usize>,
    /// For each link, indices of the hosts that decide direction up and down. `None` if no frame
    /// crosses the direction.
    pub deciders: Vec<[Option<usize>; 2]>,
}

impl Cluster {
    /// Returns a host's index, by name.
    pub fn host_named(&self, name: &str) -> Option<usize> {
        self.hosts.iter().position(|host| host.name == name)
    }
}

impl Topology {
    /// Formats all settings that affect decisions, for comparison between hosts.
    pub fn decisive_text(&self, cluster: &Cluster, seed: u64) -> String {
        use std::fmt::Write;

        let mut text = format!(
            "{seed} {} {:?} {:?} {:?} {:?}\n{:?}\n",
            // A host with a smaller MTU would reject datagrams sized for a larger one.
            cluster.mtu,
            self.bridge,
            self.order,
            self.unmatched,
            self.paths,
            self.timeline
        );
        for host in &cluster.hosts {
            let _ = writeln!(text, "{} {} {:?}", host.name, host.address, host.ports);
        }
        for port in &self.ports {
            let _ = writeln!(text, "{}", port.name);
        }
        for link in &self.links {
            let down = link.down.as_ref().map(|down| down.given());
            let _ = writeln!(text, "{} {:?} {down:?}", link.name, link.up.given());
        }
        for rule in &self.rules {
            let _ = writeln!(text, "{} {:?}", rule.matcher, rule.target);
        }
        text
    }
}

/// The checked contents of a file: all names resolve, and all options are valid.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    /// Seed, if the file sets one.
    pub seed: Option<u64>,
    /// Ports, in [`PortIndex`] order.
    pub ports: Vec<PortPlan>,
    /// Ports attached to interfaces in use.
    pub attached: Vec<AttachPlan>,
    /// Ports whose carrier follows links.
    pub carriers: Vec<CarrierPlan>,
    /// The switch, which selects egress ports.
    pub bridge: BridgeConfig,
    /// Links in file order.
    pub links: Vec<LinkPlan>,
    /// Paths.
    pub paths: Vec<PathPlan>,
    /// Rules in file order; direction up before direction down.
    pub rules: Vec<RulePlan>,
    /// Rule precedence if several rules match.
    pub order: Order,
    /// Handling of unmatched frames.
    pub unmatched: Unmatched,
    /// Reaction to a lost port.
    pub on_port_loss: OnPortLoss,
    /// The hosts, if several run the network together.
    pub cluster: Option<Cluster>,
    /// The scenario.
    pub timeline: Timeline,
    /// Number of events replaced by a separate scenario file.
    pub replaced: usize,
    /// Warnings about valid values that are probably unintended.
    pub warnings: Vec<Problem>,
    pub(super) names: HashMap<Arc<str>, Class>,
    /// Default options for links added later.
    pub(super) defaults: Duplex,
    pub(super) templates: HashMap<String, Duplex>,
    /// Folder of the file, to which names of CSV and key files are relative.
    pub(super) folder: PathBuf,
    /// Files and plugins named by models.
    pub files: Arc<BTreeSet<String>>,
}

impl Topology {
    /// Returns the link or path with this name.
    pub fn named(&self, name: &str) -> Option<Class> {
        self.names.get(name).copied()
    }

    /// Returns the index of a link, by name.
    pub(super) fn link_named(&self, name: &str) -> Option<usize> {
        match self.named(name)? {
            Class::Link(link) => Some(link as usize),
            Class::Path(_) => None,
        }
    }

    /// Returns the names of all links; those of removed links are empty.
    pub(super) fn link_names(&self) -> impl Iterator<Item = &str> {
        self.links.iter().map(|link| &*link.name)
    }

    /// Returns the links whose names match a pattern, except removed ones.
    pub(super) fn links_fitting(&self, pattern: &str) -> impl Iterator<Item = usize> {
        let fits = |name: &str| !name.is_empty() && glob::fits(pattern, name);
        (0..self.links.len()).filter(move |link| fits(&self.links[*link].name))
    }

    /// Returns a link's or path's name.
    pub fn name_of(&self, class: Class) -> &str {
        match class {
            Class::Link(link) => &self.links[link as usize].name,
            Class::Path(path) => &self.paths[path as usize].name,
        }
    }

    /// Formats a matcher with port names.
    pub fn matcher_in_words(&self, matcher: &Matcher) -> String {
        let text = matcher.to_string();
        let Some(PortIndex(number)) = matcher.arrival_port else {
            return text;
        };
        let Some(port) = self.ports.get(usize::from(number)) else {
            return text;
        };
        let numbered = format!("in-port={number}");
        // Do not split the filter, which is not a list of fields.
        let (fields, filter) = text.split_at(text.find("filter=").unwrap_or(text.len()));
        let fields = fields.split(',').map(|field| {
            if field == numbered {
                format!("in-port={}", port.name)
            } else {
                field.to_owned()
            }
        });
        fields.collect::<Vec<_>>().join(",") + filter
    }

    /// Returns a port's carrier plan.
    pub fn carrier_of(&self, port: usize) -> Option<&CarrierPlan> {
        let mut carriers = self.carriers.iter();
        carriers.find(|carrier| usize::from(carrier.port.0) == port)
    }

    /// Returns a port's index, by name.
    pub fn port_named(&self, name: &str) -> Option<PortIndex> {
        let place = self.ports.iter().position(|port| port.name == name)?;
        Some(PortIndex(place as u16))
    }

    /// Returns the number of engine links: one per shared link, two per link with separate
    /// directions.
    pub fn engine_links(&self) -> usize {
        let shared = self.links.iter().filter(|link| link.down.is_none()).count();
        2 * self.links.len() - shared
    }
}
