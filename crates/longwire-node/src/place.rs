//! Places at which links are attached, and the topology of links at their interfaces.

use std::collections::BTreeMap;
use std::path::Path;

use longwire_attach::{ContainerName, FoundTarget, PodName, Target};
use longwire_client::node::{AttachmentSpec, DirectionSpec, FailSpec, TargetSpec};
use longwire_engine::presets::Duplex;
use longwire_io::attach::{
    AttachClaim, AttachError, AttachHub, AttachPlace, Direction, Engage, FailMode, PreparedLink,
    Selection, is_device_of_link, prepare,
};
use longwire_io::net::address::Prefix;
use longwire_io::net::grace::ExpeditedGrace;
use longwire_io::net::{NetNamespace, link_names};
use longwire_io::port::registry::Port;
use longwire_packet::filter::Filter;
use longwire_runtime::OnPortLoss;
use longwire_topology::{PairPlan, PortPlan, Problem, Topology};

use crate::LinkFailure;

/// Keyword for all interfaces of a namespace except lo.
pub const ALL: &str = "all";

/// Maximum length of a filter, in bytes. The kernel refuses even shorter filters, but takes seconds
/// to refuse longer ones.
const FILTER_MAX: usize = 16 << 10;

/// Place of an attachment, and the traffic for its links.
#[derive(Clone, Debug)]
pub struct RequestedPlace {
    /// Target of the attachment.
    pub target: Target,
    /// Interface; `None` for that of the default route, [`ALL`] for all Ethernet interfaces.
    pub interface: Option<String>,
    /// Whether the target may share the machine's network.
    pub host_network: bool,
    /// Selected frames.
    pub selection: Selection,
    /// Directions of the link.
    pub direction: Direction,
    /// Priority among the links of the interface ([`AttachPlace`]).
    pub priority: Option<u8>,
    /// Treatment of the traffic after the process has been killed.
    pub fail: FailMode,
}

impl RequestedPlace {
    /// Parses the place in a request.
    ///
    /// # Errors
    /// All problems, with JSON pointers into the request.
    pub fn read(spec: &AttachmentSpec) -> Result<RequestedPlace, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut refuse = |pointer: &str, reason: String| {
            problems.push(Problem {
                file: "attachment".to_owned(),
                pointer: pointer.to_owned(),
                field: pointer.trim_start_matches('/').replace('/', "."),
                reason,
                ..Problem::default()
            });
        };
        let target = target(&spec.target);
        let target = target.map_err(|reason| refuse("/target", reason)).ok();
        let selection = selection(spec, &mut refuse);
        let Some(target) = target.filter(|_| problems.is_empty()) else {
            return Err(problems);
        };
        Ok(RequestedPlace {
            target,
            interface: spec.interface.clone(),
            host_network: spec.host_network,
            selection,
            direction: match spec.direction {
                DirectionSpec::Both => Direction::Both,
                DirectionSpec::Up => Direction::Up,
                DirectionSpec::Down => Direction::Down,
            },
            priority: spec.priority,
            fail: match spec.fail {
                FailSpec::Open => FailMode::Open,
                FailSpec::Closed => FailMode::Closed,
            },
        })
    }

    /// Finds the target.
    ///
    /// # Errors
    /// See [`find`].
    pub fn find(&self) -> Result<FoundTarget, LinkFailure> {
        find(&self.target, self.host_network)
    }

    /// Prepares a link at each interface. `claims` contains the claims of an earlier process by
    /// interface. `sharing` is the number of links that share ring memory, at least the number of
    /// interfaces.
    ///
    /// # Errors
    /// If an interface does not exist, or cannot have a link.
    pub fn prepare(
        &self,
        namespace: &NetNamespace,
        claims: &BTreeMap<String, AttachClaim>,
        sharing: usize,
    ) -> Result<Vec<PreparedLink>, LinkFailure> {
        let prepare = |interface, hub: &AttachHub| {
            let place = AttachPlace {
                namespace,
                interface,
                selection: self.selection.clone(),
                direction: self.direction,
                priority: self.priority,
                fail: self.fail,
                claims,
            };
            prepare(&place, hub)
        };
        let interface = self.interface.as_deref();
        if interface != Some(ALL) {
            return Ok(vec![prepare(interface, &AttachHub::new(sharing)?)?]);
        }
        let names = namespace.run(link_names)??;
        let is_meant = |name: &String| name != "lo" && !is_device_of_link(name);
        let names: Vec<String> = names.into_iter().filter(is_meant).collect();
        let _hurry = ExpeditedGrace::begin();
        let hub = AttachHub::new(names.len().max(sharing))?;
        let prepared = names.iter().map(|name| prepare(Some(name), &hub));
        // Skip the devices that tunnel modules create in every namespace, such as sit0.
        let prepared =
            prepared.filter(|result| !matches!(result, Err(AttachError::NoEthernet { .. })));
        let prepared = prepared.collect::<Result<Vec<PreparedLink>, AttachError>>()?;
        if prepared.is_empty() {
            return Err(LinkFailure::NoInterface);
        }
        Ok(prepared)
    }
}

/// Finds a target, which may share the machine's network only if `host_network` is set.
///
/// # Errors
/// If it does not exist, or is not permitted.
pub fn find(target: &Target, host_network: bool) -> Result<FoundTarget, LinkFailure> {
    let found = target.resolve()?;
    if found.is_host && !host_network {
        return Err(LinkFailure::HostNetwork {
            description: found.description,
        });
    }
    Ok(found)
}

fn target(spec: &TargetSpec) -> Result<Target, String> {
    Ok(match spec {
        // Runtimes may name a namespace by a process, whose PID may be reused later.
        TargetSpec::Netns(path) => match process_of(path) {
            Some(pid) => Target::Pid(pid),
            None => Target::Netns(path.clone()),
        },
        TargetSpec::Pid(pid) => Target::Pid(*pid),
        TargetSpec::Container(name) => {
            let name = name.parse::<ContainerName>();
            Target::Container(name.map_err(|error| error.to_string())?)
        }
        TargetSpec::Pod(name) => {
            Target::Pod(name.parse::<PodName>().map_err(|error| error.to_string())?)
        }
    })
}

/// Returns the PID in a path of the form `/proc/PID/ns/net`.
fn process_of(path: &Path) -> Option<u32> {
    let below = path.strip_prefix("/proc").ok()?.to_str()?;
    below.strip_suffix("/ns/net")?.parse().ok()
}

/// Parses the selection of traffic.
fn selection(spec: &AttachmentSpec, refuse: &mut impl FnMut(&str, String)) -> Selection {
    let mut to: Vec<Prefix> = Vec::new();
    for (position, text) in spec.to.iter().enumerate() {
        match text.parse() {
            Ok(prefix) => to.push(prefix),
            Err(error) => refuse(&format!("/to/{position}"), format!("'{text}': {error}")),
        }
    }
    let filter = spec.filter.as_deref().map(filter).transpose();
    let filter = filter.unwrap_or_else(|reason| {
        refuse("/filter", reason);
        None
    });
    let selection = Selection { to, filter };
    if let Err(error) = selection.check() {
        let at = match error {
            AttachError::TooManyPrefixes => "/to",
            _ => "/filter",
        };
        refuse(at, error.to_string());
    }
    selection
}

fn filter(text: &str) -> Result<Filter, String> {
    if text.len() > FILTER_MAX {
        return Err(format!("the filter is longer than {FILTER_MAX} bytes"));
    }
    text.parse::<Filter>().map_err(|error| error.to_string())
}

/// Splits prepared links into named ports and the parts that engage them later.
pub fn split(prepared: Vec<PreparedLink>) -> (Vec<(String, Port)>, Vec<Engage>) {
    let (mut ports, mut engages) = (Vec::new(), Vec::new());
    for prepared in prepared {
        let [a, b] = port_names(prepared.interface());
        let (engage, inner, outer) = prepared.into_parts();
        ports.extend([(a, inner), (b, outer)]);
        engages.push(engage);
    }
    (ports, engages)
}

/// Returns the names of an interface's two ports: toward its namespace, and toward its wire.
fn port_names(interface: &str) -> [String; 2] {
    [format!("{interface}.inner"), format!("{interface}.outer")]
}

/// Returns a topology with one link per interface.
///
/// # Errors
/// All problems with the scenario or a name.
pub fn topology(
    interfaces: &[String],
    link: Duplex,
    scenario: Option<&Path>,
) -> Result<Topology, Vec<Problem>> {
    let pairs = interfaces.iter().map(|interface| PairPlan {
        link: interface.clone(),
        ports: port_names(interface).map(|name| PortPlan {
            name,
            opens: "null".to_owned(),
        }),
    });
    let mut topology = Topology::pairs(pairs.collect(), link, false, scenario)?;
    // If a port disappears with its namespace, continue and count the frames to it.
    topology.on_port_loss = OnPortLoss::Continue;
    Ok(topology)
}
