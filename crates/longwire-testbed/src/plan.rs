//! The names and addresses of the two sides.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use longwire_io::net::address::Prefix;

use crate::config::Side;

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

    /// The IPv4 address of a side, in a network of 24 bits.
    pub fn v4_of(self, side: Side) -> Ipv4Addr {
        self.v4(0, side.number())
    }

    /// The IPv6 address of a side, in a network of 64 bits.
    pub fn v6_of(self, side: Side) -> Ipv6Addr {
        Ipv6Addr::new(0xfd77, 0x4c57, 0, 0, 0, 0, 0, u16::from(side.number()))
    }

    /// The host's and far's addresses on the uplink, in a network of 30 bits.
    pub(crate) fn uplink(self) -> (Ipv4Addr, Ipv4Addr) {
        (self.v4(1, 1), self.v4(1, 2))
    }

    /// All of the plan's IPv4 addresses.
    pub(crate) fn all(self) -> Prefix {
        Prefix {
            address: self.v4(0, 0).into(),
            length: 16,
        }
    }

    /// The names of the sides.
    pub(crate) fn names(self) -> Names {
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
pub(crate) const fn mac_of(side: Side, end: u8) -> [u8; 6] {
    [0x02, b'L', b'W', 0, end, side.number()]
}

/// The link-local IPv6 address that the kernel gives to a side's device: its
/// MAC address as an interface identifier (RFC 4291, appendix A).
pub(crate) fn link_local_of(side: Side) -> Ipv6Addr {
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
