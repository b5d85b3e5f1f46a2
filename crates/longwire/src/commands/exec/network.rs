//! The network of `longwire exec`: its hosts, one per port, and their options.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use clap::Args;
use longwire_engine::LinkSpec;
use longwire_io::net::address::Prefix;
use longwire_io::port::registry::Port;
use longwire_packet::bridge::{PortIndex, StaticEntry, Switching};
use longwire_testbed::{Environment, HOSTS_MAX, HOSTS_WITH_ROUTERS, HostConfig, Networks};
use longwire_topology::{PairOptions, Topology};

use super::args::ExecArgs;
use super::commands::NodeCommand;
use crate::commands::topologies;
use crate::report::start::Announcement;
use crate::table::joined;
use crate::{Error, Globals};

/// A network, with the configuration and commands of its hosts.
pub(super) struct HostedNetwork {
    pub topology: Topology,
    pub announcement: Announcement,
    pub hosts: Hosts,
    pub nodes: Vec<NodeCommand>,
}

/// Reads the network from a file or from link options, and reads host options.
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
            // Placeholders; the devices are opened later.
            let ports = [("near", "null"), ("far", "null")];
            let options = PairOptions {
                carrier: args.carrier,
                ..PairOptions::default()
            };
            topologies::pair(ports, &args.live.link, options, scenario, globals)?
        }
    };
    let hosts = Hosts::new(&args.hosts, &topology)?;
    let nodes = hosts.commands(args)?;
    Ok(HostedNetwork {
        topology,
        announcement,
        hosts,
        nodes,
    })
}

/// Adds the hosts' addresses to the switch. Gives the links' routers addresses in the hosts'
/// network, unless hosts have other addresses or no address is free.
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
        for spec in std::iter::once(&mut link.up).chain(&mut link.down) {
            let router = spec.router.as_ref();
            let model = router.and_then(|router| router.models().first());
            if let Some(router) = model.map(|model| *model.prototype()) {
                *spec = Arc::new(LinkSpec::clone(spec).router(plan.address_router(router, number)));
            }
        }
    }
}

/// Returns the MTUs of all links that have one.
pub(super) fn mtus_of(topology: &Topology) -> impl Iterator<Item = u32> {
    let links = topology.links.iter();
    let directions = links.flat_map(|link| std::iter::once(&link.up).chain(&link.down));
    directions.filter_map(|spec| spec.mtu_bytes())
}

/// Opens the ports of all hosts, in topology order.
pub(super) fn open_ports(
    environment: &Environment,
    hosts: &Hosts,
    topology: &Topology,
    kind: &str,
) -> Result<Vec<(String, Port)>, Error> {
    let opened = environment.networks().open_all_ports(kind)?;
    let mut ports: Vec<(usize, Port)> = hosts.ports.iter().copied().zip(opened).collect();
    ports.sort_by_key(|(index, _)| *index);
    let named = |(index, port): (usize, Port)| (topology.ports[index].name.clone(), port);
    Ok(ports.into_iter().map(named).collect())
}

/// Commands and addresses of hosts.
#[derive(Debug, Args)]
#[command(next_help_heading = "Commands")]
pub struct HostArgs {
    /// Shell command for the host at a port of FILE.toml; CMD starts once it listens, or after
    /// --peer-wait. Repeatable
    #[arg(long, value_name = "PORT=COMMAND", requires = "command", value_parser = parse_node)]
    pub node: Vec<(String, String)>,

    /// Address of the host at a port of FILE.toml, instead of the default addresses. Repeatable
    #[arg(long, value_name = "PORT=ADDRESS/LENGTH", conflicts_with = "uplink")]
    #[arg(value_parser = parse_address)]
    pub address: Vec<(String, Prefix)>,
}

impl HostArgs {
    /// Returns whether any of these options is given.
    pub fn is_given(&self) -> bool {
        !self.node.is_empty() || !self.address.is_empty()
    }
}

fn parse_node(text: &str) -> Result<(String, String), String> {
    const EXAMPLE: &str = "core=iperf3 -s";
    let (port, command) = split(text, EXAMPLE)?;
    if command.trim().is_empty() {
        return Err(format!("no command; write '{EXAMPLE}'"));
    }
    Ok((port.to_owned(), command.to_owned()))
}

fn parse_address(text: &str) -> Result<(String, Prefix), String> {
    const EXAMPLE: &str = "core=10.2.0.1/24";
    let (port, address) = split(text, EXAMPLE)?;
    let refused = || format!("not an address with prefix length; write {EXAMPLE}");
    let (address, length) = address.split_once('/').ok_or_else(refused)?;
    let address: IpAddr = address.parse().map_err(|_| refused())?;
    let length: u8 = length.parse().map_err(|_| refused())?;
    let length_max = if address.is_ipv4() { 32 } else { 128 };
    if length > length_max {
        return Err(format!("prefix length above {length_max}"));
    }
    Ok((port.to_owned(), Prefix { address, length }))
}

fn split<'a>(text: &'a str, example: &str) -> Result<(&'a str, &'a str), String> {
    let split = text.split_once('=').filter(|(port, _)| !port.is_empty());
    split.ok_or_else(|| format!("no port before '='; write {example}"))
}

/// Hosts of a topology, in environment order: near, far, then the others in file order.
pub(super) struct Hosts {
    /// Port index in the file, per host.
    ports: Vec<usize>,
    /// Names and addresses.
    pub configs: Vec<HostConfig>,
}

impl Hosts {
    /// Selects near and far: the ports with these names, or else the first two.
    ///
    /// # Errors
    /// If there are fewer than two ports, or more ports than addresses; if an option names an
    /// unknown port, or repeats an address.
    pub fn new(args: &HostArgs, topology: &Topology) -> Result<Hosts, Error> {
        let names: Vec<&str> = topology.ports.iter().map(|port| &*port.name).collect();
        let count = names.len();
        if !(2..=HOSTS_MAX).contains(&count) {
            return Err(Error::usage(format!(
                "exec needs 2 to {HOSTS_MAX} ports, one per host; the file has {count}; use \
                 `longwire run` instead"
            )));
        }
        let named = |wanted: &str| names.iter().position(|name| *name == wanted);
        let near = named("near").unwrap_or(usize::from(names[0] == "far"));
        let far = named("far").unwrap_or(usize::from(near == 0));
        let others = (0..count).filter(|port| ![near, far].contains(port));
        let ports: Vec<usize> = [near, far].into_iter().chain(others).collect();
        let config = |port: &usize| HostConfig {
            name: names[*port].to_owned(),
            addresses: Vec::new(),
            carrier: topology.carrier_of(*port).is_some(),
        };
        let configs = ports.iter().map(config).collect();
        let mut hosts = Hosts { ports, configs };
        for (port, address) in &args.address {
            let host = hosts.of_port("--address", port)?;
            let mut given = hosts.configs.iter().flat_map(|host| &host.addresses);
            let ip = address.address;
            if given.any(|other| other.address == ip) {
                return Err(Error::usage(format!("--address: {ip} is given twice")));
            }
            hosts.configs[host].addresses.push(*address);
        }
        Ok(hosts)
    }

    fn of_port(&self, option: &str, port: &str) -> Result<usize, Error> {
        let names: Vec<&str> = self.configs.iter().map(|host| &*host.name).collect();
        names.iter().position(|name| *name == port).ok_or_else(|| {
            let known = names.join(", ");
            Error::usage(format!(
                "{option}: no port named '{port}'; ports are {known}"
            ))
        })
    }

    /// Returns the commands of hosts other than near.
    ///
    /// # Errors
    /// If an option names an unknown port, or one that already has a command.
    pub fn commands(&self, args: &ExecArgs) -> Result<Vec<NodeCommand>, Error> {
        let mut commands: Vec<NodeCommand> = Vec::new();
        for (port, command) in &args.hosts.node {
            let host = self.of_port("--node", port)?;
            let of_peer = host == 1 && args.peer.peer.is_some();
            if host == 0 || of_peer || commands.iter().any(|other| other.host == host) {
                let reason = match host {
                    0 => "is near, where CMD runs",
                    1 if of_peer => "is far, which runs the command of --peer",
                    _ => "already has a command",
                };
                return Err(Error::usage(format!("--node: port {port} {reason}")));
            }
            commands.push(NodeCommand {
                host,
                name: port.clone(),
                command: OsString::from(command),
            });
        }
        Ok(commands)
    }

    /// Adds the hosts' MAC addresses to the switch. Without them, the switch would flood the first
    /// frames to each host, because hosts do not resolve each other's addresses.
    pub fn teach(&self, topology: &mut Topology, networks: &Networks) {
        let bridge = &mut topology.bridge;
        let known = bridge.statics.len() + self.ports.len();
        if matches!(bridge.switching, Switching::Pairs(_)) || known > bridge.table_max as usize {
            return;
        }
        for (host, port) in self.ports.iter().enumerate() {
            let mac = networks.mac(host);
            if !bridge.statics.iter().any(|entry| entry.mac == mac) {
                bridge.statics.push(StaticEntry {
                    vlan: 0,
                    mac,
                    port: PortIndex(*port as u16),
                });
            }
        }
    }

    /// Returns a note that names the ports used as near and far, unless the ports have these names.
    pub fn note(&self, topology: &Topology) -> Option<String> {
        let [near, far] = [&self.configs[0].name, &self.configs[1].name];
        if (near.as_str(), far.as_str()) == ("near", "far") {
            return None;
        }
        let mut opens = topology.ports.iter().map(|port| &*port.opens);
        let last = opens.next_back().unwrap_or_default();
        let others = joined(opens, ", ");
        Some(format!(
            "port {near} is near, port {far} is far; not opening {others} and {last}"
        ))
    }
}
