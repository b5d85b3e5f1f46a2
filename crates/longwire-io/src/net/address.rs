//! IP addresses, routes and neighbour entries.

use std::net::IpAddr;

use super::link::link_index;
use super::netlink::{Netlink, NetlinkError, REQUEST};
use super::netlink_message::{Message, attribute, number_at};
use super::{NetError, list};

const CREATE: u16 = (libc::NLM_F_CREATE | libc::NLM_F_EXCL) as u16;
/// Bytes of `struct ifaddrmsg`.
const ADDRESS_LEN: usize = 8;
/// Bytes of `struct rtmsg`.
const ROUTE_LEN: usize = 12;
/// `IFA_FLAGS`.
const FLAGS: u16 = 8;

/// An IP address with a prefix length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// The address.
    pub address: IpAddr,
    /// Prefix length in bits.
    pub length: u8,
}

impl std::fmt::Display for Prefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl std::str::FromStr for Prefix {
    type Err = String;

    /// Parses `10.0.0.0/8`, `2001:db8::/32`, or a plain address, whose prefix has full length.
    fn from_str(text: &str) -> Result<Prefix, String> {
        let wrong = || format!("'{text}' is not a prefix such as 10.0.0.0/8 or 2001:db8::/32");
        let parts = text.split_once('/');
        let address = parts.map_or(text, |(address, _)| address);
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let length = parts.map_or(Ok(longest), |(_, length)| length.parse());
        let length = length.map_err(|_| wrong())?;
        if length > longest {
            let family = if address.is_ipv4() { "IPv4" } else { "IPv6" };
            return Err(format!(
                "'{text}': prefix length above {longest} for {family}"
            ));
        }
        Ok(Prefix { address, length })
    }
}

impl Prefix {
    /// Returns whether the two networks overlap.
    pub fn overlaps(&self, other: &Prefix) -> bool {
        let common = u32::from(self.length.min(other.length));
        let first_different = match (self.address, other.address) {
            (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
            (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
            _ => return false,
        };
        first_different >= common
    }
}

fn family_of(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => libc::AF_INET as u8,
        IpAddr::V6(_) => libc::AF_INET6 as u8,
    }
}

fn bytes_of(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

fn address_of(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(four) = <[u8; 4]>::try_from(bytes) {
        return Some(four.into());
    }
    <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from)
}

/// Adds an address to a device, with a route to its network. Duplicate address detection is
/// skipped, so an IPv6 address is usable immediately.
///
/// # Errors
/// [`NetError::NoDevice`] if no device has this name; [`NetError::NetlinkError`] without
/// CAP_NET_ADMIN, if the device already has the address, or if the prefix is longer than the
/// address.
pub fn addr_add(name: &str, address: IpAddr, prefix_len: u8) -> Result<(), NetError> {
    let index = link_index(name)?;
    let mut fixed = [0; ADDRESS_LEN];
    fixed[0] = family_of(address);
    fixed[1] = prefix_len;
    fixed[4..8].copy_from_slice(&index.to_ne_bytes());
    let mut message = Message::new(libc::RTM_NEWADDR, REQUEST | CREATE, &fixed);
    let bytes = bytes_of(address);
    message.attribute(libc::IFA_LOCAL, &bytes);
    message.attribute(libc::IFA_ADDRESS, &bytes);
    if address.is_ipv6() {
        message.number(FLAGS, libc::IFA_F_NODAD);
    }
    Netlink::route()
        .and_then(|mut netlink| netlink.request(message))
        .map_err(|source| {
            NetError::refused("add", format!("{address}/{prefix_len} to '{name}'"), source)
        })
}

/// Adds a route to a network through a gateway, a device, or both.
///
/// # Errors
/// [`NetError::NoDevice`] if no device has this name; [`NetError::NetlinkError`] without
/// CAP_NET_ADMIN, if the route exists, if the gateway is unreachable, or with neither gateway nor
/// device.
pub fn route_add(
    destination: Prefix,
    gateway: Option<IpAddr>,
    device: Option<&str>,
) -> Result<(), NetError> {
    let device = device.map(link_index).transpose()?;
    let mut netlink = Netlink::route().map_err(|error| no_route(destination, error))?;
    route_add_by(&mut netlink, destination, gateway, device)
}

/// Like [`route_add`], with a device index in the namespace of `netlink`.
///
/// # Errors
/// As for [`route_add`].
pub fn route_add_by(
    netlink: &mut Netlink,
    destination: Prefix,
    gateway: Option<IpAddr>,
    device: Option<u32>,
) -> Result<(), NetError> {
    let mut fixed = [0; ROUTE_LEN];
    fixed[0] = family_of(destination.address);
    fixed[1] = destination.length;
    fixed[4] = libc::RT_TABLE_MAIN;
    fixed[5] = libc::RTPROT_STATIC;
    fixed[6] = match gateway {
        Some(_) => libc::RT_SCOPE_UNIVERSE,
        None => libc::RT_SCOPE_LINK,
    };
    fixed[7] = libc::RTN_UNICAST;
    let mut message = Message::new(libc::RTM_NEWROUTE, REQUEST | CREATE, &fixed);
    if destination.length > 0 {
        message.attribute(libc::RTA_DST, &bytes_of(destination.address));
    }
    if let Some(gateway) = gateway {
        message.attribute(libc::RTA_GATEWAY, &bytes_of(gateway));
    }
    if let Some(device) = device {
        message.number(libc::RTA_OIF, device);
    }
    netlink
        .request(message)
        .map_err(|error| no_route(destination, error))
}

fn no_route(destination: Prefix, source: NetlinkError) -> NetError {
    NetError::refused("add", format!("a route to {destination}"), source)
}

/// Adds a default route through a gateway.
///
/// # Errors
/// As for [`route_add`].
pub fn default_route_add(gateway: IpAddr) -> Result<(), NetError> {
    let address = match gateway {
        IpAddr::V4(_) => IpAddr::from([0; 4]),
        IpAddr::V6(_) => IpAddr::from([0; 16]),
    };
    route_add(Prefix { address, length: 0 }, Some(gateway), None)
}

/// Returns all addresses with their device indices.
///
/// # Errors
/// [`NetError::NetlinkError`] if the kernel provides no netlink socket or aborts the list.
pub fn addresses() -> Result<Vec<(u32, Prefix)>, NetError> {
    list(libc::RTM_GETADDR, ADDRESS_LEN, "the addresses", |payload| {
        let length = *payload.get(1)?;
        let index = number_at(payload, 4)?;
        let body = payload.get(ADDRESS_LEN..)?;
        let bytes = attribute(body, libc::IFA_LOCAL).or(attribute(body, libc::IFA_ADDRESS))?;
        let address = address_of(bytes)?;
        Some((index, Prefix { address, length }))
    })
}

/// Returns the networks in all routing tables, without the default route.
///
/// # Errors
/// [`NetError::NetlinkError`] if the kernel provides no netlink socket or aborts the list.
pub fn routed_networks() -> Result<Vec<Prefix>, NetError> {
    list(libc::RTM_GETROUTE, ROUTE_LEN, "the routes", |payload| {
        let length = *payload.get(1)?;
        let address = address_of(attribute(payload.get(ROUTE_LEN..)?, libc::RTA_DST)?)?;
        Some(Prefix { address, length })
    })
}

/// Returns the index of the default route's interface; `None` without a default route. Prefers IPv4
/// to IPv6, then the lowest metric.
///
/// # Errors
/// As for [`routed_networks`].
pub fn default_interface() -> Result<Option<u32>, NetError> {
    let found = list(libc::RTM_GETROUTE, ROUTE_LEN, "the routes", |payload| {
        let (family, length, kind) = (*payload.first()?, *payload.get(1)?, *payload.get(7)?);
        let attributes = payload.get(ROUTE_LEN..)?;
        let interface = number_at(attribute(attributes, libc::RTA_OIF)?, 0)?;
        let metric =
            attribute(attributes, libc::RTA_PRIORITY).and_then(|value| number_at(value, 0));
        let six = i32::from(family) == libc::AF_INET6;
        (length == 0 && kind == libc::RTN_UNICAST).then_some((six, metric.unwrap_or(0), interface))
    })?;
    Ok(found.into_iter().min().map(|(_, _, interface)| interface))
}

const REPLACE: u16 = (libc::NLM_F_CREATE | libc::NLM_F_REPLACE) as u16;
/// Bytes of `struct ndmsg`.
const NEIGHBOUR_LEN: usize = 12;

/// Adds or replaces a permanent neighbour entry, which the kernel neither resolves nor probes. No
/// ARP (RFC 826) or neighbour discovery (RFC 4861) for this address crosses the link.
///
/// # Errors
/// Missing CAP_NET_ADMIN, or no device has this name.
pub fn neighbour_add(name: &str, address: IpAddr, mac: [u8; 6]) -> Result<(), NetError> {
    let index = link_index(name)?;
    let mut netlink = Netlink::route().map_err(|error| refused(address, error))?;
    neighbour_add_by(&mut netlink, index, address, mac)
}

/// Like [`neighbour_add`], with a device index in the namespace of `netlink`.
///
/// # Errors
/// As for [`neighbour_add`].
pub fn neighbour_add_by(
    netlink: &mut Netlink,
    index: u32,
    address: IpAddr,
    mac: [u8; 6],
) -> Result<(), NetError> {
    let mut fixed = [0; NEIGHBOUR_LEN];
    fixed[0] = family_of(address);
    fixed[4..8].copy_from_slice(&index.to_ne_bytes());
    fixed[8..10].copy_from_slice(&libc::NUD_PERMANENT.to_ne_bytes());
    fixed[11] = libc::RTN_UNICAST;
    let mut message = Message::new(libc::RTM_NEWNEIGH, REQUEST | REPLACE, &fixed);
    message.attribute(libc::NDA_DST, &bytes_of(address));
    message.attribute(libc::NDA_LLADDR, &mac);
    netlink
        .request(message)
        .map_err(|error| refused(address, error))
}

fn refused(address: IpAddr, source: NetlinkError) -> NetError {
    NetError::refused("add", format!("the neighbour {address}"), source)
}
