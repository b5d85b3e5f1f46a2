//! `[[host]]` and `[underlay]`: hosts that run a network together.
//!
//! Each link is decided by the host at whose ports its frames enter, so that no frame waits for
//! another host's decision. Files that make this impossible are rejected
//! ([`docs/decisions/0046-hosts.md`]).
//!
//! [`docs/decisions/0046-hosts.md`]: ../../../docs/decisions/0046-hosts.md

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use longwire_packet::bridge::{PortIndex, Switching};

use super::builder::{Builder, check_name};
use super::fields::HOSTS_MAX;
use super::plan::{
    Class, Cluster, Direction, Hop, HostPlan, PathPlan, RulePlan, Topology, Unmatched,
};
use super::problem::Diagnostics;
use super::switching;
use super::timeline::Action;
use super::tree::{self, Placed};
use super::value::{Span, Table};

/// Default UDP port.
const PORT_DEFAULT: u16 = 4795;

/// Default maximum UDP payload in bytes.
const MTU_DEFAULT: u64 = 1400;

/// Remedy for mixed address families: a socket supports only one.
const ONE_FAMILY: &str = "use either IPv4 or IPv6 for all hosts";

/// Reads the hosts and assigns each link direction to one. Returns `None` without hosts, or if they
/// are rejected.
pub(super) fn read(file: &Table<'_>, builder: &mut Builder) -> Option<Cluster> {
    let items = tree::tables(file, "host");
    let underlay = tree::table(file, "underlay");
    if items.is_empty() {
        if let (Some(_), Some(value)) = (underlay, file.get("underlay")) {
            let reason = "[underlay] is given without hosts";
            let remedy = "write a [[host]] table for each machine, or remove [underlay]";
            builder.refuse(value.span.clone(), "underlay", reason, remedy);
        }
        return None;
    }
    let mut reader = HostReader::new(builder);
    for item in &items {
        reader.host(item, builder);
    }
    let span = items[0].span.clone();
    let (hosts, owners) = reader.finish(span.clone(), &mut builder.diagnostics)?;
    if hosts.len() > HOSTS_MAX {
        let reason = format!("{} hosts exceed the maximum of {HOSTS_MAX}", hosts.len());
        let remedy = "remove some";
        builder.refuse(span, "host", reason, remedy);
        return None;
    }
    let is_divided = owners.iter().any(|owner| *owner != owners[0]);
    if is_divided {
        refuse_common_state(file, span, builder)?;
    }
    let mut placement = Placement {
        hosts: &hosts,
        owners: &owners,
        deciders: vec![[None; 2]; builder.topology.links.len()],
        targets: targets(&builder.topology),
    };
    if is_divided {
        placement.place_all(builder)?;
    } else {
        placement.deciders.fill([owners.first().copied(); 2]);
    }
    let deciders = placement.deciders;
    let key = underlay.and_then(|table| tree::text(table, "key"));
    let key = key.map(|key| {
        let access = builder.store.files.access();
        access.check(Path::new(key.value)).map_err(|error| {
            let (field, reason) = ("underlay.key", format!("'{}': {error}", key.value));
            let diagnostics = &mut builder.diagnostics;
            let (place, remedy) = (key.span.into(), "send the key".to_owned());
            Box::new(diagnostics.problem(place, field.to_owned(), reason, remedy))
        })?;
        Ok(builder.topology.folder.join(key.value))
    });
    let whole = |name| underlay.and_then(|table| tree::whole(table, name));
    Some(Cluster {
        key,
        mtu: whole("mtu").unwrap_or(MTU_DEFAULT) as u16,
        hosts,
        owners,
        deciders,
    })
}

/// Rejects state that would be shared by frames on several hosts.
fn refuse_common_state(file: &Table<'_>, span: Span, builder: &mut Builder) -> Option<()> {
    if builder.topology.bridge.switching == Switching::Bridge {
        let reason = "a learning bridge cannot span hosts: each host sees only its own frames";
        let remedy = "write mode = \"static\" with stations, or mode = \"pairs\"";
        builder.refuse(span, "switching.mode", reason, remedy);
        return None;
    }
    if let Unmatched::Link(_) = builder.topology.unmatched {
        let reason = "unmatched frames of several hosts would share a link";
        let remedy = "give the link a match with in-port, and set unmatched to pass or drop";
        let value = file.get("unmatched");
        let span = value.map_or(span, |value| value.span.clone());
        builder.refuse(span, "unmatched", reason, remedy);
        return None;
    }
    Some(())
}

/// Returns, for each class, the classes to which the scenario moves its frames.
fn targets(topology: &Topology) -> HashMap<Class, Vec<Class>> {
    let mut targets: HashMap<Class, Vec<Class>> = HashMap::new();
    for action in topology.timeline.actions() {
        if let Action::Move { class, to, .. } = action
            && let (Some(class), Some(to)) = (topology.named(class), topology.named(to))
        {
            targets.entry(class).or_default().push(to);
        }
    }
    targets
}

struct HostReader {
    hosts: Vec<HostPlan>,
    /// Index of each port's host.
    owners: Vec<Option<usize>>,
    /// Number of errors before hosts were read.
    refused: usize,
}

impl HostReader {
    fn new(builder: &Builder) -> HostReader {
        HostReader {
            hosts: Vec::new(),
            owners: vec![None; builder.topology.ports.len()],
            refused: builder.diagnostics.refused(),
        }
    }

    fn host(&mut self, item: &Placed<&Table<'_>>, builder: &mut Builder) {
        let table = item.value;
        let diagnostics = &mut builder.diagnostics;
        let Some(name) = tree::text(table, "name").filter(|name| !name.value.is_empty()) else {
            let reason = "the host has no name";
            let remedy = "write name = \"…\"";
            return diagnostics.refuse(item.span.clone(), "host.name", reason, remedy);
        };
        if !check_name(&name, "host.name", diagnostics) {
            return;
        }
        if self.hosts.iter().any(|host| host.name == name.value) {
            let reason = format!("two hosts are named '{}'", name.value);
            return diagnostics.refuse(name.span, "host.name", reason, "give each a unique name");
        }
        let Some((address, listen)) = self.addresses(item, name.value, diagnostics) else {
            return;
        };
        let index = self.hosts.len();
        let mut ports = Vec::new();
        for port in tree::texts(table, "ports") {
            if let Some(port) = self.port(index, &port, builder) {
                ports.push(port);
            }
        }
        if ports.is_empty() && builder.diagnostics.refused() == self.refused {
            let reason = format!("host '{}' has no ports", name.value);
            let remedy = "write ports = [\"left\"], or remove the host";
            builder.refuse(item.span.clone(), "host.ports", reason, remedy);
        }
        self.hosts.push(HostPlan {
            name: name.value.to_owned(),
            address,
            listen,
            ports,
        });
    }

    /// Reads the public and the listening address; returns `None` if the public address is
    /// rejected.
    fn addresses(
        &self,
        item: &Placed<&Table<'_>>,
        name: &str,
        diagnostics: &mut Diagnostics,
    ) -> Option<(SocketAddr, SocketAddr)> {
        let table = item.value;
        let Some(written) = tree::text(table, "address") else {
            let reason = format!("host '{name}' has no address");
            let remedy = "write address = \"192.0.2.1\"";
            diagnostics.refuse(item.span.clone(), "host.address", reason, remedy);
            return None;
        };
        let address = read_address(&written, "host.address", diagnostics)?;
        if let Some(reason) = unreachable_reason(address) {
            let remedy = "write the address and UDP port where other hosts reach this one";
            diagnostics.refuse(written.span, "host.address", reason, remedy);
            return None;
        }
        if self.hosts.iter().any(|host| host.address == address) {
            let reason = format!("{address} is also the address of another host");
            let remedy = "give each host its own address, or its own UDP port";
            diagnostics.refuse(written.span, "host.address", reason, remedy);
            return None;
        }
        if let Some(first) = self.hosts.first()
            && first.address.is_ipv4() != address.is_ipv4()
        {
            let (other, name) = (first.address, &first.name);
            let reason = format!("{address} cannot reach {other}, host '{name}'");
            diagnostics.refuse(written.span, "host.address", reason, ONE_FAMILY);
            return None;
        }
        let Some(written) = tree::text(table, "listen") else {
            return Some((address, address));
        };
        let listen = read_address(&written, "host.listen", diagnostics).unwrap_or(address);
        if listen.is_ipv4() != address.is_ipv4() {
            let reason = format!("{listen} does not receive datagrams for {address}");
            diagnostics.refuse(written.span, "host.listen", reason, ONE_FAMILY);
            return None;
        }
        Some((address, listen))
    }

    /// Assigns a port to a host.
    fn port(
        &mut self,
        host: usize,
        port: &Placed<&str>,
        builder: &mut Builder,
    ) -> Option<PortIndex> {
        let (ports, diagnostics) = (&builder.topology.ports, &mut builder.diagnostics);
        let index = switching::port(port.clone(), ports, "host.ports", diagnostics)?;
        if let Some(other) = self.owners[usize::from(index.0)].replace(host) {
            let other = self.hosts.get(other).map_or("this host", |host| &host.name);
            let reason = format!("port '{}' already belongs to '{other}'", port.value);
            let remedy = "list each port under one host";
            builder.refuse(port.span.clone(), "host.ports", reason, remedy);
            return None;
        }
        Some(index)
    }

    /// Returns the hosts and each port's host.
    fn finish(
        self,
        span: Span,
        diagnostics: &mut Diagnostics,
    ) -> Option<(Vec<HostPlan>, Vec<usize>)> {
        if diagnostics.refused() > self.refused {
            return None;
        }
        let owners: Option<Vec<usize>> = self.owners.iter().copied().collect();
        if owners.is_none() {
            let without = self.owners.iter().filter(|owner| owner.is_none()).count();
            let first = self.owners.iter().position(Option::is_none).unwrap_or(0);
            let reason = match without {
                1 => format!("port {first} of [ports] belongs to no host"),
                more => format!("port {first} and {} more belong to no host", more - 1),
            };
            let remedy = "list each port in `ports` of one [[host]]";
            diagnostics.refuse(span, "host.ports", reason, remedy);
        }
        Some((self.hosts, owners?))
    }
}

fn read_address(
    written: &Placed<&str>,
    at: &str,
    diagnostics: &mut Diagnostics,
) -> Option<SocketAddr> {
    let text = written.value;
    let bare = || text.parse::<IpAddr>().ok();
    let address = text.parse().ok();
    let address = address.or_else(|| Some(SocketAddr::new(bare()?, PORT_DEFAULT)));
    if address.is_none() {
        let reason = format!("'{text}' is not an IP address");
        let remedy = "write it as 192.0.2.1, 192.0.2.1:4795 or [2001:db8::1]:4795";
        diagnostics.refuse(written.span.clone(), at, reason, remedy);
    }
    // IPv4-mapped IPv6 addresses denote the same host as IPv4 addresses.
    address.map(|it| SocketAddr::new(it.ip().to_canonical(), it.port()))
}

/// Returns the reason why other hosts cannot send to an address, if any.
fn unreachable_reason(address: SocketAddr) -> Option<String> {
    let kind = match address.ip() {
        _ if address.port() == 0 => "has no UDP port",
        ip if ip.is_unspecified() => "is the unspecified address",
        ip if ip.is_multicast() => "is a multicast address",
        IpAddr::V4(ip) if ip.is_broadcast() => "is the broadcast address",
        IpAddr::V6(ip) if ip.is_unicast_link_local() => "is link-local",
        _ => return None,
    };
    Some(format!("{address} {kind}"))
}

/// Assigns links to hosts.
struct Placement<'a> {
    hosts: &'a [HostPlan],
    owners: &'a [usize],
    deciders: Vec<[Option<usize>; 2]>,
    /// For each class, the classes to which the scenario moves its frames.
    targets: HashMap<Class, Vec<Class>>,
}

impl Placement<'_> {
    /// Assigns the links of all rules; returns `None` if an assignment fails.
    fn place_all(&mut self, builder: &mut Builder) -> Option<()> {
        for index in 0..builder.rules.len() {
            let (position, rule) = builder.rules[index].clone();
            let span = position..position;
            let Some(PortIndex(port)) = rule.matcher.arrival_port else {
                let reason = format!("'{}' matches frames of several hosts", rule.matcher);
                let remedy = "add in-port=NAME: each host decides only frames from its own ports";
                builder.refuse(span, "link.match", reason, remedy);
                return None;
            };
            let host = self.owners[usize::from(port)];
            if let Err((link, other)) = self.place(&rule, host, builder) {
                let name = &builder.topology.links[link as usize].name;
                let (one, other) = (&self.hosts[other].name, &self.hosts[host].name);
                let reason = format!("frames of host '{one}' and of '{other}' cross '{name}'");
                let remedy = "give each host a separate link: a queue exists on one host only";
                builder.refuse(span, "link.match", reason, remedy);
                return None;
            }
        }
        Some(())
    }

    /// Assigns the links that a rule's frames cross, before and after moves. On conflict, returns
    /// the link and the host to which it is already assigned.
    fn place(
        &mut self,
        rule: &RulePlan,
        host: usize,
        builder: &Builder,
    ) -> Result<(), (u32, usize)> {
        let moved = self.targets.get(&rule.target.class).cloned();
        for class in std::iter::once(rule.target.class).chain(moved.unwrap_or_default()) {
            for hop in hops(class, rule.target.direction, &builder.topology.paths) {
                let is_shared = builder.topology.links[hop.link as usize].down.is_none();
                let direction = if is_shared {
                    Direction::Up
                } else {
                    hop.direction
                };
                let decider = &mut self.deciders[hop.link as usize][direction as usize];
                match *decider {
                    Some(other) if other != host => return Err((hop.link, other)),
                    _ => *decider = Some(host),
                }
            }
        }
        Ok(())
    }
}

/// Returns the hops of a class in one direction.
fn hops(class: Class, direction: Direction, paths: &[PathPlan]) -> Vec<Hop> {
    match class {
        Class::Link(link) => vec![Hop { link, direction }],
        Class::Path(path) => paths[path as usize].hops(direction),
    }
}
