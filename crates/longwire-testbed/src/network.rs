//! The networks of the two sides: devices, addresses, neighbours, and the
//! settings that keep an idle link silent.

use std::net::IpAddr;
use std::time::Duration;

use longwire_io::net::veth::{self, End, VethConfig};
use longwire_io::net::{self, NetError, NetNamespace, link, sysctl};
use nix::unistd::getegid;

use crate::config::{Device, EnvironmentConfig, Side};
use crate::plan::{Plan, link_local_of, mac_of};

/// The device behind the link, on either side.
pub const DEVICE: &str = "eth0";

/// Prepares the emulator's namespace: its devices carry frames and send
/// none themselves.
pub fn prepare_hub(hub: &NetNamespace) -> Result<Vec<String>, NetError> {
    hub.run(|| optional(&[("ipv6/conf/default/disable_ipv6", "1")]))
}

/// Sets up the network of one side up to its addresses.
pub fn prepare_side(
    side: Side,
    namespace: &NetNamespace,
    hub: &NetNamespace,
    plan: Plan,
    config: &EnvironmentConfig,
) -> Result<Vec<String>, NetError> {
    let notes = prepare_host(namespace)?;
    match config.device {
        Device::Veth => {
            let pair = side_and_hub(side, namespace, config);
            hub.run(|| {
                veth::create(&pair)?;
                net::link_up(side.name())
            })??;
        }
        Device::Tap => {
            namespace.run(|| {
                net::tap::create_persistent(DEVICE)?;
                link::set_mac(DEVICE, mac_of(side, 0))?;
                link::set_mtu(DEVICE, config.mtu)
            })??;
        }
    }
    add_addresses(side, namespace, plan)?;
    if config.device == Device::Veth {
        // Else IPv6 would set up its addresses, and announce them on the link, up
        // to a second later.
        wait_running(namespace)?;
        hub.run(|| link::wait_running(side.name(), CARRIER_PATIENCE))??;
    }
    Ok(notes)
}

/// Sets up the networks of both sides, joined by a veth pair and no emulator.
pub fn join_sides(
    near: &NetNamespace,
    far: &NetNamespace,
    plan: Plan,
    config: &EnvironmentConfig,
) -> Result<(), NetError> {
    for namespace in [near, far] {
        prepare_host(namespace)?;
    }
    let pair = VethConfig {
        a: end(DEVICE, mac_of(Side::Near, 0), None, config),
        b: end(DEVICE, mac_of(Side::Far, 0), Some(far), config),
    };
    near.run(|| veth::create(&pair))??;
    for (side, namespace) in [(Side::Near, near), (Side::Far, far)] {
        add_addresses(side, namespace, plan)?;
    }
    [near, far].into_iter().try_for_each(wait_running)
}

/// Makes the settings of a side, and starts its loopback device. Returns the
/// settings that failed.
fn prepare_host(namespace: &NetNamespace) -> Result<Vec<String>, NetError> {
    let notes = namespace.run(|| {
        let group = getegid();
        let mut notes = optional(&SETTINGS);
        // Lets ping work without capabilities.
        let groups = format!("{group} {group}");
        notes.extend(optional(&[("ipv4/ping_group_range", &groups)]));
        notes
    })?;
    namespace.run(|| net::link_up("lo"))??;
    Ok(notes)
}

/// Starts a side's device, with the side's addresses and its neighbours.
fn add_addresses(side: Side, namespace: &NetNamespace, plan: Plan) -> Result<(), NetError> {
    namespace.run(|| {
        net::link_up(DEVICE)?;
        net::addr_add(DEVICE, plan.v4_of(side).into(), 24)?;
        net::addr_add(DEVICE, plan.v6_of(side).into(), 64)?;
        add_neighbours(side.other(), plan)
    })?
}

/// Enters the addresses of the side across the link as permanent neighbours:
/// like a wire, the link carries no address resolution, also with a long delay.
fn add_neighbours(across: Side, plan: Plan) -> Result<(), NetError> {
    let addresses: [IpAddr; 3] = [
        plan.v4_of(across).into(),
        plan.v6_of(across).into(),
        link_local_of(across).into(),
    ];
    let mac = mac_of(across, 0);
    let mut addresses = addresses.into_iter();
    addresses.try_for_each(|address| net::neighbour_add(DEVICE, address, mac))
}

/// Waits until a side's device has a carrier.
pub fn wait_running(namespace: &NetNamespace) -> Result<(), NetError> {
    namespace.run(|| link::wait_running(DEVICE, CARRIER_PATIENCE))??;
    Ok(())
}

/// Settings that keep an idle link silent: no search for routers, no duplicate
/// detection, and the group reports that a new address sends at once instead
/// of spread over seconds. And, since the network is the user's own, any port
/// for its servers.
const SETTINGS: [(&str, &str); 6] = [
    ("ipv6/conf/default/accept_ra", "0"),
    ("ipv6/conf/default/router_solicitations", "0"),
    ("ipv6/conf/default/accept_dad", "0"),
    ("ipv6/conf/default/dad_transmits", "0"),
    ("ipv6/conf/default/mldv2_unsolicited_report_interval", "1"),
    ("ipv4/ip_unprivileged_port_start", "0"),
];

/// Settings that a run can do without, say because `/proc/sys` is read-only
/// in this container.
fn optional(settings: &[(&str, &str)]) -> Vec<String> {
    let set = |(key, value): &(&str, &str)| sysctl::set(key, value).err();
    settings
        .iter()
        .filter_map(set)
        .map(|error| error.to_string())
        .collect()
}

/// The time in which the kernel detects that a pair is up.
const CARRIER_PATIENCE: Duration = Duration::from_secs(2);

/// The side's device, and the emulator's end of it, named after the side.
fn side_and_hub<'a>(
    side: Side,
    namespace: &'a NetNamespace,
    config: &EnvironmentConfig,
) -> VethConfig<'a> {
    VethConfig {
        a: end(side.name(), mac_of(side, 1), None, config),
        b: end(DEVICE, mac_of(side, 0), Some(namespace), config),
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
    }
}
