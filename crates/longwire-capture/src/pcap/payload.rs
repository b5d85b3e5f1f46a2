//! Payloads of captured frames, including those on serial lines (PPP, PPPoE and Cisco HDLC), and
//! the Ethernet headers to prepend.

use super::counts::LeftOut;

/// Length of an Ethernet header in bytes.
pub(super) const ETHERNET_LEN: usize = 14;

/// EtherTypes.
pub(super) const IPV4: u16 = 0x0800;
pub(super) const IPV6: u16 = 0x86dd;
/// Smallest EtherType; lower values are lengths.
pub(super) const ETHERTYPE_MIN: u16 = 0x0600;
/// Maximum payload of a frame with a length field instead of an EtherType.
const LENGTH_MAX: u32 = 1500;

/// Locally administered placeholder addresses, for frames with unknown addresses.
pub(super) const SENDER: [u8; 6] = [2, 0, 0, 0, 0, 1];
const RECEIVER: [u8; 6] = [2, 0, 0, 0, 0, 2];
const BROADCAST: [u8; 6] = [0xff; 6];

/// A frame's payload, with the Ethernet header to prepend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Payload {
    /// Offset of the payload in the frame.
    pub(super) at: usize,
    pub(super) header: [u8; ETHERNET_LEN],
    /// Bytes after the payload on the wire: an FCS.
    pub(super) trailer_len: u32,
}

impl Payload {
    /// Returns the payload at `at` of a frame captured without the receiver's address.
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

/// Returns the 16-bit number in network byte order at `at`.
pub(super) fn be(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Returns the Ethernet type field of a payload that starts with LLC: the payload's length.
pub(super) fn length_field(payload_len: u32) -> Result<u16, LeftOut> {
    match u16::try_from(payload_len) {
        Ok(len) if payload_len <= LENGTH_MAX => Ok(len),
        _ => Err(LeftOut::Protocol),
    }
}

/// Returns the destination address; multicast addresses are mapped (RFC 1112 section 6.4, RFC 2464
/// section 7).
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

/// Address and control fields of PPP in HDLC-like framing (RFC 1662 section 3.1).
const PPP_HDLC: [u8; 2] = [0xff, 3];

/// Returns the offset and EtherType of a PPP payload. Address, control and the protocol's upper
/// byte may be omitted (RFC 1661 sections 6.5 and 6.6).
///
/// # Errors
/// For control, compressed and unknown protocols.
pub(super) fn ppp(frame: &[u8]) -> Result<(usize, u16), LeftOut> {
    if let [0x0f | 0x8f, 0, ..] = frame {
        return cisco_hdlc(frame);
    }
    let at = match frame {
        [address, control, ..] if [*address, *control] == PPP_HDLC => 2,
        _ => 0,
    };
    let (protocol, len) = match frame[at..] {
        // The lower byte is odd; an odd first byte means that the upper byte is omitted.
        [low, ..] if low & 1 == 1 => (u16::from(low), 1),
        [high, low, ..] => (u16::from_be_bytes([high, low]), 2),
        _ => return Err(LeftOut::CutHeader),
    };
    let kind = match protocol {
        0x0021 => IPV4,
        0x0057 => IPV6,
        // IPX (RFC 1552); MPLS (RFC 3032 section 4.3).
        0x002b => 0x8137,
        0x0281 => 0x8847,
        0x0283 => 0x8848,
        _ => return Err(LeftOut::Protocol),
    };
    Ok((at + len, kind))
}

/// Returns the offset and EtherType of a PPPoE payload, which starts with its PPPoE header (RFC
/// 2516 section 4). Discovery packets have a non-zero code.
///
/// # Errors
/// If the header is truncated.
pub(super) fn pppoe(frame: &[u8]) -> Result<(usize, u16), LeftOut> {
    match frame {
        [_, 0, _, _, _, _, ..] => Ok((0, 0x8864)),
        [_, _, _, _, _, _, ..] => Ok((0, 0x8863)),
        _ => Err(LeftOut::CutHeader),
    }
}

/// Returns the offset and EtherType of a Cisco HDLC payload, which follows address, control and
/// EtherType.
///
/// # Errors
/// For protocols whose number has a different meaning in Ethernet.
pub(super) fn cisco_hdlc(frame: &[u8]) -> Result<(usize, u16), LeftOut> {
    const SLARP: u16 = 0x8035;
    const DISCOVERY: u16 = 0x2000;
    const ISO: u16 = 0xfefe;
    let head: &[u8; 4] = frame.first_chunk().ok_or(LeftOut::CutHeader)?;
    match be(head, 2) {
        SLARP | DISCOVERY | ISO | ..ETHERTYPE_MIN => Err(LeftOut::Protocol),
        kind => Ok((4, kind)),
    }
}
