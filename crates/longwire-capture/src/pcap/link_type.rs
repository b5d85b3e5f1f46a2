//! Link types of captures, and Ethernet headers for frames without one: captures
//! of all interfaces at once, of loopback and of tunnels hold such frames, with
//! the same payload.

/// Length of Ethernet's header, in bytes.
pub(super) const ETHERNET_LEN: usize = 14;

/// The link type of Ethernet.
pub(super) const ETHERNET: u32 = 1;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

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
}

/// Counts of frames that were captured without an Ethernet header and got one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reframed {
    /// Frames that began with their IP header.
    pub raw_ip: u64,
    /// Frames that began with the four bytes of BSD's loopback.
    pub loopback: u64,
    /// Frames of a Linux cooked capture, as of the device `any`.
    pub cooked: u64,
    /// Frames left out because Ethernet cannot carry them.
    pub left_out: u64,
}

impl Reframed {
    /// Returns the number of frames that got a header.
    pub fn given(&self) -> u64 {
        self.raw_ip + self.loopback + self.cooked
    }

    pub(super) fn add(&mut self, framing: Framing) {
        match framing {
            Framing::Ethernet => {}
            Framing::Ip => self.raw_ip += 1,
            Framing::Family => self.loopback += 1,
            Framing::Cooked | Framing::Cooked2 => self.cooked += 1,
        }
    }
}

impl Framing {
    /// Returns the framing of this link type
    /// (<https://www.tcpdump.org/linktypes.html>); `None` for types that Ethernet
    /// cannot carry.
    pub(super) fn of(link_type: u32) -> Option<Framing> {
        match link_type {
            ETHERNET => Some(Framing::Ethernet),
            // The number of raw IP differs between systems.
            12 | 14 | 101 | 228 | 229 => Some(Framing::Ip),
            0 | 108 => Some(Framing::Family),
            113 => Some(Framing::Cooked),
            276 => Some(Framing::Cooked2),
            _ => None,
        }
    }

    /// Returns the offset of the payload, and the Ethernet header that belongs
    /// before it; `None` if Ethernet cannot carry the frame.
    pub(super) fn header(self, frame: &[u8], wire_len: u32) -> Option<(usize, [u8; ETHERNET_LEN])> {
        let (payload_at, kind, receiver, sender) = match self {
            Framing::Ethernet => return None,
            Framing::Ip => (0, version(frame)?, None, SENDER),
            Framing::Family => (4, family(frame)?, None, SENDER),
            Framing::Cooked => {
                let (head, _) = frame.split_first_chunk::<16>()?;
                let (device, len) = (be(head, 2), be(head, 4));
                let sender = station(&head[6..14], usize::from(len));
                let receiver = (be(head, 0) == 1).then_some(BROADCAST);
                (
                    16,
                    carried(device, be(head, 14), wire_len - 16)?,
                    receiver,
                    sender,
                )
            }
            Framing::Cooked2 => {
                let (head, _) = frame.split_first_chunk::<20>()?;
                let sender = station(&head[12..20], usize::from(head[11]));
                let receiver = (head[10] == 1).then_some(BROADCAST);
                (
                    20,
                    carried(be(head, 8), be(head, 0), wire_len - 20)?,
                    receiver,
                    sender,
                )
            }
        };
        let receiver = receiver.unwrap_or_else(|| group(kind, &frame[payload_at..]));
        let mut header = [0; ETHERNET_LEN];
        header[..6].copy_from_slice(&receiver);
        header[6..12].copy_from_slice(&sender);
        header[12..].copy_from_slice(&kind.to_be_bytes());
        Some((payload_at, header))
    }
}

fn be(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Returns the EtherType of an IP packet.
fn version(packet: &[u8]) -> Option<u16> {
    match packet.first()? >> 4 {
        4 => Some(IPV4),
        6 => Some(IPV6),
        _ => None,
    }
}

/// Returns the EtherType of an address family. IPv4 is 2 everywhere; for IPv6
/// each system has a different number. None is above 255, which determines the
/// byte order.
fn family(frame: &[u8]) -> Option<u16> {
    let number = u32::from_be_bytes(*frame.first_chunk()?);
    match number.min(number.swap_bytes()) {
        2 => Some(IPV4),
        10 | 24 | 28 | 30 => Some(IPV6),
        _ => None,
    }
}

/// Returns Ethernet's type field for the protocol of a cooked capture, whose
/// meaning depends on the kind of device.
fn carried(device: u16, protocol: u16, payload_len: u32) -> Option<u16> {
    const WIRELESS: std::ops::RangeInclusive<u16> = 801..=803;
    const NETLINK: u16 = 824;
    const LOGICAL_LINK_CONTROL: u16 = 4;
    match protocol {
        _ if WIRELESS.contains(&device) || device == NETLINK => None,
        // Ethernet's field then holds the payload's length.
        LOGICAL_LINK_CONTROL => u16::try_from(payload_len).ok().filter(|len| *len <= 1500),
        protocol => (protocol >= 0x0600).then_some(protocol),
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

/// Returns the reason why frames of this link type are refused.
pub(super) fn refusal(link_type: u32) -> String {
    let name = match link_type {
        6 => "token ring",
        9 => "PPP",
        10 => "FDDI",
        50 => "PPP in HDLC framing",
        104 => "Cisco HDLC",
        105 => "IEEE 802.11",
        107 => "frame relay",
        119 => "IEEE 802.11 with Prism header",
        127 => "IEEE 802.11 with radiotap header",
        147..=162 => "for private use",
        187 | 201 => "Bluetooth",
        189 | 220 | 249 => "USB",
        192 => "per-packet information",
        195 | 230 | 283 => "IEEE 802.15.4",
        227 => "CAN",
        239 => "Linux netfilter log",
        253 => "netlink",
        _ => "unknown here",
    };
    format!(
        "holds frames of link type {link_type} ({name}); only Ethernet ({ETHERNET}), raw IP, BSD \
         loopback and Linux cooked captures can be carried: capture on an Ethernet interface, or \
         convert the file"
    )
}
