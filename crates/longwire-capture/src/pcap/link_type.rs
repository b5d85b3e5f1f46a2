//! Link types of captures, and Ethernet headers for frames without one: captures
//! of all interfaces at once, of loopback and of tunnels hold such frames, with
//! the same payload.

use super::counts::LeftOut;
use super::serial;
use super::wireless::{self, Driver};

/// Length of Ethernet's header, in bytes.
pub(super) const ETHERNET_LEN: usize = 14;

/// The link type of Ethernet.
pub(super) const ETHERNET: u32 = 1;

/// EtherTypes.
pub(super) const IPV4: u16 = 0x0800;
pub(super) const IPV6: u16 = 0x86dd;
/// The least EtherType; a lower number is a length.
pub(super) const ETHERTYPE_MIN: u16 = 0x0600;
/// The longest payload of a frame with a length in place of its EtherType.
const LENGTH_MAX: u32 = 1500;

/// Locally administered placeholder addresses, for frames whose own are not
/// known.
const SENDER: [u8; 6] = [2, 0, 0, 0, 0, 1];
const RECEIVER: [u8; 6] = [2, 0, 0, 0, 0, 2];
const BROADCAST: [u8; 6] = [0xff; 6];

/// The header of a captured frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Ethernet,
    /// None: IPv4 or IPv6 comes first.
    Ip,
    /// Four bytes that name the address family, in the byte order of the
    /// capturing machine (LINKTYPE_NULL) or of the network (LINKTYPE_LOOP).
    Family,
    /// LINKTYPE_LINUX_SLL: 16 bytes.
    Cooked,
    /// LINKTYPE_LINUX_SLL2: 20 bytes.
    Cooked2,
    /// LINKTYPE_PPP and LINKTYPE_PPP_HDLC, which may hold Cisco HDLC too.
    Ppp,
    /// LINKTYPE_PPP_PPPD and LINKTYPE_PPP_WITH_DIR: a byte for the direction, then PPP.
    PppDirected,
    /// LINKTYPE_PPP_ETHER: the header of PPPoE (RFC 2516).
    PppSession,
    /// LINKTYPE_C_HDLC.
    CiscoHdlc,
    /// IEEE 802.11, behind the header of a capturing driver.
    Wireless(Driver),
}

/// The payload of a frame with the Ethernet header that belongs before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Payload {
    /// Offset in the frame.
    pub(super) at: usize,
    pub(super) header: [u8; ETHERNET_LEN],
    /// Bytes after the payload on the wire: a frame check sequence.
    pub(super) trailer_len: u32,
}

impl Payload {
    /// Returns the payload at `at`, between stations of which the capture knows the
    /// sender at most.
    fn of(frame: &[u8], at: usize, kind: u16, sender: [u8; 6]) -> Payload {
        Payload::between(group(kind, &frame[at..]), sender, kind, at)
    }

    fn broadcast_if(mut self, is_broadcast: bool) -> Payload {
        if is_broadcast {
            self.header[..6].copy_from_slice(&BROADCAST);
        }
        self
    }

    /// Returns the payload at `at`, from `sender` to `receiver`.
    pub(super) fn between(receiver: [u8; 6], sender: [u8; 6], kind: u16, at: usize) -> Payload {
        let mut header = [0; ETHERNET_LEN];
        header[..6].copy_from_slice(&receiver);
        header[6..12].copy_from_slice(&sender);
        header[12..].copy_from_slice(&kind.to_be_bytes());
        Payload {
            at,
            header,
            trailer_len: 0,
        }
    }
}

impl Framing {
    /// Returns the framing of this link type
    /// (<https://www.tcpdump.org/linktypes.html>); `None` for types without a
    /// conversion to Ethernet.
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

    /// Returns the payload of a frame that is not Ethernet.
    ///
    /// # Errors
    /// The reason why Ethernet cannot carry it.
    pub(super) fn payload(self, frame: &[u8], wire_len: u32) -> Result<Payload, LeftOut> {
        let plain = |(at, kind)| Payload::of(frame, at, kind, SENDER);
        match self {
            // The reader hands these out as they are.
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
            Framing::Ppp => serial::ppp(frame).map(plain),
            Framing::PppDirected => {
                let inner = frame.get(1..).ok_or(LeftOut::CutHeader)?;
                serial::ppp(inner).map(|(at, kind)| plain((at + 1, kind)))
            }
            Framing::PppSession => serial::pppoe(frame).map(plain),
            Framing::CiscoHdlc => serial::cisco_hdlc(frame).map(plain),
            Framing::Wireless(driver) => wireless::payload(driver, frame, wire_len),
        }
    }
}

/// Returns the number in network byte order.
pub(super) fn be(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Returns Ethernet's type field for a payload that begins with LLC: its length.
pub(super) fn length_field(payload_len: u32) -> Result<u16, LeftOut> {
    match u16::try_from(payload_len) {
        Ok(len) if payload_len <= LENGTH_MAX => Ok(len),
        _ => Err(LeftOut::Protocol),
    }
}

/// Returns the EtherType of an IP packet.
fn version(packet: &[u8]) -> Result<u16, LeftOut> {
    match packet.first().ok_or(LeftOut::CutHeader)? >> 4 {
        4 => Ok(IPV4),
        6 => Ok(IPV6),
        _ => Err(LeftOut::Protocol),
    }
}

/// Returns the EtherType of an address family. IPv4 is 2 everywhere; for IPv6
/// each system has a different number. None is above 255, which determines the
/// byte order.
fn family(frame: &[u8]) -> Result<u16, LeftOut> {
    let number = u32::from_be_bytes(*frame.first_chunk().ok_or(LeftOut::CutHeader)?);
    match number.min(number.swap_bytes()) {
        2 => Ok(IPV4),
        10 | 24 | 28 | 30 => Ok(IPV6),
        _ => Err(LeftOut::Protocol),
    }
}

/// Returns Ethernet's type field for the protocol of a cooked capture, whose
/// meaning depends on the kind of device.
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

/// Returns the sender's address if it is an Ethernet address.
fn station(address: &[u8], len: usize) -> [u8; 6] {
    match address.first_chunk::<6>() {
        Some(station) if len == 6 && station.iter().any(|byte| *byte != 0) => *station,
        _ => SENDER,
    }
}

/// Returns the destination address: multicast has separate addresses (RFC 1112
/// section 6.4, RFC 2464 section 7).
fn group(kind: u16, packet: &[u8]) -> [u8; 6] {
    match kind {
        IPV4 => match packet.get(16..20) {
            Some([255, 255, 255, 255]) => BROADCAST,
            Some([224..=239, b, c, d]) => [1, 0, 0x5e, b & 0x7f, *c, *d],
            _ => RECEIVER,
        },
        IPV6 => match packet.get(24..40) {
            Some([0xff, .., a, b, c, d]) => [0x33, 0x33, *a, *b, *c, *d],
            _ => RECEIVER,
        },
        _ => RECEIVER,
    }
}

/// Returns the name of a link type without a conversion.
pub(super) fn name(link_type: u32) -> &'static str {
    match link_type {
        6 => "token ring",
        10 => "FDDI",
        107 => "frame relay",
        147..=162 => "for private use",
        187 | 201 => "Bluetooth",
        189 | 220 | 249 => "USB",
        195 | 230 | 283 => "IEEE 802.15.4",
        227 => "CAN",
        239 => "Linux netfilter log",
        253 => "netlink",
        _ => "unknown here",
    }
}

/// Returns the reason why a capture of this link type is refused.
pub(super) fn refusal(link_type: u32) -> String {
    let name = name(link_type);
    format!(
        "holds frames of link type {link_type} ({name}); Ethernet ({ETHERNET}), raw IP, BSD \
         loopback, Linux cooked captures, PPP, Cisco HDLC and IEEE 802.11 can be carried: capture \
         on an Ethernet interface, or convert the file"
    )
}
