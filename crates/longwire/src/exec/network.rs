//! The networks of the two sides: devices, addresses, neighbours, and the
//! settings that keep an idle link silent.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use longwire_io::net::veth::{self, End, VethConfig};
use longwire_io::net::{self, NetError, NetNamespace, link, sysctl};
use nix::unistd::getegid;

use super::environment::{Device, EnvironmentConfig, Side};

/// The device behind the link, on either side.
pub const DEVICE: &str = "eth0";

/// The IPv4 networks of a run, and the addresses in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The first two bytes of every IPv4 address.
    pub network: [u8; 2],
}

impl Plan {
    /// The addresses when nothing speaks against them.
    pub const USUAL: Plan = Plan { network: [10, 77] };

    /// The plans to choose from where a network may be taken.
    pub fn candidates() -> impl Iterator<Item = Plan> {
        let private = (77..=127).map(|second| Plan {
            network: [10, second],
        });
        let shared = (64..=127).map(|second| Plan {
            network: [100, second],
        });
        private.chain(shared)
    }

    fn v4(self, third: u8, fourth: u8) -> Ipv4Addr {
        Ipv4Addr::new(self.network[0], self.network[1], third, fourth)
    }

    /// The IPv4 address of a side, in a network of 24 bits.
    pub fn v4_of(self, side: Side) -> Ipv4Addr {
        self.v4(0, side.number())
    }

    /// The IPv6 address of a side, in a network of 64 bits.
    pub fn v6_of(self, side: Side) -> Ipv6Addr {
        Ipv6Addr::new(0xfd77, 0x4c57, 0, 0, 0, 0, 0, u16::from(side.number()))
    }

    /// The host's and far's addresses on the uplink, in a network of 30 bits.
    pub fn uplink(self) -> (Ipv4Addr, Ipv4Addr) {
        (self.v4(1, 1), self.v4(1, 2))
    }

    /// All of the plan's IPv4 addresses.
    pub fn all(self) -> net::address::Prefix {
        net::address::Prefix {
            address: self.v4(0, 0).into(),
            length: 16,
        }
    }

    /// The names of the sides.
    pub fn names(self) -> Names {
        Names(self)
    }
}

/// The names that resolve inside, and the variables that say the same.
#[derive(Clone, Copy, Debug)]
pub struct Names(Plan);

impl Names {
    /// Lines of `/etc/hosts`.
    pub fn entries(&self) -> Vec<(&'static str, IpAddr)> {
        [Side::Near, Side::Far]
            .into_iter()
            .flat_map(|side| {
                let (v4, v6) = (self.0.v4_of(side), self.0.v6_of(side));
                [(side.name(), v4.into()), (side.name(), v6.into())]
            })
            .collect()
    }

    /// Environment variables.
    pub fn variables(&self) -> [(&'static str, String); 4] {
        [
            ("LONGWIRE_NEAR", self.0.v4_of(Side::Near).to_string()),
            ("LONGWIRE_FAR", self.0.v4_of(Side::Far).to_string()),
            ("LONGWIRE_NEAR6", self.0.v6_of(Side::Near).to_string()),
            ("LONGWIRE_FAR6", self.0.v6_of(Side::Far).to_string()),
        ]
    }
}

/// A locally administered address, the same in every run: of a side's own
/// device (`end` 0), of the emulator's end (1), or of the uplink's ends (2).
pub const fn mac_of(side: Side, end: u8) -> [u8; 6] {
    [0x02, b'L', b'W', 0, end, side.number()]
}

/// The link-local IPv6 address that the kernel gives to a side's device: its
/// MAC address as an interface identifier (RFC 4291, appendix A).
fn link_local_of(side: Side) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac_of(side, 0);
    let word = |high, low| u16::from_be_bytes([high, low]);
    Ipv6Addr::new(
        0xfe80,
        0,
        0,
        0,
        word(a ^ 2, b),
        word(c, 0xff),
        word(0xfe, d),
        word(e, f),
    )
}

/// Prepares the emulator's namespace: its devices carry frames and have no
/// voice of their own.
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
    let notes = namespace.run(|| {
        let group = getegid();
        let mut notes = optional(&SETTINGS);
        // Lets ping work without capabilities.
        let groups = format!("{group} {group}");
        notes.extend(optional(&[("ipv4/ping_group_range", &groups)]));
        notes
    })?;
    namespace.run(|| net::link_up("lo"))??;
    match config.device {
        Device::Veth => {
            hub.run(|| veth_pair(side, namespace, config))??;
        }
        Device::Tap => {
            namespace.run(|| {
                net::tap::create_persistent(DEVICE)?;
                link::set_mac(DEVICE, mac_of(side, 0))?;
                link::set_mtu(DEVICE, config.mtu)
            })??;
        }
    }
    namespace.run(|| {
        net::link_up(DEVICE)?;
        net::addr_add(DEVICE, plan.v4_of(side).into(), 24)?;
        net::addr_add(DEVICE, plan.v6_of(side).into(), 64)?;
        add_neighbours(side.other(), plan)
    })??;
    if config.device == Device::Veth {
        // Else IPv6 would set up its addresses, and tell the link so, up to a
        // second later.
        wait_running(namespace)?;
        hub.run(|| link::wait_running(side.name(), CARRIER_PATIENCE))??;
    }
    Ok(notes)
}

/// Enters the addresses of the side across the link as permanent neighbours:
/// like a wire, the link carries no address resolution, whatever its delay.
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
fn veth_pair(
    side: Side,
    namespace: &NetNamespace,
    config: &EnvironmentConfig,
) -> Result<(), NetError> {
    let end = |name, number| End {
        name,
        namespace: None,
        mtu: Some(config.mtu),
        mac: Some(mac_of(side, number)),
        tx_queue_len: None,
        queues: Some(config.queues),
    };
    veth::create(&VethConfig {
        a: end(side.name(), 1),
        b: End {
            namespace: Some(namespace),
            ..end(DEVICE, 0)
        },
    })?;
    net::link_up(side.name())
}
