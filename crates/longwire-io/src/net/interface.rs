//! Interface properties from one kernel query, and interface events.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket,
};

use super::NetError;
use super::ethtool::Ethtool;
use super::link::{INFO_LEN, by_name, info, link_names};
use super::netlink::{Netlink, NetlinkError, REQUEST};
use super::netlink_message::{Message, attribute, number_at, replies, text_of};

/// `IFLA_INFO_KIND`.
const INFO_KIND: u16 = 1;

/// An interface's state at the time of the query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The interface's name.
    pub name: String,
    /// Index in its namespace.
    pub index: u32,
    /// MTU in bytes, without the Ethernet header.
    pub mtu: u32,
    /// MAC address; `None` for layer-3 tunnels. `lo` has zeros.
    pub mac: Option<[u8; 6]>,
    /// Whether the interface is administratively up.
    pub up: bool,
    /// Whether the interface is up and has a carrier.
    pub running: bool,
    /// The interface's kind.
    pub kind: InterfaceKind,
    /// Maximum number of receive queues.
    pub rx_queues: u32,
    /// Transmit queue length in packets.
    pub tx_queue_len: u32,
    /// The other end of a veth pair.
    pub peer: Option<Peer>,
    /// Whether an XDP program is attached.
    pub has_xdp: bool,
}

/// The kind of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InterfaceKind {
    /// One end of a pair of virtual Ethernet devices.
    Veth,
    /// A TUN or TAP device.
    Tun,
    /// The loopback device.
    Loopback,
    /// Another virtual device, with the kernel's name for its kind (`bridge`, `vlan`).
    Virtual(String),
    /// A network card, with its driver's name; empty if unknown.
    Physical(String),
}

impl InterfaceKind {
    /// Returns the kernel's name for a virtual device's kind.
    pub(crate) fn virtual_name(&self) -> Option<&str> {
        match self {
            InterfaceKind::Veth => Some("veth"),
            InterfaceKind::Tun => Some("tun"),
            InterfaceKind::Virtual(name) => Some(name),
            InterfaceKind::Loopback | InterfaceKind::Physical(_) => None,
        }
    }
}

/// The other end of a veth pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Index in its own namespace.
    pub index: u32,
    /// Whether the peer is in the same namespace as this end.
    pub here: bool,
    /// Id of its namespace, as seen from this end's namespace, if the namespaces differ.
    pub namespace: Option<u32>,
}

impl Interface {
    /// Looks up an interface in the calling thread's namespace.
    ///
    /// # Errors
    /// [`NetError::NoDevice`] if no interface has this name.
    pub fn find(name: &str) -> Result<Interface, NetError> {
        // The kernel rejects invalid names with EINVAL or ERANGE. To the user, such an interface
        // does not exist.
        let missing = || NetError::NoDevice {
            name: name.to_owned(),
        };
        if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.contains('\0') {
            return Err(missing());
        }
        ask(by_name(libc::RTM_GETLINK, name), name)?.ok_or_else(missing)
    }

    /// Looks up an interface by index.
    ///
    /// # Errors
    /// [`NetError::NoDevice`] if no interface has this index.
    pub(crate) fn find_index(index: u32) -> Result<Interface, NetError> {
        let request = about(index, None);
        let name = format!("number {index}");
        ask(request, &name)?.ok_or(NetError::NoDevice { name })
    }

    /// Returns whether frames have an Ethernet header.
    pub fn is_ethernet(&self) -> bool {
        self.mac.is_some()
    }
}

/// Returns the names of all interfaces in this namespace, for messages: `eth0, lo`.
pub fn names_present() -> String {
    match link_names() {
        Ok(names) if !names.is_empty() => names.join(", "),
        _ => "none".to_owned(),
    }
}

fn ask(request: Message, name: &str) -> Result<Option<Interface>, NetError> {
    let answer = Netlink::route().and_then(|mut netlink| netlink.get(request, read));
    match answer {
        Ok(found) => Ok(found.map(with_driver)),
        Err(refused) if refused.source.raw_os_error() == Some(libc::ENODEV) => Ok(None),
        Err(refused) => {
            let what = format!("device '{name}'");
            Err(NetError::refused("look up", what, refused))
        }
    }
}

/// Adds a network card's driver name.
fn with_driver(mut interface: Interface) -> Interface {
    if let InterfaceKind::Physical(driver) = &mut interface.kind {
        let reported = Ethtool::open().and_then(|ethtool| ethtool.driver(&interface.name));
        *driver = reported.unwrap_or_default();
    }
    interface
}

/// Parses an RTM_NEWLINK message.
pub(super) fn read(payload: &[u8]) -> Option<Interface> {
    let index = number_at(payload, 4)?;
    let flags = number_at(payload, 8)?;
    let body = payload.get(INFO_LEN..)?;
    let number = |kind| attribute(body, kind).and_then(|value| number_at(value, 0));
    let up = flags & libc::IFF_UP as u32 != 0;
    let kind = kind_of(body, flags);
    // The kernel sets this attribute only for other namespaces.
    let namespace = number(libc::IFLA_LINK_NETNSID);
    let other_end = number(libc::IFLA_LINK).filter(|_| kind == InterfaceKind::Veth);
    let peer = other_end.map(|index| Peer {
        index,
        here: namespace.is_none(),
        namespace,
    });
    Some(Interface {
        name: text_of(attribute(body, libc::IFLA_IFNAME)?),
        index,
        mtu: number(libc::IFLA_MTU)?,
        mac: attribute(body, libc::IFLA_ADDRESS).and_then(|mac| mac.try_into().ok()),
        up,
        running: up && flags & libc::IFF_RUNNING as u32 != 0,
        kind,
        rx_queues: number(libc::IFLA_NUM_RX_QUEUES).unwrap_or(1).max(1),
        tx_queue_len: number(libc::IFLA_TXQLEN).unwrap_or(0),
        peer,
        has_xdp: has_xdp(body),
    })
}

fn has_xdp(body: &[u8]) -> bool {
    const ATTACHED: u16 = 2;
    attribute(body, libc::IFLA_XDP)
        .and_then(|xdp| attribute(xdp, ATTACHED))
        .is_some_and(|attached| attached != [0])
}

fn kind_of(body: &[u8], flags: u32) -> InterfaceKind {
    if flags & libc::IFF_LOOPBACK as u32 != 0 {
        return InterfaceKind::Loopback;
    }
    let kind = attribute(body, libc::IFLA_LINKINFO)
        .and_then(|info| attribute(info, INFO_KIND))
        .map(text_of);
    match kind.as_deref() {
        Some("veth") => InterfaceKind::Veth,
        Some("tun") => InterfaceKind::Tun,
        Some(other) => InterfaceKind::Virtual(other.to_owned()),
        None => InterfaceKind::Physical(String::new()),
    }
}

/// `IFLA_TARGET_NETNSID`: the namespace of the requested device.
const TARGET_NAMESPACE: u16 = 46;

/// Builds a request for a device by index, in the namespace with this id as seen from the current
/// one.
pub(crate) fn about(index: u32, namespace: Option<u32>) -> Message {
    let mut message = Message::new(libc::RTM_GETLINK, REQUEST, &info(index));
    if let Some(namespace) = namespace {
        message.number(TARGET_NAMESPACE, namespace);
    }
    message
}

/// Reads a veth peer's MTU.
#[derive(Debug)]
pub(crate) struct PeerMtu {
    netlink: Netlink,
    index: u32,
    namespace: Option<u32>,
}

impl PeerMtu {
    /// Returns a reader for an interface in the calling thread's namespace; `None` unless it is a
    /// veth device.
    ///
    /// # Errors
    /// No descriptor is free.
    pub(crate) fn of(interface: &Interface) -> Result<Option<PeerMtu>, NetlinkError> {
        let Some(peer) = interface.peer else {
            return Ok(None);
        };
        Ok(Some(PeerMtu {
            netlink: Netlink::route()?,
            index: peer.index,
            namespace: peer.namespace,
        }))
    }

    /// Returns the MTU in bytes, without the Ethernet header; `None` without
    /// CAP_NET_ADMIN in the other namespace.
    pub(crate) fn get(&mut self) -> Option<usize> {
        let request = about(self.index, self.namespace);
        Some(self.netlink.get(request, read).ok()??.mtu as usize)
    }
}

/// Device events in the opening thread's namespace, whichever thread reads them.
#[derive(Debug)]
pub struct LinkEvents {
    socket: OwnedFd,
    buffer: Vec<u8>,
}

impl LinkEvents {
    /// Starts collecting events in the calling thread's namespace.
    ///
    /// # Errors
    /// No descriptor is free.
    pub fn open() -> Result<LinkEvents, NetError> {
        let opened = || {
            let socket = socket(
                AddressFamily::Netlink,
                SockType::Raw,
                SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
                SockProtocol::NetlinkRoute,
            )?;
            let groups = libc::RTMGRP_LINK.cast_unsigned();
            bind(socket.as_raw_fd(), &NetlinkAddr::new(0, groups))?;
            Ok(socket)
        };
        let socket = opened()
            .map_err(|error: nix::Error| NetError::system("collect", "events of devices", error))?;
        Ok(LinkEvents {
            socket,
            buffer: vec![0; 1 << 15],
        })
    }

    /// Passes each device change to `take`, oldest first, with the device's state at that time, or
    /// `None` if the kernel dropped events. Never blocks.
    pub fn drain(&mut self, mut take: impl FnMut(Option<Interface>)) {
        loop {
            match recv(self.socket.as_raw_fd(), &mut self.buffer, MsgFlags::empty()) {
                Ok(len) => replies(&self.buffer[..len])
                    .filter(|event| event.kind == libc::RTM_NEWLINK)
                    .filter_map(|event| read(event.payload))
                    .for_each(|found| take(Some(found))),
                Err(Errno::ENOBUFS) => take(None),
                Err(Errno::EINTR) => {}
                Err(_) => return,
            }
        }
    }
}

impl AsFd for LinkEvents {
    /// Returns a descriptor that is readable while events are pending.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_device_is_found() {
        let lo = Interface::find("lo").expect("every namespace has lo");
        assert_eq!(lo.kind, InterfaceKind::Loopback);
        assert_eq!(Interface::find_index(lo.index).expect("by number"), lo);
        assert!(names_present().contains("lo"));
    }

    #[test]
    fn a_name_that_cannot_exist_is_missing() {
        for name in ["", "no-such", "a-name-longer-than-the-kernel-takes", "a\0b"] {
            let error = Interface::find(name).expect_err("no such interface");
            assert!(matches!(error, NetError::NoDevice { .. }), "{error}");
        }
    }
}
