//! Properties of an interface from one kernel query.

use super::NetError;
use super::ethtool::Ethtool;
use super::link::{info, link_names};
use super::netlink::{Netlink, REQUEST};
use super::netlink_message::{Message, attribute, attributes, number_at, text_of};

/// Bytes of `struct ifinfomsg`.
const INFO_LEN: usize = 16;
/// `IFLA_INFO_KIND`.
const INFO_KIND: u16 = 1;

/// An interface at the time of the query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its index in its namespace.
    pub index: u32,
    /// Its MTU in bytes, without the Ethernet header.
    pub mtu: u32,
    /// Its MAC address; `None` for layer-3 tunnels. `lo` has zeros.
    pub mac: Option<[u8; 6]>,
    /// Whether it is administratively up.
    pub up: bool,
    /// Whether it is up and has a carrier.
    pub running: bool,
    /// Its kind.
    pub kind: InterfaceKind,
    /// Maximum number of its receive queues.
    pub rx_queues: u32,
    /// The other end of a veth pair.
    pub peer: Option<Peer>,
    /// Whether an XDP program runs on it.
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
    /// Another virtual device, with the kernel's name of its kind (`bridge`, `vlan`).
    Virtual(String),
    /// A network card, with its driver's name; empty if unknown.
    Physical(String),
}

/// The other end of a veth pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its index in its own namespace.
    pub index: u32,
    /// Whether it is in the same namespace as this end.
    pub here: bool,
    /// Id of its namespace in that of this end, if they differ.
    pub namespace: Option<u32>,
}

impl Interface {
    /// Looks up an interface in the calling thread's namespace.
    ///
    /// # Errors
    ///
    /// [`NetError::NoDevice`] if there is none of that name.
    pub fn find(name: &str) -> Result<Interface, NetError> {
        // The kernel refuses impossible names with EINVAL or ERANGE; to the user such
        // an interface does not exist.
        let missing = || NetError::NoDevice {
            name: name.to_owned(),
        };
        if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.contains('\0') {
            return Err(missing());
        }
        let mut request = Message::new(libc::RTM_GETLINK, REQUEST, &info(0, 0));
        request.text(libc::IFLA_IFNAME, name);
        ask(request, name)?.ok_or_else(missing)
    }

    /// Looks up an interface by index.
    ///
    /// # Errors
    /// [`NetError::NoDevice`] if the index does not exist.
    pub(crate) fn find_index(index: u32) -> Result<Interface, NetError> {
        let mut fixed = info(0, 0);
        fixed[4..8].copy_from_slice(&index.to_ne_bytes());
        let request = Message::new(libc::RTM_GETLINK, REQUEST, &fixed);
        let name = format!("number {index}");
        ask(request, &name)?.ok_or(NetError::NoDevice { name })
    }

    /// Whether it has an Ethernet header.
    pub fn is_ethernet(&self) -> bool {
        self.mac.is_some()
    }
}

/// Returns the names of all interfaces in this namespace for a message: `eth0, lo`.
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
        Err(refused) => Err(NetError::refused(
            "look up",
            format!("device '{name}'"),
            refused,
        )),
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

/// Reads an RTM_NEWLINK message.
pub(super) fn read(payload: &[u8]) -> Option<Interface> {
    let index = number_at(payload, 4)?;
    let flags = number_at(payload, 8)?;
    let body = payload.get(INFO_LEN..)?;
    let number = |kind| attribute(body, kind).and_then(|value| number_at(value, 0));
    let up = flags & libc::IFF_UP as u32 != 0;
    let kind = kind_of(body, flags);
    let peer = (kind == InterfaceKind::Veth)
        .then(|| number(libc::IFLA_LINK))
        .flatten()
        .map(|index| {
            // The kernel sets this attribute only for other namespaces.
            let namespace = number(libc::IFLA_LINK_NETNSID);
            let here = namespace.is_none();
            Peer {
                index,
                here,
                namespace,
            }
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
        peer,
        has_xdp: has_xdp(body),
    })
}

fn has_xdp(body: &[u8]) -> bool {
    const ATTACHED: u16 = 2;
    attributes(body)
        .find(|(kind, _)| *kind == libc::IFLA_XDP)
        .and_then(|(_, xdp)| attribute(xdp, ATTACHED))
        .is_some_and(|attached| attached != [0])
}

fn kind_of(body: &[u8], flags: u32) -> InterfaceKind {
    if flags & libc::IFF_LOOPBACK as u32 != 0 {
        return InterfaceKind::Loopback;
    }
    let kind = attributes(body)
        .find(|(kind, _)| *kind == libc::IFLA_LINKINFO)
        .and_then(|(_, info)| attribute(info, INFO_KIND))
        .map(text_of);
    match kind.as_deref() {
        Some("veth") => InterfaceKind::Veth,
        Some("tun") => InterfaceKind::Tun,
        Some(other) => InterfaceKind::Virtual(other.to_owned()),
        None => InterfaceKind::Physical(String::new()),
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
