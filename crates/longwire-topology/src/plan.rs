//! The plan that a run is built from.

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

/// A direction of a link or of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Way {
    /// The one that `match` is about.
    Up,
    /// The way back.
    Down,
}

impl Way {
    /// The other one.
    pub fn reversed(self) -> Way {
        match self {
            Way::Up => Way::Down,
            Way::Down => Way::Up,
        }
    }

    /// As it is written behind a link's name.
    pub fn name(self) -> &'static str {
        match self {
            Way::Up => "up",
            Way::Down => "down",
        }
    }
}

/// A port of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortPlan {
    /// Its name in the file.
    pub name: String,
    /// The port to open, as on the command line: `packet:eth1`.
    pub opens: String,
}

/// A port at an interface that is in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachPlan {
    /// The port.
    pub port: PortIndex,
    /// The namespace of the interface.
    pub target: AttachTarget,
    /// Its name; `None` for that of the default route.
    pub interface: Option<String>,
    /// The packets that enter the network.
    pub selection: Selection,
    /// Whether the target may be in the network of the machine.
    pub host_network: bool,
}

/// A port whose interface has a carrier while a link toward it is not down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CarrierPlan {
    /// The port.
    pub port: PortIndex,
    /// Names of the links toward it, as in a scenario: `*` and `?` stand for characters,
    /// `.up` or `.down` for one direction.
    pub links: Vec<String>,
}

/// A named link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkPlan {
    /// Its name.
    pub name: Arc<str>,
    /// Options of the direction up, or of both where they share one link.
    pub up: Arc<LinkSpec>,
    /// Options of the direction down; `None` where both directions share the
    /// queue and the rate of one link.
    pub down: Option<Arc<LinkSpec>>,
}

impl LinkPlan {
    /// Whether it was removed: its place stays, for links keep their numbers.
    pub fn is_gone(&self) -> bool {
        self.name.is_empty()
    }
}

/// A link that is crossed on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The index in [`Topology::links`].
    pub link: u32,
    /// Its direction, on the way up the path.
    pub way: Way,
}

/// Links that are crossed one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPlan {
    /// Its name.
    pub name: Arc<str>,
    /// The links in the order of the direction up. No link is in it twice.
    pub hops: Vec<Hop>,
}

impl PathPlan {
    /// Whether it was removed.
    pub fn is_gone(&self) -> bool {
        self.name.is_empty()
    }

    /// The links of one direction in the order in which they are crossed.
    pub fn hops(&self, way: Way) -> Vec<Hop> {
        let reversed = |hop: &Hop| Hop {
            link: hop.link,
            way: hop.way.reversed(),
        };
        match way {
            Way::Up => self.hops.clone(),
            Way::Down => self.hops.iter().rev().map(reversed).collect(),
        }
    }
}

/// A link or a path, which frames of a rule cross.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// One of [`Topology::links`], alone.
    Link(u32),
    /// One of [`Topology::paths`].
    Path(u32),
}

/// The link or path of a rule, and the direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// The link or path.
    pub class: Class,
    /// The direction.
    pub way: Way,
}

/// A rule of the classifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulePlan {
    /// The frames that it matches.
    pub matcher: Matcher,
    /// The link or path that they cross.
    pub target: Target,
}

/// The handling of frames that no rule matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unmatched {
    /// They leave at once, as if there were no links.
    #[default]
    Pass,
    /// They are dropped.
    Drop,
    /// They cross a link upwards.
    Link(u32),
}

/// A machine that runs a part of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPlan {
    /// Its name.
    pub name: String,
    /// Where the other hosts reach it.
    pub address: SocketAddr,
    /// Where it receives.
    pub listen: SocketAddr,
    /// The ports that it opens.
    pub ports: Vec<PortIndex>,
}

/// The machines that run a network together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// The hosts, in the order of the file. The first gives the others the time.
    pub hosts: Vec<HostPlan>,
    /// The file with the key that all hosts share, or why it may not be read. A key from
    /// elsewhere takes its place.
    pub key: Option<Result<PathBuf, Box<Problem>>>,
    /// The longest UDP payload between hosts, in bytes.
    pub mtu: u16,
    /// By port: the index of its host.
    pub owners: Vec<usize>,
    /// By link: the index of the host that decides about its direction up, and about its
    /// direction down. `None`: no frame crosses it.
    pub deciders: Vec<[Option<usize>; 2]>,
}

impl Cluster {
    /// Returns the index of a host.
    pub fn host_named(&self, name: &str) -> Option<usize> {
        self.hosts.iter().position(|host| host.name == name)
    }
}

impl Topology {
    /// Returns everything that decides about frames on several hosts, as text: they compare
    /// it, with the seed.
    pub fn decisive_text(&self, cluster: &Cluster, seed: u64) -> String {
        use std::fmt::Write;

        let mut text = format!(
            "{seed} {} {:?} {:?} {:?} {:?}\n{:?}\n",
            // A host with a smaller one would refuse the datagrams of the others.
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

/// A file's contents, checked: all names are known, all options right.
#[derive(Clone, Debug)]
pub struct Topology {
    /// The seed, if the file gives one.
    pub seed: Option<u64>,
    /// The ports; a [`PortIndex`] counts in this order.
    pub ports: Vec<PortPlan>,
    /// Those of the ports that are at interfaces in use.
    pub attached: Vec<AttachPlan>,
    /// The ports whose carriers follow links.
    pub carriers: Vec<CarrierPlan>,
    /// The switch, which selects the output port of a frame.
    pub bridge: BridgeConfig,
    /// The links in the order of the file.
    pub links: Vec<LinkPlan>,
    /// The paths of more than one link.
    pub paths: Vec<PathPlan>,
    /// The rules in the order of the file, each link's or path's direction
    /// down after its direction up.
    pub rules: Vec<RulePlan>,
    /// The rule that counts when several match.
    pub order: Order,
    /// Frames without a rule.
    pub unmatched: Unmatched,
    /// The handling of a lost port.
    pub on_port_loss: OnPortLoss,
    /// The machines that run it together, if it is divided among several.
    pub cluster: Option<Cluster>,
    /// The scenario.
    pub timeline: Timeline,
    /// The number of events of the file that are replaced by those of a scenario in a
    /// separate file.
    pub replaced: usize,
    /// Valid values that are probably not meant.
    pub warnings: Vec<Problem>,
    pub(super) names: HashMap<Arc<str>, Class>,
    /// The options under those of links that are added later.
    pub(super) defaults: Duplex,
    pub(super) templates: HashMap<String, Duplex>,
    /// The folder of files that it names.
    pub(super) folder: PathBuf,
    /// The files and plugins that its models name.
    pub files: Arc<BTreeSet<String>>,
}

impl Topology {
    /// The link or path of a name.
    pub fn named(&self, name: &str) -> Option<Class> {
        self.names.get(name).copied()
    }

    /// The name of a link or path.
    pub fn name_of(&self, class: Class) -> &str {
        match class {
            Class::Link(link) => &self.links[link as usize].name,
            Class::Path(path) => &self.paths[path as usize].name,
        }
    }

    /// A matcher as it is written, with the name of its port.
    pub fn matcher_in_words(&self, matcher: &Matcher) -> String {
        let text = matcher.to_string();
        let Some(PortIndex(number)) = matcher.arrival_port else {
            return text;
        };
        let Some(port) = self.ports.get(usize::from(number)) else {
            return text;
        };
        let numbered = format!("in-port={number}");
        // A filter has a separate language.
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

    /// Returns the carrier of a port that follows links.
    pub fn carrier_of(&self, port: usize) -> Option<&CarrierPlan> {
        let mut carriers = self.carriers.iter();
        carriers.find(|carrier| usize::from(carrier.port.0) == port)
    }

    /// The number of the port of a name.
    pub fn port_named(&self, name: &str) -> Option<PortIndex> {
        let place = self.ports.iter().position(|port| port.name == name)?;
        Some(PortIndex(place as u16))
    }

    /// Returns the number of engine links: two for each but shared ones.
    pub fn engine_links(&self) -> usize {
        let each = self
            .links
            .iter()
            .map(|link| 1 + usize::from(link.down.is_some()));
        each.sum()
    }
}
