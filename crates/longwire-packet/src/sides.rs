//! Directions of frames in a two-way capture: up (from the near side) or down (to the near side).
//!
//! A near IP or MAC address in the frame determines the direction. Without one, the direction in
//! which the source or destination station has sent before determines it. Failing both, a frame
//! with a routable source address is down.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;
use core::str::FromStr;

use crate::bytes::{array, left_aligned, ones};
use crate::frame::mac_header_len;
use crate::mac::MacAddress;

/// Direction of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heading {
    /// From the near side.
    Up,
    /// To the near side.
    Down,
}

/// An address prefix or a station on the near side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Near {
    /// An address prefix.
    Prefix(IpAddr, u8),
    /// A station, by MAC address.
    Station(MacAddress),
}

impl FromStr for Near {
    type Err = String;

    fn from_str(text: &str) -> Result<Near, String> {
        if let Ok(mac) = text.parse() {
            return Ok(Near::Station(mac));
        }
        let (address, bits) = text.split_once('/').unzip();
        let parsed = address.unwrap_or(text).parse::<IpAddr>();
        let address = parsed.map_err(|_| {
            format!("'{text}' is not an IP address, a prefix such as 10.0.0.0/24, or a MAC address")
        })?;
        let all = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => all,
            Some(text) => match text.parse() {
                Ok(bits) if bits <= all => bits,
                _ => return Err(format!("prefix length '{text}' is outside 0..{all}")),
            },
        };
        Ok(Near::Prefix(address, bits))
    }
}

impl fmt::Display for Near {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Near::Prefix(address, bits) => write!(f, "{address}/{bits}"),
            Near::Station(mac) => mac.fmt(f),
        }
    }
}

/// Maximum number of stations learned; the capture of one link has few.
const STATIONS_MAX: usize = 1 << 16;

/// Determines the directions of frames.
#[derive(Debug)]
pub struct Sides {
    near: Vec<Near>,
    /// The direction in which each station sends; `None` if it has sent in both, which happens in a
    /// capture of several links.
    stations: BTreeMap<MacAddress, Option<Heading>>,
}

impl Sides {
    /// Creates the state from the addresses on the near side.
    pub fn new(near: &[Near]) -> Sides {
        Sides {
            near: near.to_vec(),
            stations: BTreeMap::new(),
        }
    }

    /// Returns the direction of a frame, given at least its headers, or `None` if unknown.
    pub fn direction(&mut self, frame: &[u8]) -> Option<Heading> {
        let [to, from] = [array(frame, 0)?, array(frame, 6)?].map(MacAddress);
        let (source, destination) = addresses(frame);
        let near_by_mac = |mac: MacAddress| self.near.contains(&Near::Station(mac));
        let near_by_address = |address: Option<IpAddr>| {
            address.is_some_and(|address| self.near.iter().any(|near| near.holds(address)))
        };
        let known = if near_by_mac(from) || near_by_address(source) {
            Some(Heading::Up)
        } else if near_by_mac(to) || near_by_address(destination) {
            Some(Heading::Down)
        } else {
            None
        };
        if let Some(direction) = known {
            self.learn(from, direction);
            return known;
        }
        let [from, to] = [from, to].map(|mac| self.stations.get(&mac).copied().flatten());
        match (from, to) {
            (Some(direction), _) => Some(direction),
            (None, Some(Heading::Up)) => Some(Heading::Down),
            (None, Some(Heading::Down)) => Some(Heading::Up),
            _ if source.is_some_and(is_foreign) => Some(Heading::Down),
            _ => None,
        }
    }

    /// Records the direction in which a station sends.
    fn learn(&mut self, station: MacAddress, direction: Heading) {
        // Skips group addresses and the zero address.
        if station.0[0] & 1 == 1 || station.0 == [0; 6] {
            return;
        }
        if let Some(known) = self.stations.get_mut(&station) {
            *known = known.filter(|known| *known == direction);
        } else if self.stations.len() < STATIONS_MAX {
            self.stations.insert(station, Some(direction));
        }
    }
}

impl Near {
    fn holds(&self, address: IpAddr) -> bool {
        match self {
            Near::Prefix(prefix, bits) if prefix.is_ipv4() == address.is_ipv4() => {
                (left_aligned(*prefix) ^ left_aligned(address)) & ones(*bits) == 0
            }
            _ => false,
        }
    }
}

/// Returns a frame's source and destination address in IP or ARP; an unspecified source is `None`.
fn addresses(frame: &[u8]) -> (Option<IpAddr>, Option<IpAddr>) {
    let at = mac_header_len(frame) as usize;
    let v4 = |offset| array::<4>(frame, at + offset).map(IpAddr::from);
    let v6 = |offset| array::<16>(frame, at + offset).map(IpAddr::from);
    let (source, destination) = match frame.get(at - 2..at) {
        Some([0x08, 0x00]) => (v4(12), v4(16)),
        Some([0x86, 0xdd]) => (v6(8), v6(24)),
        // ARP for IPv4 over Ethernet (RFC 826): sender and target.
        Some([0x08, 0x06]) if frame.get(at..at + 6) == Some(&[0, 1, 8, 0, 6, 4]) => {
            (v4(14), v4(24))
        }
        _ => (None, None),
    };
    // A sender without an address uses 0.0.0.0 or ::.
    (
        source.filter(|address| !address.is_unspecified()),
        destination,
    )
}

/// Whether the sender's address is routable; link-local addresses may be on either side.
fn is_foreign(source: IpAddr) -> bool {
    match source {
        IpAddr::V4(source) => !source.is_link_local(),
        IpAddr::V6(source) => !source.is_unicast_link_local(),
    }
}

#[cfg(test)]
#[path = "sides_tests.rs"]
mod tests;
