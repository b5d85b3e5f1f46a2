//! Address and port ranges for flows.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use super::error::{GeneratorError, refused};

/// A range of consecutive IP addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRange {
    first: u128,
    /// Number of addresses minus one.
    beyond: u128,
    v6: bool,
}

impl AddressRange {
    /// Creates a single-address range.
    pub fn one(address: IpAddr) -> AddressRange {
        let ((first, v6), beyond) = (number(address), 0);
        AddressRange { first, beyond, v6 }
    }

    /// Whether the addresses are IPv6.
    pub fn is_v6(&self) -> bool {
        self.v6
    }

    /// Returns the number of addresses, saturating.
    pub fn count(&self) -> u128 {
        self.beyond.saturating_add(1)
    }

    /// Returns address `number`, from 0.
    pub fn address(&self, number: u128) -> IpAddr {
        let value = self.first.wrapping_add(number);
        if self.v6 {
            IpAddr::V6(value.into())
        } else {
            IpAddr::V4((value as u32).into())
        }
    }

    fn prefix(text: &str, address: &str, bits: &str) -> Result<AddressRange, GeneratorError> {
        let refused = || refused(text, "not a prefix", "10.0.0.0/24");
        let (first, v6) = number(address.parse().map_err(|_| refused())?);
        let width = if v6 { 128 } else { 32 };
        let bits: u32 = bits.parse().map_err(|_| refused())?;
        if bits > width {
            return Err(refused());
        }
        let host_bits = width - bits;
        let host = match host_bits {
            128 => u128::MAX,
            bits => (1u128 << bits) - 1,
        };
        // Skip the network address, and the IPv4 broadcast address (RFC 1122, 3.2.1.3; RFC
        // 3021; RFC 4291, 2.6.1).
        let (skip, spare) = match (host_bits, v6) {
            (0 | 1, _) => (0, 0),
            (_, true) => (1, 1),
            (_, false) => (1, 2),
        };
        let (first, beyond) = ((first & !host) + skip, host - spare);
        Ok(AddressRange { first, beyond, v6 })
    }
}

impl FromStr for AddressRange {
    type Err = GeneratorError;

    /// Parses `10.0.0.1`, `10.0.0.0/24` (its hosts) or `10.0.0.1-10.0.0.9`; IPv6 likewise.
    fn from_str(text: &str) -> Result<AddressRange, GeneratorError> {
        let wrong = "not an address or address range";
        let refused = || refused(text, wrong, "10.0.0.1, 10.0.0.0/24 or 10.0.0.1-10.0.0.9");
        if let Some((address, bits)) = text.split_once('/') {
            return AddressRange::prefix(text, address, bits);
        }
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, v6) = number(first.trim().parse().map_err(|_| refused())?);
        let (last, last_v6) = number(last.trim().parse().map_err(|_| refused())?);
        match last.checked_sub(first).filter(|_| v6 == last_v6) {
            Some(beyond) => Ok(AddressRange { first, beyond, v6 }),
            None => Err(refused()),
        }
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address(0).fmt(f)?;
        match self.beyond {
            0 => Ok(()),
            beyond => write!(f, "-{}", self.address(beyond)),
        }
    }
}

fn number(address: IpAddr) -> (u128, bool) {
    match address {
        IpAddr::V4(address) => (u32::from(address).into(), false),
        IpAddr::V6(address) => (address.into(), true),
    }
}

/// A range of consecutive ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRange {
    first: u16,
    last: u16,
}

impl PortRange {
    /// Dynamic ports (RFC 6335, section 6).
    pub const DYNAMIC: PortRange = PortRange {
        first: 49_152,
        last: 65_535,
    };

    /// Creates a single-port range.
    pub const fn one(port: u16) -> PortRange {
        let (first, last) = (port, port);
        PortRange { first, last }
    }

    /// Returns the number of ports.
    pub fn count(&self) -> u128 {
        u128::from(self.last - self.first) + 1
    }

    /// Returns port `number`, from 0.
    pub fn port(&self, number: u128) -> u16 {
        self.first.wrapping_add(number as u16)
    }
}

impl FromStr for PortRange {
    type Err = GeneratorError;

    /// Parses `53` or `1024-65535`.
    fn from_str(text: &str) -> Result<PortRange, GeneratorError> {
        let refused = || refused(text, "not a port or port range", "53 or 1024-65535");
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let port = |text: &str| text.trim().parse::<u16>().map_err(|_| refused());
        let (first, last) = (port(first)?, port(last)?);
        if first <= last {
            Ok(PortRange { first, last })
        } else {
            Err(refused())
        }
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}
