//! Payloads of captured frames, and the Ethernet headers that belong before them.

use super::left_out::LeftOut;

/// Length of Ethernet's header, in bytes.
pub(super) const ETHERNET_LEN: usize = 14;

/// EtherTypes.
pub(super) const IPV4: u16 = 0x0800;
pub(super) const IPV6: u16 = 0x86dd;
/// The least EtherType; a lower number is a length.
pub(super) const ETHERTYPE_MIN: u16 = 0x0600;
/// The longest payload of a frame with a length in place of its EtherType.
const LENGTH_MAX: u32 = 1500;

/// Locally administered placeholder addresses, for frames whose own are not
/// known.
pub(super) const SENDER: [u8; 6] = [2, 0, 0, 0, 0, 1];
const RECEIVER: [u8; 6] = [2, 0, 0, 0, 0, 2];
const BROADCAST: [u8; 6] = [0xff; 6];

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
    pub(super) fn of(frame: &[u8], at: usize, kind: u16, sender: [u8; 6]) -> Payload {
        Payload::between(group(kind, &frame[at..]), sender, kind, at)
    }

    pub(super) fn broadcast_if(mut self, is_broadcast: bool) -> Payload {
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
