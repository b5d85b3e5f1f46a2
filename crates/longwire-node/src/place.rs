//! The interfaces of a place, and the topology of links in them.

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

/// The word for all interfaces of a namespace but lo.
pub const ALL: &str = "all";

/// The part of an interface's traffic that a link is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The frames.
    pub selection: Selection,
    /// The directions.
    pub direction: Direction,
    /// The place among other links of the interface ([`AttachPlace`]).
    pub priority: Option<u8>,
    /// The fate of the traffic when the process is killed.
    pub fail: FailMode,
    /// The claims of an earlier process, by the names of their interfaces.
    pub claims: BTreeMap<String, AttachClaim>,
    /// The number of links among which the memory of rings is divided; 0 for those of the
    /// interfaces.
    pub sharing: usize,
}

/// Prepares a link in each interface that is named: one, that of the default route, or
/// [`ALL`] with an Ethernet header.
///
/// # Errors
/// If an interface does not exist, or no link can be attached to it.
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
    // Modules of tunnels make a device in every namespace, such as sit0.
    let prepared = prepared.filter(|result| !matches!(result, Err(AttachError::NoEthernet { .. })));
    let prepared = prepared.collect::<Result<Vec<PreparedLink>, AttachError>>()?;
    if prepared.is_empty() {
        return Err(LinkFailure::NoInterface);
    }
    Ok(prepared)
}

/// Time from the loss of a device of a link until its interface is gone as well, if both
/// are in a namespace that is being removed.
const REMOVAL: Duration = Duration::from_secs(1);

/// Takes the loss of ports out of a report if they were lost with their namespace, and the
/// interfaces of all links with them. It waits a moment for the interfaces. Returns whether
/// there was such a loss.
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

/// Takes prepared links apart: their ports by name, and the rest, which takes frames later.
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

/// Returns the names of the ports of an interface: towards its namespace, and towards its
/// wire.
fn port_names(interface: &str) -> [String; 2] {
    [format!("{interface}.inner"), format!("{interface}.outer")]
}

/// Returns the topology of one link in each of these interfaces.
///
/// # Errors
/// What is wrong in the scenario, or with a name.
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
    // So that frames for a port that is lost with its namespace are counted.
    topology.on_port_loss = OnPortLoss::Continue;
    Ok(topology)
}
