//! Virtual Ethernet pairs: frames sent into one end arrive at the other.

use super::link::{fd_number, info};
use super::netlink::{Netlink, REQUEST};
use super::netlink_message::Message;
use super::{NetError, NetNamespace};

/// `IFLA_INFO_KIND`.
const INFO_KIND: u16 = 1;
/// `IFLA_INFO_DATA`.
const INFO_DATA: u16 = 2;
/// `VETH_INFO_PEER`.
const PEER: u16 = 1;

/// One end of a pair.
#[derive(Clone, Copy, Debug, Default)]
pub struct End<'a> {
    /// Device name, at most 15 bytes.
    pub name: &'a str,
    /// The device's namespace; `None` for the calling thread's.
    pub namespace: Option<&'a NetNamespace>,
    /// MTU in bytes, without the Ethernet header; `None` for the kernel's 1500.
    pub mtu: Option<u32>,
    /// MAC address; `None` for a random one.
    pub mac: Option<[u8; 6]>,
    /// Transmit queue length in packets; `None` for the kernel's default.
    pub tx_queue_len: Option<u32>,
    /// Queues per direction; `None` for the kernel's default of one per possible core.
    pub queues: Option<u32>,
    /// Device index in its namespace; `None` for the next free one.
    pub index: Option<u32>,
}

/// Configuration of a veth pair.
#[derive(Clone, Copy, Debug, Default)]
pub struct VethConfig<'a> {
    /// One end.
    pub a: End<'a>,
    /// The other end.
    pub b: End<'a>,
}

/// Creates a pair. Both ends are down.
///
/// # Errors
/// Missing CAP_NET_ADMIN in the calling thread's namespace or an end's, a name that is taken, or an
/// MTU out of range.
pub fn create(config: &VethConfig<'_>) -> Result<(), NetError> {
    let flags = REQUEST | (libc::NLM_F_CREATE | libc::NLM_F_EXCL) as u16;
    let mut message = Message::new(libc::RTM_NEWLINK, flags, &info(config.a.index.unwrap_or(0)));
    describe(&mut message, &config.a);
    message.nested(libc::IFLA_LINKINFO, |link| {
        link.text(INFO_KIND, "veth").nested(INFO_DATA, |data| {
            data.nested(PEER, |peer| {
                peer.raw(&info(config.b.index.unwrap_or(0)));
                describe(peer, &config.b);
            });
        });
    });
    Netlink::route()
        .and_then(|mut netlink| netlink.request(message))
        .map_err(|source| {
            let what = format!("the veth pair '{}' and '{}'", config.a.name, config.b.name);
            NetError::refused("make", what, source)
        })
}

fn describe(message: &mut Message, end: &End<'_>) {
    message.text(libc::IFLA_IFNAME, end.name);
    if let Some(mac) = end.mac {
        message.attribute(libc::IFLA_ADDRESS, &mac);
    }
    for (kind, number) in [
        (libc::IFLA_NET_NS_FD, end.namespace.map(fd_number)),
        (libc::IFLA_MTU, end.mtu),
        (libc::IFLA_TXQLEN, end.tx_queue_len),
        (libc::IFLA_NUM_TX_QUEUES, end.queues),
        (libc::IFLA_NUM_RX_QUEUES, end.queues),
    ] {
        if let Some(number) = number {
            message.number(kind, number);
        }
    }
}
