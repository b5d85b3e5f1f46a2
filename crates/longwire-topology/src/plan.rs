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

/// A direction of a link or path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// The direction that `match` selects.
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

    /// Returns the suffix of link names.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Up => "up",
            Direction::Down => "down",
        }
    }
}

/// A port of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortPlan {
    /// Name in the file.
    pub name: String,
    /// Port to open, in command-line syntax: `packet:eth1`.
    pub opens: String,
}

/// A port at an interface in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachPlan {
    /// The port.
    pub port: PortIndex,
    /// Namespace of the interface.
    pub target: AttachTarget,
    /// Interface name; `None` for that of the default route.
    pub interface: Option<String>,
    /// Packets that enter the network.
    pub selection: Selection,
    /// Whether the target may be the host's network namespace.
    pub host_network: bool,
}

/// A port whose interface has a carrier unless all links toward it are off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CarrierPlan {
    /// The port.
    pub port: PortIndex,
    /// Patterns of links toward the port, like those of a scenario.
    pub links: Vec<String>,
}

/// A named link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkPlan {
    /// Its name.
    pub name: Arc<str>,
    /// Options of direction up, or of both if shared.
    pub up: Arc<LinkSpec>,
    /// Options of direction down; `None` if both directions share one queue and rate, and if no
    /// frames go down.
    pub down: Option<Arc<LinkSpec>>,
    /// No frames go down.
    pub is_one_way: bool,
}

impl LinkPlan {
    /// Whether it was removed. Its slot stays, since links keep their numbers.
    pub fn is_removed(&self) -> bool {
        self.name.is_empty()
    }
}

/// A link on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Index in [`Topology::links`].
    pub link: u32,
    /// Direction of the link in direction up of the path.
    pub direction: Direction,
}

/// Links crossed in sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPlan {
    /// Its name.
    pub name: Arc<str>,
    /// Links in direction up; each occurs once.
    pub hops: Vec<Hop>,
}

impl PathPlan {
    /// Whether it was removed.
    pub fn is_removed(&self) -> bool {
        self.name.is_empty()
    }

    /// Returns the hops of a direction in order.
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

/// The link or path that frames of a rule take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// One of [`Topology::links`], alone.
    Link(u32),
    /// One of [`Topology::paths`].
    Path(u32),
}

/// Target of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// The link or path.
    pub class: Class,
    /// The direction.
    pub direction: Direction,
}

/// A rule of the classifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulePlan {
    /// Frames that it matches.
    pub matcher: Matcher,
    /// Link or path that they take, with the direction.
    pub target: Target,
}

/// The handling of frames that no rule matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unmatched {
    /// Pass without crossing a link.
    #[default]
    Pass,
    /// Drop.
    Drop,
    /// Cross a link in direction up.
    Link(u32),
}

/// A host of a network that several hosts run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPlan {
    /// Its name.
    pub name: String,
    /// Address at which other hosts reach it.
    pub address: SocketAddr,
    /// Address that it listens on.
    pub listen: SocketAddr,
    /// Ports that it opens.
    pub ports: Vec<PortIndex>,
}

/// The hosts that run a network together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Hosts in file order. The first one is the time master.
    pub hosts: Vec<HostPlan>,
    /// File with the shared key, or why it may not be read. A key passed separately takes
    /// precedence.
    pub key: Option<Result<PathBuf, Box<Problem>>>,
    /// Maximum UDP payload between hosts in bytes.
    pub mtu: u16,
    /// Host index by port.
    pub owners: Vec<usize>,
    /// By link: index of the host that decides directions up and down. `None`: no frame
    /// crosses it.
    pub deciders: Vec<[Option<usize>; 2]>,
}

impl Cluster {
    /// Returns the index of a host.
    pub fn host_named(&self, name: &str) -> Option<usize> {
        self.hosts.iter().position(|host| host.name == name)
    }
}

impl Topology {
    /// Returns everything that affects decisions, as text; hosts compare it with each
    /// other.
    pub fn decisive_text(&self, cluster: &Cluster, seed: u64) -> String {
        use std::fmt::Write;

        let mut text = format!(
            "{seed} {} {:?} {:?} {:?} {:?}\n{:?}\n",
            // A host with a smaller MTU would refuse datagrams of its peers.
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

/// The contents of a file, checked: all names resolve, and all options are valid.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    /// Seed, if the file sets one.
    pub seed: Option<u64>,
    /// Ports, in [`PortIndex`] order.
    pub ports: Vec<PortPlan>,
    /// Ports at interfaces in use.
    pub attached: Vec<AttachPlan>,
    /// Ports whose carrier follows links.
    pub carriers: Vec<CarrierPlan>,
    /// The switch, which selects output ports.
    pub bridge: BridgeConfig,
    /// Links in file order.
    pub links: Vec<LinkPlan>,
    /// Paths.
    pub paths: Vec<PathPlan>,
    /// Rules in file order; direction up before direction down.
    pub rules: Vec<RulePlan>,
    /// Which of several matching rules applies.
    pub order: Order,
    /// Handling of unmatched frames.
    pub unmatched: Unmatched,
    /// Handling of a lost port.
    pub on_port_loss: OnPortLoss,
    /// Hosts, if the network is divided among several.
    pub cluster: Option<Cluster>,
    /// The scenario.
    pub timeline: Timeline,
    /// Number of events replaced by a separate scenario file.
    pub replaced: usize,
    /// Valid values that are probably not meant.
    pub warnings: Vec<Problem>,
    pub(super) names: HashMap<Arc<str>, Class>,
    /// Default options of links added later.
    pub(super) defaults: Duplex,
    pub(super) templates: HashMap<String, Duplex>,
    /// Folder that file names are relative to.
    pub(super) folder: PathBuf,
    /// Files and plugins named by models.
    pub files: Arc<BTreeSet<String>>,
}

impl Topology {
    /// Returns the link or path with a name.
    pub fn named(&self, name: &str) -> Option<Class> {
        self.names.get(name).copied()
    }

    /// Returns the index of the link with a name.
    pub(super) fn link_named(&self, name: &str) -> Option<usize> {
        match self.named(name)? {
            Class::Link(link) => Some(link as usize),
            Class::Path(_) => None,
        }
    }

    /// Returns the name of a link or path.
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
        // A filter is not a list of fields.
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

    /// Returns the carrier plan of a port.
    pub fn carrier_of(&self, port: usize) -> Option<&CarrierPlan> {
        let mut carriers = self.carriers.iter();
        carriers.find(|carrier| usize::from(carrier.port.0) == port)
    }

    /// Returns the index of the port with a name.
    pub fn port_named(&self, name: &str) -> Option<PortIndex> {
        let place = self.ports.iter().position(|port| port.name == name)?;
        Some(PortIndex(place as u16))
    }

    /// Returns the number of engine links: one per shared link, else two.
    pub fn engine_links(&self) -> usize {
        let each = self
            .links
            .iter()
            .map(|link| 1 + usize::from(link.down.is_some()));
        each.sum()
    }
}
