//! The network of `longwire exec`, with a host per port.

use std::path::Path;
use std::sync::Arc;

use longwire_engine::LinkSpec;
use longwire_io::port::registry::Port;
use longwire_testbed::{Environment, HOSTS_WITH_ROUTERS, HostConfig, Networks};
use longwire_topology::{PairOptions, Topology};

use super::exec_args::ExecArgs;
use super::exec_commands::NodeCommand;
use super::exec_hosts::Hosts;
use super::topologies;
use crate::report::start::Announcement;
use crate::{Error, Globals};

/// A network with the configurations and commands of its hosts.
pub(super) struct HostedNetwork {
    pub topology: Topology,
    pub announcement: Announcement,
    pub hosts: Hosts,
    pub configs: Vec<HostConfig>,
    pub nodes: Vec<NodeCommand>,
}

/// Reads the network from a file or from one link's options, and the options of its
/// hosts.
///
/// # Errors
/// If the file or an option is invalid.
pub(super) fn read(
    file: Option<&Path>,
    args: &ExecArgs,
    globals: &Globals,
) -> Result<HostedNetwork, Error> {
    let scenario = args.live.scenario.as_deref();
    let (topology, announcement) = match file {
        Some(file) => {
            topologies::refuse_options_of_one_link(&args.live.link, args.carrier)?;
            topologies::read(file, scenario, globals)?
        }
        None => {
            // Placeholders for devices that are opened later.
            let ports = [("near", "null"), ("far", "null")];
            let options = PairOptions {
                carrier: args.carrier,
                ..PairOptions::default()
            };
            topologies::pair(ports, &args.live.link, options, scenario, globals)?
        }
    };
    let hosts = Hosts::new(&topology)?;
    let configs = hosts.configs(&args.hosts, &topology)?;
    let nodes = hosts.commands(args)?;
    Ok(HostedNetwork {
        topology,
        announcement,
        hosts,
        configs,
        nodes,
    })
}

/// Enters the hosts' addresses in the switch, and assigns the links' routers addresses
/// in the hosts' network, unless hosts have other addresses or leave none free.
pub(super) fn place_in(
    networks: &Networks,
    topology: &mut Topology,
    hosts: &Hosts,
    args: &ExecArgs,
) {
    hosts.teach(topology, networks);
    let plan = networks.plan();
    if !args.hosts.address.is_empty() || topology.ports.len() > HOSTS_WITH_ROUTERS {
        return;
    }
    for (number, link) in topology.links.iter_mut().enumerate() {
        for spec in [Some(&mut link.up), link.down.as_mut()]
            .into_iter()
            .flatten()
        {
            let model = spec
                .router
                .as_ref()
                .and_then(|router| router.models().first());
            if let Some(router) = model.map(|model| *model.prototype()) {
                let router = plan.address_router(router, number);
                *spec = Arc::new(LinkSpec::clone(spec).router(router));
            }
        }
    }
}

/// Returns the MTUs of links that have one.
pub(super) fn mtus_of(topology: &Topology) -> impl Iterator<Item = u32> {
    let links = topology.links.iter();
    let directions = links.flat_map(|link| [Some(&link.up), link.down.as_ref()]);
    directions.flatten().filter_map(|spec| spec.mtu_bytes())
}

/// Opens the ports of all hosts, in the order of the topology.
pub(super) fn open_ports(
    environment: &Environment,
    hosts: &Hosts,
    topology: &Topology,
    kind: &str,
) -> Result<Vec<(String, Port)>, Error> {
    let opened = environment.networks().open_all_ports(kind)?;
    let mut ports: Vec<(usize, Port)> = hosts.ports().iter().copied().zip(opened).collect();
    ports.sort_by_key(|(index, _)| *index);
    let named = |(index, port): (usize, Port)| (topology.ports[index].name.clone(), port);
    Ok(ports.into_iter().map(named).collect())
}
