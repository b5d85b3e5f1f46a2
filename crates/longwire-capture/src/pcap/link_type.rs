//! Link types of captures, and Ethernet headers for frames captured without one, such as those on
//! the device `any`, on loopback and in tunnels.

use super::counts::{LeftOut, RecordCounts, link_type_name};
use super::payload::{
    ETHERTYPE_MIN, IPV4, IPV6, Payload, SENDER, be, cisco_hdlc, length_field, ppp, pppoe,
};
use super::wireless::{self, Driver};

/// Link type of Ethernet.
pub(super) const ETHERNET: u32 = 1;

/// Link-layer framing of a captured frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Ethernet,
    /// No header: the frame starts with its IPv4 or IPv6 header.
    Ip,
    /// Four bytes that identify the address family, in the capturing machine's byte order
    /// (LINKTYPE_NULL) or in network byte order (LINKTYPE_LOOP).
    Family,
    /// LINKTYPE_LINUX_SLL: 16 bytes.
    Cooked,
    /// LINKTYPE_LINUX_SLL2: 20 bytes.
    Cooked2,
    /// LINKTYPE_PPP and LINKTYPE_PPP_HDLC, which may also contain Cisco HDLC.
    Ppp,
    /// LINKTYPE_PPP_PPPD and LINKTYPE_PPP_WITH_DIR: a direction byte, then PPP.
    PppDirected,
    /// LINKTYPE_PPP_ETHER: a PPPoE header (RFC 2516).
    PppSession,
    /// LINKTYPE_C_HDLC.
    CiscoHdlc,
    /// IEEE 802.11, after a capture driver's header.
    Wireless(Driver),
}

impl Framing {
    /// Returns the framing of a link type (<https://www.tcpdump.org/linktypes.html>), or `None` if
    /// it has no conversion to Ethernet.
    pub(super) fn of(link_type: u32) -> Option<Framing> {
        Some(match link_type {
            ETHERNET => Framing::Ethernet,
            // The number of raw IP differs between systems.
            12 | 14 | 101 | 228 | 229 => Framing::Ip,
            0 | 108 => Framing::Family,
            113 => Framing::Cooked,
            276 => Framing::Cooked2,
            9 | 50 => Framing::Ppp,
            51 => Framing::PppSession,
            166 | 204 => Framing::PppDirected,
            104 => Framing::CiscoHdlc,
            105 => Framing::Wireless(Driver::None),
            119 => Framing::Wireless(Driver::Prism),
            127 => Framing::Wireless(Driver::Radiotap),
            163 => Framing::Wireless(Driver::Avs),
            192 => Framing::Wireless(Driver::PerPacket),
            _ => return None,
        })
    }

    /// Returns the payload of a non-Ethernet frame.
    ///
    /// # Errors
    /// The reason why the frame cannot be converted to Ethernet.
    pub(super) fn payload(self, frame: &[u8], wire_len: u32) -> Result<Payload, LeftOut> {
        let plain = |(at, kind)| Payload::of(frame, at, kind, SENDER);
        match self {
            // The reader returns Ethernet frames unchanged.
            Framing::Ethernet => Err(LeftOut::Protocol),
            Framing::Ip => Ok(plain((0, version(frame)?))),
            Framing::Family => Ok(plain((4, family(frame)?))),
            Framing::Cooked => {
                let head: &[u8; 16] = frame.first_chunk().ok_or(LeftOut::CutHeader)?;
                let sender = station(&head[6..14], usize::from(be(head, 4)));
                let kind = carried(be(head, 2), be(head, 14), wire_len - 16)?;
                let payload = Payload::of(frame, 16, kind, sender);
                Ok(payload.broadcast_if(be(head, 0) == 1))
            }
            Framing::Cooked2 => {
                let head: &[u8; 20] = frame.first_chunk().ok_or(LeftOut::CutHeader)?;
                let sender = station(&head[12..20], usize::from(head[11]));
                let kind = carried(be(head, 8), be(head, 0), wire_len - 20)?;
                let payload = Payload::of(frame, 20, kind, sender);
                Ok(payload.broadcast_if(head[10] == 1))
            }
            Framing::Ppp => ppp(frame).map(plain),
            Framing::PppDirected => {
                let inner = frame.get(1..).ok_or(LeftOut::CutHeader)?;
                ppp(inner).map(|(at, kind)| plain((at + 1, kind)))
            }
            Framing::PppSession => pppoe(frame).map(plain),
            Framing::CiscoHdlc => cisco_hdlc(frame).map(plain),
            Framing::Wireless(driver) => wireless::payload(driver, frame, wire_len),
        }
    }

    /// Counts a converted frame.
    pub(super) fn count_in(self, counts: &mut RecordCounts) {
        match self {
            Framing::Ethernet => {}
            Framing::Ip => counts.raw_ip += 1,
            Framing::Family => counts.loopback += 1,
            Framing::Cooked | Framing::Cooked2 => counts.cooked += 1,
            Framing::Ppp | Framing::PppDirected | Framing::PppSession => counts.ppp += 1,
            Framing::CiscoHdlc => counts.cisco_hdlc += 1,
            Framing::Wireless(_) => counts.wireless += 1,
        }
    }
}

/// Returns an IP packet's EtherType.
fn version(packet: &[u8]) -> Result<u16, LeftOut> {
    match packet.first().ok_or(LeftOut::CutHeader)? >> 4 {
        4 => Ok(IPV4),
        6 => Ok(IPV6),
        _ => Err(LeftOut::Protocol),
    }
}

/// Returns the EtherType of an address family. IPv4 is 2 everywhere; IPv6 differs between systems.
/// No number exceeds 255, which reveals the byte order.
fn family(frame: &[u8]) -> Result<u16, LeftOut> {
    let number = u32::from_be_bytes(*frame.first_chunk().ok_or(LeftOut::CutHeader)?);
    match number.min(number.swap_bytes()) {
        2 => Ok(IPV4),
        10 | 24 | 28 | 30 => Ok(IPV6),
        _ => Err(LeftOut::Protocol),
    }
}

/// Returns the EtherType of a cooked capture's protocol field, whose meaning depends on the kind of
/// device.
fn carried(device: u16, protocol: u16, payload_len: u32) -> Result<u16, LeftOut> {
    const WIRELESS: std::ops::RangeInclusive<u16> = 801..=803;
    const NETLINK: u16 = 824;
    const LOGICAL_LINK_CONTROL: u16 = 4;
    match protocol {
        _ if WIRELESS.contains(&device) || device == NETLINK => Err(LeftOut::Protocol),
        LOGICAL_LINK_CONTROL => length_field(payload_len),
        protocol if protocol >= ETHERTYPE_MIN => Ok(protocol),
        _ => Err(LeftOut::Protocol),
    }
}

/// Returns the sender's address if it is a MAC address.
fn station(address: &[u8], len: usize) -> [u8; 6] {
    match address.first_chunk::<6>() {
        Some(station) if len == 6 && station.iter().any(|byte| *byte != 0) => *station,
        _ => SENDER,
    }
}

/// Returns the reason for rejecting a capture with this link type.
pub(super) fn refusal(link_type: u32) -> String {
    let name = link_type_name(link_type);
    format!(
        "unsupported link type {link_type} ({name}); supported types: Ethernet ({ETHERNET}), raw \
         IP, BSD loopback, Linux cooked, PPP, Cisco HDLC and IEEE 802.11"
    )
}

/// A frame, or the reason why a record is skipped.
pub(super) type Found = Result<Place, LeftOut>;

/// A frame's position in the buffer, and its properties.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) stamp: u64,
    pub(super) at: usize,
    pub(super) len: u32,
    pub(super) wire_len: u32,
    pub(super) framing: Framing,
    pub(super) interface: u32,
}

impl Place {
    /// Describes a frame at `at` with `captured` bytes, and `original` bytes on the wire including
    /// an FCS of `fcs_len` bytes. If `original` is zero, as some tools write, `captured` replaces
    /// it.
    #[inline]
    pub(super) fn new(stamp: u64, at: usize, captured: u32, original: u32, fcs_len: u32) -> Place {
        let wire_len = original.max(captured).saturating_sub(fcs_len);
        Place {
            stamp,
            at,
            len: captured.min(wire_len),
            wire_len,
            framing: Framing::Ethernet,
            interface: 0,
        }
    }

    /// Sets the interface that captured the frame.
    #[inline]
    pub(super) fn on(self, interface: u32) -> Place {
        Place { interface, ..self }
    }

    /// Sets the framing of frames without an Ethernet header.
    #[inline]
    pub(super) fn framed(self, framing: Framing) -> Place {
        Place { framing, ..self }
    }
}
