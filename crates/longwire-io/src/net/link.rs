//! Network devices: up and down, settings, removal and statistics.

use std::os::fd::{AsFd, AsRawFd};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::netlink::{Netlink, NetlinkError, REQUEST};
use super::netlink_message::{Message, attribute, number_at, text_of};
use super::{NetError, NetNamespace, list};

/// Bytes of `struct ifinfomsg`.
pub(crate) const INFO_LEN: usize = 16;
/// Offset of the device index in `struct ifinfomsg`.
pub(crate) const INFO_INDEX: usize = 4;
/// Offset of the device flags in `struct ifinfomsg`.
pub(crate) const INFO_FLAGS: usize = 8;
const UP: u32 = libc::IFF_UP as u32;

/// Builds `struct ifinfomsg` with a device index, or 0.
pub(crate) fn info(index: u32) -> [u8; INFO_LEN] {
    let mut bytes = [0; INFO_LEN];
    bytes[INFO_INDEX..INFO_INDEX + 4].copy_from_slice(&index.to_ne_bytes());
    bytes
}

/// Builds a request about a device by name.
pub(crate) fn by_name(kind: u16, name: &str) -> Message {
    let mut message = Message::new(kind, REQUEST, &[0; INFO_LEN]);
    message.text(libc::IFLA_IFNAME, name);
    message
}

fn refused(action: &'static str, name: &str, source: NetlinkError) -> NetError {
    if source.source.raw_os_error() == Some(libc::ENODEV) {
        return no_device(name);
    }
    NetError::refused(action, format!("device '{name}'"), source)
}

fn no_device(name: &str) -> NetError {
    NetError::NoDevice {
        name: name.to_owned(),
    }
}

/// Opens a connection for an action on a device in the calling thread's namespace.
fn open(action: &'static str, name: &str) -> Result<Netlink, NetError> {
    Netlink::route().map_err(|source| refused(action, name, source))
}

/// Changes a device's attributes, in the namespace of `netlink`.
fn change_by(
    netlink: &mut Netlink,
    action: &'static str,
    name: &str,
    fill: impl FnOnce(&mut Message) -> &mut Message,
) -> Result<(), NetError> {
    let mut message = by_name(libc::RTM_NEWLINK, name);
    fill(&mut message);
    netlink
        .request(message)
        .map_err(|source| refused(action, name, source))
}

/// Changes a device's attributes.
fn change(
    action: &'static str,
    name: &str,
    fill: impl FnOnce(&mut Message) -> &mut Message,
) -> Result<(), NetError> {
    change_by(&mut open(action, name)?, action, name, fill)
}

/// Brings a device up. New namespaces need this for `lo` too.
///
/// # Errors
/// [`NetError::NoDevice`] if no device has this name; [`NetError::NetlinkError`] without
/// CAP_NET_ADMIN, or if its driver cannot start it.
pub fn link_up(name: &str) -> Result<(), NetError> {
    set_up_by(&mut open("bring up", name)?, name, true)
}

/// Takes a device down.
///
/// # Errors
/// [`NetError::NoDevice`] if no device has this name; [`NetError::NetlinkError`] without
/// CAP_NET_ADMIN.
pub fn link_down(name: &str) -> Result<(), NetError> {
    set_up_by(&mut open("take down", name)?, name, false)
}

/// Brings a device up or down, in the namespace of `netlink`.
pub(crate) fn set_up_by(netlink: &mut Netlink, name: &str, up: bool) -> Result<(), NetError> {
    let (action, flags) = if up {
        ("bring up", UP)
    } else {
        ("take down", 0)
    };
    let mut fixed = [0; INFO_LEN];
    fixed[INFO_FLAGS..12].copy_from_slice(&flags.to_ne_bytes());
    fixed[12..].copy_from_slice(&UP.to_ne_bytes());
    let mut message = Message::new(libc::RTM_NEWLINK, REQUEST, &fixed);
    message.text(libc::IFLA_IFNAME, name);
    let done = netlink.request(message);
    done.map_err(|source| refused(action, name, source))
}

/// Disables the automatic IPv6 address of a device that is down, so that it sends no IPv6 once up.
///
/// # Errors
/// [`NetError::NoDevice`] if no device has this name; [`NetError::NetlinkError`] without
/// CAP_NET_ADMIN, or on a kernel without IPv6.
pub(crate) fn link_without_own_address(name: &str) -> Result<(), NetError> {
    /// IFLA_INET6_ADDR_GEN_MODE, and its value for no address.
    const GENERATION: u16 = 8;
    const NONE: u8 = 1;
    change("set the addresses of", name, |message| {
        message.nested(libc::IFLA_AF_SPEC, |families| {
            families.nested(libc::AF_INET6 as u16, |of_v6| {
                of_v6.attribute(GENERATION, &[NONE]);
            });
        })
    })
}

/// Removes a device; for a veth pair, both ends.
///
/// # Errors
/// [`NetError::NoDevice`] if no device has this name; [`NetError::NetlinkError`] without
/// CAP_NET_ADMIN, or if the device cannot be removed, such as `lo` and hardware.
pub fn link_delete(name: &str) -> Result<(), NetError> {
    open("remove", name)?
        .request(by_name(libc::RTM_DELLINK, name))
        .map_err(|source| refused("remove", name, source))
}

/// Sets the MTU in bytes, without the Ethernet header.
///
/// # Errors
/// [`NetError::NoDevice`] if no device has this name; [`NetError::NetlinkError`] without
/// CAP_NET_ADMIN, or if the MTU is out of the device's range.
pub fn set_mtu(name: &str, mtu: u32) -> Result<(), NetError> {
    change("set the MTU of", name, |message| {
        message.number(libc::IFLA_MTU, mtu)
    })
}

/// Sets the maximum super-packet length in bytes for IPv4 and IPv6. Values above 65,536 (BIG TCP)
/// require Linux 6.3.
///
/// # Errors
/// [`NetError::NoDevice`] if no device has this name; [`NetError::NetlinkError`] without
/// CAP_NET_ADMIN, or if the length exceeds the device's limit.
pub fn set_gso_max(name: &str, bytes: u32) -> Result<(), NetError> {
    /// From include/uapi/linux/if_link.h, since Linux 6.3.
    const IFLA_GSO_IPV4_MAX_SIZE: u16 = 63;
    for attribute in [libc::IFLA_GSO_MAX_SIZE, IFLA_GSO_IPV4_MAX_SIZE] {
        change("set the maximum super-packet length of", name, |message| {
            message.number(attribute, bytes)
        })?;
    }
    Ok(())
}

/// Sets the transmit queue length in packets, in the namespace of `netlink`.
///
/// # Errors
/// [`NetError::NoDevice`] if no device has this name; [`NetError::NetlinkError`] without
/// CAP_NET_ADMIN.
pub fn set_tx_queue_len(netlink: &mut Netlink, name: &str, packets: u32) -> Result<(), NetError> {
    change_by(netlink, "set the queue length of", name, |message| {
        message.number(libc::IFLA_TXQLEN, packets)
    })
}

/// Sets the MAC address.
///
/// # Errors
/// [`NetError::NoDevice`] if no device has this name; [`NetError::NetlinkError`] without
/// CAP_NET_ADMIN, for a multicast address, or if the device's address is fixed.
pub fn set_mac(name: &str, mac: [u8; 6]) -> Result<(), NetError> {
    change("set the MAC address of", name, |message| {
        message.attribute(libc::IFLA_ADDRESS, &mac)
    })
}

/// Moves a device to another namespace, where it is down and has no addresses.
///
/// # Errors
/// [`NetError::NoDevice`] if no device has this name; [`NetError::NetlinkError`] without
/// CAP_NET_ADMIN in both namespaces, if the name is taken in the other one, or if the device is
/// bound to its namespace, as `lo` is.
pub fn move_to(name: &str, namespace: &NetNamespace) -> Result<(), NetError> {
    change("move", name, |message| {
        message.number(libc::IFLA_NET_NS_FD, fd_number(namespace))
    })
}

/// Returns a namespace's descriptor for rtnetlink.
pub(super) fn fd_number(namespace: &NetNamespace) -> u32 {
    namespace.as_fd().as_raw_fd().cast_unsigned()
}

/// Returns the names of all devices.
///
/// # Errors
/// [`NetError::NetlinkError`] if the kernel provides no netlink socket or aborts the list.
pub fn link_names() -> Result<Vec<String>, NetError> {
    list(libc::RTM_GETLINK, INFO_LEN, "the devices", |payload| {
        attribute(payload.get(INFO_LEN..)?, libc::IFLA_IFNAME).map(text_of)
    })
}

/// Returns a device's index.
///
/// # Errors
/// [`NetError::NoDevice`] if no device has this name; [`NetError::NetlinkError`] if the kernel
/// provides no netlink socket.
pub fn link_index(name: &str) -> Result<u32, NetError> {
    read(name, |payload| number_at(payload, INFO_INDEX))
}

/// A device's counters since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Packets received.
    pub rx_packets: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Received packets dropped by the kernel or the driver.
    pub rx_dropped: u64,
    /// Outgoing packets dropped after the queueing discipline, or because the device was down.
    pub tx_dropped: u64,
}

/// Parses the counters from a device's link message.
pub(crate) fn stats_of(payload: &[u8]) -> Option<LinkStats> {
    let value = attribute(payload.get(INFO_LEN..)?, libc::IFLA_STATS64)?;
    // Fields are in the order of `struct rtnl_link_stats64`.
    let field = |n: usize| Some(u64::from_ne_bytes(*value.get(8 * n..)?.first_chunk::<8>()?));
    Some(LinkStats {
        rx_packets: field(0)?,
        tx_packets: field(1)?,
        rx_dropped: field(6)?,
        tx_dropped: field(7)?,
    })
}

/// Reads a device's counters.
///
/// # Errors
/// [`NetError::NoDevice`] if no device has this name or the device has no counters;
/// [`NetError::NetlinkError`] if the kernel provides no netlink socket.
pub fn link_stats(name: &str) -> Result<LinkStats, NetError> {
    read(name, stats_of)
}

/// Requests a device's link message and parses it.
fn read<T>(name: &str, take: impl FnMut(&[u8]) -> Option<T>) -> Result<T, NetError> {
    let found = open("read", name)?.get(by_name(libc::RTM_GETLINK, name), take);
    let found = found.map_err(|source| refused("read", name, source))?;
    found.ok_or_else(|| no_device(name))
}

/// Waits at most `timeout` for the carrier of a device that is up, and returns whether it has one.
/// Polls, because the kernel's report may be delayed.
///
/// # Errors
/// [`NetError::NoDevice`] if no device has this name, or it is removed during the wait;
/// [`NetError::NetlinkError`] if the kernel provides no netlink socket.
pub fn wait_running(name: &str, timeout: Duration) -> Result<bool, NetError> {
    const OPERATING_STATE: u16 = 16;
    const UP: u8 = 6;
    let end = Instant::now() + timeout;
    loop {
        let state = read(name, |payload| {
            attribute(payload.get(INFO_LEN..)?, OPERATING_STATE)?
                .first()
                .copied()
        })?;
        if state == UP || Instant::now() >= end {
            return Ok(state == UP);
        }
        sleep(Duration::from_millis(1));
    }
}
