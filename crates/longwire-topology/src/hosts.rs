//! Host addresses in subnets, for links generated in bulk.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Maximum number of hosts per subnet.
const HOSTS_MAX: u128 = 1 << 32;

/// The host addresses of a subnet; excludes the first and last address of IPv4 prefixes of at most
/// 30 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HostRange {
    first: IpAddr,
    count: u64,
}

impl HostRange {
    /// Parses a subnet such as `10.1.0.0/22`.
    ///
    /// # Errors
    /// If the text is not a subnet.
    pub fn read(text: &str) -> Result<HostRange, String> {
        let what = || format!("'{text}' is not a subnet such as 10.1.0.0/22 or 2001:db8::/112");
        let (address, bits) = text.trim().split_once('/').ok_or_else(what)?;
        let address: IpAddr = address.parse().map_err(|_| what())?;
        let bits: u32 = bits.parse().map_err(|_| what())?;
        let (number, width) = match address {
            IpAddr::V4(address) => (u128::from(u32::from(address)), 32),
            IpAddr::V6(address) => (u128::from(address), 128),
        };
        if bits > width {
            return Err(what());
        }
        let size = 1_u128.checked_shl(width - bits).unwrap_or(u128::MAX);
        if number & (size - 1) != 0 {
            return Err(format!(
                "'{text}' has host bits set; write the first address of the subnet"
            ));
        }
        if size > HOSTS_MAX {
            return Err(format!(
                "'{text}' has more than 2^32 addresses; write a longer prefix"
            ));
        }
        let has_ends = width == 32 && bits <= 30;
        let (skip, count) = if has_ends { (1, size - 2) } else { (0, size) };
        Ok(HostRange {
            first: add(address, skip),
            count: count as u64,
        })
    }

    /// Returns the number of hosts.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the number of hosts that both subnets contain.
    pub fn common(&self, other: &HostRange) -> u64 {
        let range = |hosts: &HostRange| match hosts.first {
            IpAddr::V4(first) => (4, u128::from(u32::from(first))),
            IpAddr::V6(first) => (6, u128::from(first)),
        };
        let ((family, first), (other_family, other_first)) = (range(self), range(other));
        let last = (first + u128::from(self.count)).min(other_first + u128::from(other.count));
        if family == other_family {
            last.saturating_sub(first.max(other_first)) as u64
        } else {
            0
        }
    }

    /// Returns host `nth`, from 0.
    pub fn host(&self, nth: u64) -> IpAddr {
        add(self.first, nth)
    }
}

/// Adds an offset to an address; the result must be in the subnet.
fn add(address: IpAddr, nth: u64) -> IpAddr {
    match address {
        IpAddr::V4(address) => Ipv4Addr::from(u32::from(address).wrapping_add(nth as u32)).into(),
        IpAddr::V6(address) => Ipv6Addr::from(u128::from(address).wrapping_add(nth.into())).into(),
    }
}
