//! `[[host]]` and `[underlay]`: the machines that run a network together.
//!
//! A link is decided on the host of the ports by which its frames enter, and on no other:
//! no frame needs the decision of another host before its own. Files for which that is
//! not so are refused ([`docs/decisions/0046-hosts.md`]).
//!
//! [`docs/decisions/0046-hosts.md`]: ../../../docs/decisions/0046-hosts.md

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use longwire_packet::bridge::{BridgeConfig, PortIndex, Switching};

use super::builder::{Builder, is_name};
use super::fields::HOSTS_MAX;
use super::plan::{Class, Cluster, Hop, HostPlan, PathPlan, RulePlan, Unmatched, Way};
use super::problem::{Complaints, meant};
use super::timeline::{Action, Timeline};
use super::tree::{self, Placed};
use super::value::{Span, Table};

/// The UDP port of hosts that name none.
const PORT_DEFAULT: u16 = 4795;

/// The longest UDP payload, in bytes, where the file does not give one.
const MTU_DEFAULT: u64 = 1400;

/// Reads the hosts, and decides which of them decides about each link; `None` if there
/// are none, or they are refused.
pub(super) fn read(
    file: &Table<'_>,
    bridge: &BridgeConfig,
    unmatched: Unmatched,
    timeline: &Timeline,
    builder: &mut Builder,
) -> Option<Cluster> {
    let items = tree::tables(file, "host");
    let underlay = tree::table(file, "underlay");
    if items.is_empty() {
        if let (Some(_), Some(value)) = (underlay, file.get("underlay")) {
            let reason = "there is an underlay, and there are no hosts";
            let remedy = "write a [[host]] table for each machine, or leave it out";
            builder
                .complaints
                .refuse(value.span.clone(), "underlay", reason, remedy);
        }
        return None;
    }
    let mut reader = HostReader::new(builder);
    for item in &items {
        reader.host(item, builder);
    }
    let span = items[0].span.clone();
    let (hosts, owners) = reader.finish(span.clone(), &mut builder.complaints)?;
    if hosts.len() > HOSTS_MAX {
        let reason = format!("{} hosts are too many", hosts.len());
        let remedy = format!("there can be {HOSTS_MAX}");
        builder.complaints.refuse(span, "host", reason, remedy);
        return None;
    }
    let is_divided = owners.iter().any(|owner| *owner != owners[0]);
    if is_divided {
        refuse_common_state(file, span, bridge, unmatched, builder)?;
    }
    let mut placement = Placement {
        hosts: &hosts,
        owners: &owners,
        deciders: vec![[None; 2]; builder.links.len()],
        targets: targets(timeline, builder),
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
            let complaints = &mut builder.complaints;
            let (place, remedy) = (key.span.into(), "send the key".to_owned());
            Box::new(complaints.problem(place, field.to_owned(), reason, remedy))
        })?;
        Ok(builder.folder.join(key.value))
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

/// Refuses parts of a network that frames of all hosts would change.
fn refuse_common_state(
    file: &Table<'_>,
    span: Span,
    bridge: &BridgeConfig,
    unmatched: Unmatched,
    builder: &mut Builder,
) -> Option<()> {
    if bridge.switching == Switching::Bridge {
        let reason = "a bridge learns from the frames of all hosts, and each host sees its own";
        let remedy = "write mode = \"static\" with stations, or mode = \"pairs\"";
        builder
            .complaints
            .refuse(span, "switching.mode", reason, remedy);
        return None;
    }
    if let Unmatched::Link(_) = unmatched {
        let reason = "frames of several hosts would share the link of unmatched frames";
        let remedy = "give the link a match with in-port, and write pass or drop";
        let span = file
            .get("unmatched")
            .map_or(span, |value| value.span.clone());
        builder.complaints.refuse(span, "unmatched", reason, remedy);
        return None;
    }
    Some(())
}

/// The classes to which the scenario moves the frames of each class.
fn targets(timeline: &Timeline, builder: &Builder) -> HashMap<Class, Vec<Class>> {
    let mut targets: HashMap<Class, Vec<Class>> = HashMap::new();
    for action in timeline.events.iter().flat_map(|event| &event.actions) {
        if let Action::Move { class, to, .. } = action {
            let named = |name: &str| builder.names.get(name).copied();
            if let (Some(class), Some(to)) = (named(class), named(to)) {
                targets.entry(class).or_default().push(to);
            }
        }
    }
    targets
}

/// The hosts while they are read.
struct HostReader {
    hosts: Vec<HostPlan>,
    /// By port: the index of its host.
    owners: Vec<Option<usize>>,
    is_fine: bool,
}

impl HostReader {
    fn new(builder: &Builder) -> HostReader {
        HostReader {
            hosts: Vec::new(),
            owners: vec![None; builder.ports.len()],
            is_fine: true,
        }
    }

    fn host(&mut self, item: &Placed<&Table<'_>>, builder: &mut Builder) {
        let table = item.value;
        let complaints = &mut builder.complaints;
        let Some(name) = tree::text(table, "name").filter(|name| !name.value.is_empty()) else {
            self.is_fine = false;
            let reason = "the host has no name";
            return complaints.refuse(item.span.clone(), "host.name", reason, "write name = \"…\"");
        };
        if !is_name(name.value) {
            self.is_fine = false;
            let reason = format!("{:?} cannot be a name", name.value);
            let remedy = "use letters, digits, '-', '_', '.', ':' and '/'";
            return complaints.refuse(name.span, "host.name", reason, remedy);
        }
        if self.hosts.iter().any(|host| host.name == name.value) {
            self.is_fine = false;
            let reason = format!("there are two hosts '{}'", name.value);
            return complaints.refuse(name.span, "host.name", reason, "give each its own name");
        }
        let Some((address, listen)) = self.addresses(item, name.value, complaints) else {
            return;
        };
        let index = self.hosts.len();
        let mut ports = Vec::new();
        for port in tree::texts(table, "ports") {
            if let Some(port) = self.port(index, &port, builder) {
                ports.push(port);
            }
        }
        if ports.is_empty() && self.is_fine {
            self.is_fine = false;
            let reason = format!("host '{}' has no ports", name.value);
            let remedy = "write ports = [\"left\"], or leave the host out";
            let complaints = &mut builder.complaints;
            complaints.refuse(item.span.clone(), "host.ports", reason, remedy);
        }
        self.hosts.push(HostPlan {
            name: name.value.to_owned(),
            address,
            listen,
            ports,
        });
    }

    /// Reads where a host is reached, and where it receives; `None` if the first is refused.
    fn addresses(
        &mut self,
        item: &Placed<&Table<'_>>,
        name: &str,
        complaints: &mut Complaints,
    ) -> Option<(SocketAddr, SocketAddr)> {
        let table = item.value;
        let Some(written) = tree::text(table, "address") else {
            self.is_fine = false;
            let reason = format!("host '{name}' has no address");
            let remedy = "write address = \"192.0.2.1\"";
            complaints.refuse(item.span.clone(), "host.address", reason, remedy);
            return None;
        };
        let address = self.address(&written, "host.address", complaints)?;
        if let Some(reason) = unreachable_reason(address) {
            self.is_fine = false;
            let remedy = "write the address and UDP port at which the other hosts reach it";
            complaints.refuse(written.span, "host.address", reason, remedy);
            return None;
        }
        if self.hosts.iter().any(|host| host.address == address) {
            self.is_fine = false;
            let reason = format!("{address} is the address of another host");
            let remedy = "give each host its own address, or its own UDP port";
            complaints.refuse(written.span, "host.address", reason, remedy);
            return None;
        }
        if let Some(first) = self.hosts.first()
            && first.address.is_ipv4() != address.is_ipv4()
        {
            let reason = format!(
                "{address} cannot reach {}, host '{}'",
                first.address, first.name
            );
            self.refuse_family(written.span, "host.address", &reason, complaints);
            return None;
        }
        let listen = match tree::text(table, "listen") {
            Some(written) => {
                let listen = self.address(&written, "host.listen", complaints);
                if let Some(listen) = listen
                    && listen.is_ipv4() != address.is_ipv4()
                {
                    let reason = format!("{listen} does not receive what is sent to {address}");
                    self.refuse_family(written.span, "host.listen", &reason, complaints);
                    return None;
                }
                listen
            }
            None => Some(address),
        };
        Some((address, listen.unwrap_or(address)))
    }

    /// Refuses an address: a socket sends to one family, and receives from it.
    fn refuse_family(&mut self, span: Span, at: &str, reason: &str, complaints: &mut Complaints) {
        self.is_fine = false;
        let remedy = "write addresses of IPv4 for all hosts, or of IPv6";
        complaints.refuse(span, at, reason, remedy);
    }

    fn address(
        &mut self,
        written: &Placed<&str>,
        at: &str,
        complaints: &mut Complaints,
    ) -> Option<SocketAddr> {
        let text = written.value;
        let bare = || text.parse::<IpAddr>().ok();
        let address = text.parse().ok();
        let address = address.or_else(|| Some(SocketAddr::new(bare()?, PORT_DEFAULT)));
        // An address of IPv4 in one of IPv6 is the same host.
        let address = address.map(|it| SocketAddr::new(it.ip().to_canonical(), it.port()));
        if address.is_none() {
            self.is_fine = false;
            let reason = format!("'{text}' is no IP address");
            let remedy = "write it as 192.0.2.1, 192.0.2.1:4795 or [2001:db8::1]:4795";
            complaints.refuse(written.span.clone(), at, reason, remedy);
        }
        address
    }

    /// Notes the host of a port, if the port exists and has none.
    fn port(
        &mut self,
        host: usize,
        port: &Placed<&str>,
        builder: &mut Builder,
    ) -> Option<PortIndex> {
        let known = || builder.ports.iter().map(|port| port.name.as_str());
        let Some(index) = known().position(|name| name == port.value) else {
            self.is_fine = false;
            let reason = format!("there is no port '{}'", port.value);
            let remedy = meant(port.value, known());
            builder
                .complaints
                .refuse(port.span.clone(), "host.ports", reason, remedy);
            return None;
        };
        if let Some(other) = self.owners[index].replace(host) {
            self.is_fine = false;
            let other = self.hosts.get(other).map_or("this host", |host| &host.name);
            let reason = format!("port '{}' is of '{other}' already", port.value);
            let remedy = "a port is opened by one host";
            builder
                .complaints
                .refuse(port.span.clone(), "host.ports", reason, remedy);
            return None;
        }
        Some(PortIndex(index as u16))
    }

    /// Returns the hosts, and the host of each port.
    fn finish(
        self,
        span: Span,
        complaints: &mut Complaints,
    ) -> Option<(Vec<HostPlan>, Vec<usize>)> {
        if !self.is_fine {
            return None;
        }
        let owners: Option<Vec<usize>> = self.owners.iter().copied().collect();
        if owners.is_none() {
            let without = self.owners.iter().filter(|owner| owner.is_none()).count();
            let first = self.owners.iter().position(Option::is_none).unwrap_or(0);
            let reason = format!("port {first} and {} more are of no host", without - 1);
            let reason = match without {
                1 => format!("port number {first} of [ports] is of no host"),
                _ => reason,
            };
            let remedy = "name each port in `ports` of one [[host]]";
            complaints.refuse(span, "host.ports", reason, remedy);
        }
        Some((self.hosts, owners?))
    }
}

/// Returns why hosts cannot send to an address, if they cannot.
fn unreachable_reason(address: SocketAddr) -> Option<String> {
    let kind = match address.ip() {
        _ if address.port() == 0 => "has no UDP port",
        ip if ip.is_unspecified() => "is no address of a machine",
        ip if ip.is_multicast() => "is a multicast address",
        IpAddr::V4(ip) if ip.is_broadcast() => "is the broadcast address",
        IpAddr::V6(ip) if ip.is_unicast_link_local() => "means another machine on each link",
        _ => return None,
    };
    Some(format!("{address} {kind}"))
}

/// The host of each link while it is found out.
struct Placement<'a> {
    hosts: &'a [HostPlan],
    owners: &'a [usize],
    deciders: Vec<[Option<usize>; 2]>,
    /// The classes to which the scenario moves frames of a class.
    targets: HashMap<Class, Vec<Class>>,
}

impl Placement<'_> {
    /// Places the links of all rules; `None` if one is refused.
    fn place_all(&mut self, builder: &mut Builder) -> Option<()> {
        for index in 0..builder.rules.len() {
            let (position, rule) = builder.rules[index].clone();
            let span = position..position;
            let Some(PortIndex(port)) = rule.matcher.arrival_port else {
                let reason = format!("'{}' matches frames of several hosts", rule.matcher);
                let remedy = "add in-port=NAME: each host decides about frames of its own ports";
                builder
                    .complaints
                    .refuse(span, "link.match", reason, remedy);
                return None;
            };
            let host = self.owners[usize::from(port)];
            if let Err((link, other)) = self.place(&rule, host, builder) {
                let name = &builder.links[link as usize].name;
                let (one, other) = (&self.hosts[other].name, &self.hosts[host].name);
                let reason = format!("frames of host '{one}' and of '{other}' cross '{name}'");
                let remedy = "give each host a link of its own: a queue is on one machine";
                builder
                    .complaints
                    .refuse(span, "link.match", reason, remedy);
                return None;
            }
        }
        Some(())
    }

    /// Places the links that frames of a rule cross, now or after a move. The link and
    /// its other host, if it has one.
    fn place(
        &mut self,
        rule: &RulePlan,
        host: usize,
        builder: &Builder,
    ) -> Result<(), (u32, usize)> {
        let moved = self.targets.get(&rule.target.class).cloned();
        let classes = moved.unwrap_or_default();
        for class in std::iter::once(rule.target.class).chain(classes) {
            for hop in hops(class, rule.target.way, &builder.paths) {
                let is_shared = builder.links[hop.link as usize].down.is_none();
                let way = if is_shared { Way::Up } else { hop.way };
                let decider = &mut self.deciders[hop.link as usize][way as usize];
                match *decider {
                    Some(other) if other != host => return Err((hop.link, other)),
                    _ => *decider = Some(host),
                }
            }
        }
        Ok(())
    }
}

/// The links of a class in one direction.
fn hops(class: Class, way: Way, paths: &[PathPlan]) -> Vec<Hop> {
    match class {
        Class::Link(link) => vec![Hop { link, way }],
        Class::Path(path) => paths[path as usize].hops(way),
    }
}
