//! The hosts' networks: devices, addresses, neighbours, and settings that keep an idle link silent.

use std::net::IpAddr;
use std::time::Duration;

use longwire_io::net::address::Prefix;
use longwire_io::net::veth::{self, End, VethConfig};
use longwire_io::net::{self, NetError, NetNamespace, link, sysctl};
use nix::unistd::getegid;

use crate::config::{Device, EnvironmentConfig};
use crate::plan::{Host, link_local_of, mac_of};
use crate::silence::Groups;

/// Device that faces the link, in every host's network.
pub const DEVICE: &str = "eth0";

/// Prepares the emulator's namespace, whose devices must not send frames themselves.
pub fn prepare_hub(hub: &NetNamespace) -> Result<Vec<String>, NetError> {
    hub.run(|| optional(&[("ipv6/conf/default/disable_ipv6", "1")]))
}

/// A host's network.
pub struct PreparedNetwork {
    /// Settings that could not be applied.
    pub notes: Vec<String>,
    pub groups: Groups,
}

/// Configures a host's network; `all` includes this host.
///
/// The device joins its multicast groups and comes up before it has a carrier, so the kernel
/// reports the groups only once, when the carrier appears.
pub fn prepare_network(
    host: &Host,
    all: &[Host],
    namespace: &NetNamespace,
    hub: &NetNamespace,
    config: &EnvironmentConfig,
) -> Result<PreparedNetwork, NetError> {
    let notes = prepare_settings(namespace)?;
    match config.device {
        Device::Veth => {
            let pair = host_and_hub(host, namespace, config);
            hub.run(|| veth::create(&pair))??;
            namespace.run(|| net::sctp_segmentation_off(DEVICE))?;
        }
        Device::Tap => {
            namespace.run(|| {
                net::tap::create_persistent(DEVICE)?;
                link::set_mac(DEVICE, mac_of(host.number, 0))?;
                link::set_mtu(DEVICE, config.mtu)
            })??;
        }
    }
    let groups = namespace.run(|| Groups::join(host, notes.is_empty()))??;
    add_addresses(host, all, namespace)?;
    if config.device == Device::Veth {
        hub.run(|| net::link_up(&host.device))??;
        // Wait here, or IPv6 would configure its addresses and announce them on the link up to a
        // second later.
        wait_running(namespace)?;
        hub.run(|| link::wait_running(&host.device, CARRIER_TIMEOUT))??;
    }
    Ok(PreparedNetwork { notes, groups })
}

/// Configures the networks of two hosts joined directly by a veth pair.
pub fn join_hosts(
    hosts: [&Host; 2],
    namespaces: [&NetNamespace; 2],
    config: &EnvironmentConfig,
) -> Result<(), NetError> {
    namespaces
        .into_iter()
        .try_for_each(|namespace| prepare_settings(namespace).map(drop))?;
    let [near, far] = namespaces;
    let pair = VethConfig {
        a: end(DEVICE, mac_of(hosts[0].number, 0), None, config),
        b: end(DEVICE, mac_of(hosts[1].number, 0), Some(far), config),
    };
    near.run(|| veth::create(&pair))??;
    let all = hosts.map(Host::clone);
    for (host, namespace) in hosts.into_iter().zip(namespaces) {
        add_addresses(host, &all, namespace)?;
    }
    namespaces.into_iter().try_for_each(wait_running)
}

/// Applies a host's settings and starts its loopback device. Returns the settings that failed.
fn prepare_settings(namespace: &NetNamespace) -> Result<Vec<String>, NetError> {
    let notes = namespace.run(|| {
        let group = getegid();
        let mut notes = optional(&SETTINGS);
        // Allows ping without capabilities.
        let groups = format!("{group} {group}");
        notes.extend(optional(&[("ipv4/ping_group_range", &groups)]));
        notes
    })?;
    namespace.run(|| net::link_up("lo"))??;
    Ok(notes)
}

/// Adds a host's addresses, starts its device, and adds neighbours and routes to other networks.
fn add_addresses(host: &Host, all: &[Host], namespace: &NetNamespace) -> Result<(), NetError> {
    let others = || all.iter().filter(|other| other.number != host.number);
    namespace.run(|| {
        for own in &host.addresses {
            net::addr_add(DEVICE, own.address, own.length)?;
        }
        net::link_up(DEVICE)?;
        others().try_for_each(add_neighbours)?;
        let routes = routes_of(host, all).into_iter();
        routes
            .into_iter()
            .try_for_each(|network| net::route_add(network, None, Some(DEVICE)))
    })?
}

/// Returns the networks that a host can only reach by a route, having no address in them.
pub fn routes_of(host: &Host, all: &[Host]) -> Vec<Prefix> {
    let own: Vec<Prefix> = host.addresses.iter().map(network_of).collect();
    let mut routes = Vec::new();
    for network in all
        .iter()
        .flat_map(|other| &other.addresses)
        .map(network_of)
    {
        if !own.contains(&network) && !routes.contains(&network) {
            routes.push(network);
        }
    }
    routes
}

fn network_of(address: &Prefix) -> Prefix {
    let length = u32::from(address.length);
    let network = match address.address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
            IpAddr::from((u32::from(v4) & mask).to_be_bytes())
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
            IpAddr::from((u128::from(v6) & mask).to_be_bytes())
        }
    };
    Prefix {
        address: network,
        length: address.length,
    }
}

/// Adds the remote host's addresses as permanent neighbours, so that address resolution never
/// crosses the link, which may have a long delay.
fn add_neighbours(across: &Host) -> Result<(), NetError> {
    let addresses = across.addresses.iter().map(|found| found.address);
    let mac = mac_of(across.number, 0);
    let link_local = link_local_of(mac).into();
    let mut addresses = addresses.chain([link_local]);
    addresses.try_for_each(|address| net::neighbour_add(DEVICE, address, mac))
}

/// Waits until a host's device has a carrier.
pub fn wait_running(namespace: &NetNamespace) -> Result<(), NetError> {
    namespace.run(|| link::wait_running(DEVICE, CARRIER_TIMEOUT))??;
    Ok(())
}

/// Settings that keep an idle link silent: no router solicitation, no duplicate address detection,
/// and group reports sent immediately instead of over several seconds. They also let servers use
/// any port, and keep IPv6 addresses when a device goes down, like IPv4 addresses.
const SETTINGS: [(&str, &str); 7] = [
    ("ipv6/conf/default/keep_addr_on_down", "1"),
    ("ipv6/conf/default/accept_ra", "0"),
    ("ipv6/conf/default/router_solicitations", "0"),
    ("ipv6/conf/default/accept_dad", "0"),
    ("ipv6/conf/default/dad_transmits", "0"),
    ("ipv6/conf/default/mldv2_unsolicited_report_interval", "1"),
    ("ipv4/ip_unprivileged_port_start", "0"),
];

/// Applies settings and returns the failures, for example if `/proc/sys` is read-only in this
/// container.
fn optional(settings: &[(&str, &str)]) -> Vec<String> {
    let set = |(key, value): &(&str, &str)| sysctl::set(key, value).err();
    settings
        .iter()
        .filter_map(set)
        .map(|error| error.to_string())
        .collect()
}

/// Time limit for the kernel to detect that a pair is up.
const CARRIER_TIMEOUT: Duration = Duration::from_secs(2);

/// Returns the configuration of the veth pair between the emulator and a host.
fn host_and_hub<'a>(
    host: &'a Host,
    namespace: &'a NetNamespace,
    config: &EnvironmentConfig,
) -> VethConfig<'a> {
    VethConfig {
        a: end(&host.device, mac_of(host.number, 1), None, config),
        b: end(DEVICE, mac_of(host.number, 0), Some(namespace), config),
    }
}

fn end<'a>(
    name: &'a str,
    mac: [u8; 6],
    namespace: Option<&'a NetNamespace>,
    config: &EnvironmentConfig,
) -> End<'a> {
    End {
        name,
        namespace,
        mtu: Some(config.mtu),
        mac: Some(mac),
        tx_queue_len: None,
        queues: Some(config.queues),
        index: None,
    }
}
