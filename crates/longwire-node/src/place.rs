//! Interfaces of a place, and the topology of links in them.

use std::collections::BTreeMap;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use longwire_engine::presets::Duplex;
use longwire_io::attach::{
    AttachClaim, AttachError, AttachHub, AttachPlace, Attachment, Direction, Engage, FailMode,
    PreparedLink, Selection, is_device_of_link, prepare,
};
use longwire_io::net::grace::ExpeditedGrace;
use longwire_io::net::{NetNamespace, link_names};
use longwire_io::port::registry::Port;
use longwire_runtime::{OnPortLoss, RunReport};
use longwire_topology::{PairPlan, PortPlan, Problem, Topology};

use crate::LinkFailure;

/// Word for all interfaces of a namespace but lo.
pub const ALL: &str = "all";

/// Traffic of an interface that a link takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Selected frames.
    pub selection: Selection,
    /// Directions.
    pub direction: Direction,
    /// Priority among the links of the interface ([`AttachPlace`]).
    pub priority: Option<u8>,
    /// Fate of the traffic after the process is killed.
    pub fail: FailMode,
    /// Claims of an earlier process by interface.
    pub claims: BTreeMap<String, AttachClaim>,
    /// Number of links that share the memory of rings; 0 for the number of interfaces.
    pub sharing: usize,
}

/// Prepares a link in each named interface: one, that of the default route, or [`ALL`] Ethernet
/// interfaces.
///
/// # Errors
/// If an interface does not exist, or takes no link.
pub fn prepare_all(
    namespace: &NetNamespace,
    interface: Option<&str>,
    part: &Part,
) -> Result<Vec<PreparedLink>, LinkFailure> {
    let prepare = |interface, hub: &AttachHub| {
        let place = AttachPlace {
            namespace,
            interface,
            selection: part.selection.clone(),
            direction: part.direction,
            priority: part.priority,
            fail: part.fail,
            claims: &part.claims,
        };
        prepare(&place, hub)
    };
    if interface != Some(ALL) {
        return Ok(vec![prepare(interface, &AttachHub::new(part.sharing)?)?]);
    }
    let names = namespace.run(link_names)??;
    let is_meant = |name: &String| name != "lo" && !is_device_of_link(name);
    let names: Vec<String> = names.into_iter().filter(is_meant).collect();
    let _hurry = ExpeditedGrace::begin();
    let hub = AttachHub::new(names.len().max(part.sharing))?;
    let prepared = names.iter().map(|name| prepare(Some(name), &hub));
    // Tunnel modules create a device in every namespace, such as sit0.
    let prepared = prepared.filter(|result| !matches!(result, Err(AttachError::NoEthernet { .. })));
    let prepared = prepared.collect::<Result<Vec<PreparedLink>, AttachError>>()?;
    if prepared.is_empty() {
        return Err(LinkFailure::NoInterface);
    }
    Ok(prepared)
}

/// Longest time between the loss of a link's device and that of its interface while their namespace
/// is removed.
const REMOVAL: Duration = Duration::from_secs(1);

/// Removes lost ports from a report if their namespace is gone, and with it the interfaces of all
/// links. Waits up to a second. Returns whether it removed ports.
pub fn forgive_lost_ports(run: &mut RunReport, attached: &[Attachment]) -> bool {
    if run.ports.iter().all(|port| port.lost.is_none()) {
        return false;
    }
    let since = Instant::now();
    while attached.iter().any(Attachment::is_attached) {
        if since.elapsed() > REMOVAL {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
    run.ports.iter_mut().for_each(|port| port.lost = None);
    true
}

/// Splits prepared links into ports by name, and what engages them later.
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

/// Returns the ports of an interface: towards its namespace, and towards its wire.
fn port_names(interface: &str) -> [String; 2] {
    [format!("{interface}.inner"), format!("{interface}.outer")]
}

/// Returns the topology with one link per interface.
///
/// # Errors
/// Problems of the scenario or of a name.
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
    let mut topology = Topology::pairs(pairs.collect(), link, scenario)?;
    // Frames to a port that is lost with its namespace are counted.
    topology.on_port_loss = OnPortLoss::Continue;
    Ok(topology)
}
