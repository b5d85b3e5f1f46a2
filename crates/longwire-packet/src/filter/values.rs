//! Literals: numbers, addresses, networks and bytes.

use alloc::vec::Vec;
use core::net::IpAddr;
use core::str::FromStr;

pub(crate) use super::names::{ethertype, ethertype_name, protocol, protocol_name};
use crate::bytes::left_aligned;
use crate::header::IpVersion;

/// An address prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Net {
    /// IP version.
    pub version: IpVersion,
    /// Address; IPv4 occupies the first four bytes.
    pub address: [u8; 16],
    /// Number of leading bits compared.
    pub prefix: u8,
}

impl Net {
    /// Parses an address.
    pub(crate) fn host(text: &str) -> Option<Net> {
        IpAddr::from_str(text).ok().map(Net::of)
    }

    fn of(address: IpAddr) -> Net {
        let version = match address {
            IpAddr::V4(_) => IpVersion::V4,
            IpAddr::V6(_) => IpVersion::V6,
        };
        Net {
            version,
            address: left_aligned(address).to_be_bytes(),
            prefix: Net::bits(version),
        }
    }

    /// Parses an address with a prefix length, such as 10.0.0.0/8.
    pub(crate) fn with_prefix(text: &str) -> Option<Net> {
        let (start, prefix) = text.split_once('/')?;
        let whole = Net::host(start).or_else(|| Net::short(start))?;
        let bits = Net::bits(whole.version);
        let prefix = number(prefix).filter(|prefix: &u8| *prefix <= bits)?;
        Some(Net { prefix, ..whole })
    }

    /// Parses an address with an optional prefix length.
    pub(crate) fn host_or_prefix(text: &str) -> Option<Net> {
        Net::with_prefix(text).or_else(|| Net::host(text))
    }

    /// Parses one to three octets of an IPv4 address as a prefix: 192.168 means 192.168.0.0/16.
    pub(super) fn short(text: &str) -> Option<Net> {
        let mut octets = [0u8; 4];
        let mut prefix = 0;
        for (part, octet) in text.split('.').zip(&mut octets) {
            *octet = number(part)?;
            prefix += 8;
        }
        let whole = Net::of(octets.into());
        (text.split('.').count() < 4).then_some(Net { prefix, ..whole })
    }

    /// Returns the address length in bits.
    pub fn bits(version: IpVersion) -> u8 {
        version.address_len() as u8 * 8
    }

    /// Whether an address has this prefix.
    #[inline]
    pub fn holds(&self, address: &[u8]) -> bool {
        let (whole, rest) = (usize::from(self.prefix / 8), self.prefix % 8);
        let same = address[..whole] == self.address[..whole];
        same && (rest == 0 || (address[whole] ^ self.address[whole]) >> (8 - rest) == 0)
    }
}

/// Parses a decimal or hexadecimal (0x88cc) integer.
pub(crate) fn number<T: TryFrom<u64>>(text: &str) -> Option<T> {
    let value = match text.strip_prefix("0x") {
        Some(digits) if digits.bytes().all(|digit| digit.is_ascii_hexdigit()) => {
            u64::from_str_radix(digits, 16).ok()?
        }
        None if text.bytes().all(|digit| digit.is_ascii_digit()) => text.parse().ok()?,
        _ => return None,
    };
    T::try_from(value).ok()
}

/// Parses a DSCP name: ef (RFC 3246), cs0 to cs7 (RFC 2474), af11 to af43 (RFC 2597).
pub(crate) fn code_point(text: &str) -> Option<u8> {
    let digit = |byte: &u8| byte - b'0';
    match text.as_bytes() {
        b"ef" => Some(46),
        [b'c', b's', class @ b'0'..=b'7'] => Some(digit(class) * 8),
        [b'a', b'f', class @ b'1'..=b'4', drop @ b'1'..=b'3'] => {
            Some(digit(class) * 8 + digit(drop) * 2)
        }
        _ => None,
    }
}

/// Parses a MAC address: six hexadecimal bytes separated by colons or hyphens; leading zeros are
/// optional.
pub(crate) fn mac(text: &str) -> Option<[u8; 6]> {
    let byte = |pair: &str| {
        let whole = pair.len() <= 2 && pair.bytes().all(|digit| digit.is_ascii_hexdigit());
        u8::from_str_radix(pair, 16).ok().filter(|_| whole)
    };
    let bytes: Option<Vec<u8>> = text.split([':', '-']).map(byte).collect();
    bytes?.try_into().ok()
}

/// Parses hexadecimal bytes, optionally separated by colons.
pub(crate) fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for digits in text.split(':') {
        let whole = !digits.is_empty() && digits.len().is_multiple_of(2);
        if !whole || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        let pairs = (0..digits.len()).step_by(2);
        bytes.extend(pairs.filter_map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok()));
    }
    Some(bytes)
}
