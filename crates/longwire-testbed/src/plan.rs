//! Names and addresses of the two sides.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use longwire_io::net::address::Prefix;

use longwire_engine::models::router::Router;

use crate::config::{EnvironmentConfig, Side};

/// IPv4 networks of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// First two octets of every IPv4 address.
    pub network: [u8; 2],
}

impl Plan {
    /// Default addresses.
    pub const USUAL: Plan = Plan { network: [10, 77] };

    /// Returns candidate plans from which to choose an unused network.
    pub(crate) fn candidates() -> impl Iterator<Item = Plan> {
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

    /// Returns a side's IPv4 address, in a /24 network.
    pub fn v4_of(self, side: Side) -> Ipv4Addr {
        self.v4(0, side.number())
    }

    /// Returns a side's IPv6 address, in a /64 network.
    pub fn v6_of(self, side: Side) -> Ipv6Addr {
        v6(side.number())
    }

    /// Returns `router` with the addresses for this link number instead of the defaults. With at
    /// most [`HOSTS_WITH_ROUTERS`] hosts, none has these addresses.
    pub fn address_router(self, router: Router, link: usize) -> Router {
        let number = ROUTER_MAX - (link % ROUTERS) as u8;
        router.at(self.v4(0, number), v6(number))
    }

    /// Returns the uplink addresses of the host and of far, in a /30 network.
    pub(crate) fn uplink(self) -> (Ipv4Addr, Ipv4Addr) {
        (self.v4(1, 1), self.v4(1, 2))
    }

    /// Returns the network that contains all IPv4 addresses of the plan.
    pub(crate) fn all(self) -> Prefix {
        Prefix {
            address: self.v4(0, 0).into(),
            length: 16,
        }
    }

    /// Returns the hosts of a configuration, including at least near and far.
    pub(crate) fn hosts(self, config: &EnvironmentConfig) -> Vec<Host> {
        let count = config.hosts.len().max(2);
        (0..count).map(|index| self.host(index, config)).collect()
    }

    fn host(self, index: usize, config: &EnvironmentConfig) -> Host {
        let number = index as u8 + 1;
        let role = [Side::Near, Side::Far].get(index).map(|side| side.name());
        let device = role.map_or_else(|| format!("port{number}"), str::to_owned);
        let given = config.hosts.get(index);
        let mut names: Vec<String> = role.into_iter().map(str::to_owned).collect();
        names.extend(
            given
                .map(|host| host.name.clone())
                .filter(|name| resolves(name) && Some(name.as_str()) != role),
        );
        let mut addresses = given.map(|host| host.addresses.clone()).unwrap_or_default();
        if addresses.is_empty() {
            addresses = vec![
                Prefix {
                    address: self.v4(0, number).into(),
                    length: 24,
                },
                Prefix {
                    address: v6(number).into(),
                    length: 64,
                },
            ];
        }
        Host {
            number,
            device,
            names,
            addresses,
            carrier: given.is_some_and(|host| host.carrier),
        }
    }
}

/// Last octet of the first router's addresses; later routers count down.
const ROUTER_MAX: u8 = 254;

/// Number of routers with separate addresses.
const ROUTERS: usize = 100;

/// Maximum number of hosts that leaves enough addresses for routers.
pub const HOSTS_WITH_ROUTERS: usize = ROUTER_MAX as usize - ROUTERS;

fn v6(number: u8) -> Ipv6Addr {
    Ipv6Addr::new(0xfd77, 0x4c57, 0, 0, 0, 0, 0, u16::from(number))
}

/// Returns whether a name is valid in `/etc/hosts`.
fn resolves(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !name.is_empty() && name.chars().all(plain)
}

/// A host at an emulator port.
#[derive(Clone, Debug)]
pub struct Host {
    /// Last octet of the host's MAC addresses; the first host has 1.
    pub number: u8,
    /// Name of the emulator's device that faces the host.
    pub device: String,
    /// Names that resolve to its addresses.
    pub names: Vec<String>,
    /// Addresses of its device.
    pub addresses: Vec<Prefix>,
    /// Whether the port controls the carrier of its device.
    pub carrier: bool,
}

impl Host {
    /// Returns the host's first address of a family: IPv4 if `v4`, else IPv6.
    fn first(&self, v4: bool) -> Option<IpAddr> {
        let mut addresses = self.addresses.iter().map(|found| found.address);
        addresses.find(|address| address.is_ipv4() == v4)
    }
}

/// Names that resolve inside the environment, and the environment variables derived from them.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a>(pub &'a [Host]);

impl Names<'_> {
    /// Returns the entries for `/etc/hosts`, as pairs of name and address.
    pub fn entries(&self) -> Vec<(&str, IpAddr)> {
        let of_host = |host: &Host| {
            let addresses = [host.first(true), host.first(false)];
            addresses.into_iter().flatten().collect::<Vec<_>>()
        };
        let lines = self.0.iter().flat_map(|host| {
            let names = host.names.iter().map(String::as_str);
            names.flat_map(move |name| of_host(host).into_iter().map(move |found| (name, found)))
        });
        lines.collect()
    }

    /// Returns the environment variables with the addresses of near and far.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let names = [
            ("LONGWIRE_NEAR", Side::Near, true),
            ("LONGWIRE_FAR", Side::Far, true),
            ("LONGWIRE_NEAR6", Side::Near, false),
            ("LONGWIRE_FAR6", Side::Far, false),
        ];
        let found = names.into_iter().filter_map(|(name, side, v4)| {
            let address = self.0.get(side.index())?.first(v4)?;
            Some((name, address.to_string()))
        });
        found.collect()
    }
}

/// Returns a locally administered MAC address, identical in every run: of a host's device (`end`
/// 0), the emulator's end (1), or the uplink's ends (2).
pub const fn mac_of(number: u8, end: u8) -> [u8; 6] {
    [0x02, b'L', b'W', 0, end, number]
}

/// Returns the link-local IPv6 address that the kernel assigns to a device: its MAC address as an
/// interface identifier (RFC 4291, appendix A).
pub(crate) fn link_local_of(mac: [u8; 6]) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac;
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
