//! Neighbour entries: the MAC address of an IP address on a link.

use std::net::IpAddr;

use super::NetError;
use super::address::{bytes_of, family_of};
use super::link::link_index;
use super::netlink::{Netlink, NetlinkError, REQUEST};
use super::netlink_message::Message;

const REPLACE: u16 = (libc::NLM_F_CREATE | libc::NLM_F_REPLACE) as u16;
/// Bytes of `struct ndmsg`.
const NEIGHBOUR_LEN: usize = 12;

/// Adds or replaces a permanent neighbour entry. The kernel neither resolves nor probes
/// its address: no ARP (RFC 826) or neighbour discovery (RFC 4861) crosses the link for
/// it.
///
/// # Errors
///
/// Without CAP_NET_ADMIN, and if there is no device of that name.
pub fn neighbour_add(name: &str, address: IpAddr, mac: [u8; 6]) -> Result<(), NetError> {
    let index = link_index(name)?;
    let mut netlink = Netlink::route().map_err(|error| refused(address, error))?;
    neighbour_add_by(&mut netlink, index, address, mac)
}

/// Like [`neighbour_add`], with a device index in the namespace of `netlink`.
///
/// # Errors
/// As [`neighbour_add`].
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
    let added = netlink.request(message);
    added.map_err(|error| refused(address, error))
}

fn refused(address: IpAddr, source: NetlinkError) -> NetError {
    NetError::refused("add", format!("the neighbour {address}"), source)
}
