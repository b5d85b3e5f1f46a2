//! Frames of serial lines: PPP, PPPoE and Cisco HDLC.

use super::left_out::LeftOut;
use super::payload::{ETHERTYPE_MIN, IPV4, IPV6, be};

/// Address and control of PPP in HDLC-like framing (RFC 1662 section 3.1).
const PPP_HDLC: [u8; 2] = [0xff, 3];

/// Returns the offset and the EtherType of the payload of PPP, which may have left out
/// address, control, and the upper byte of its protocol (RFC 1661 section 6.5 and 6.6).
///
/// # Errors
/// For control protocols, compressed and unknown ones.
pub(super) fn ppp(frame: &[u8]) -> Result<(usize, u16), LeftOut> {
    if let [0x0f | 0x8f, 0, ..] = frame {
        return cisco_hdlc(frame);
    }
    let at = match frame {
        [address, control, ..] if [*address, *control] == PPP_HDLC => 2,
        _ => 0,
    };
    let (protocol, len) = match frame[at..] {
        // The lower byte alone is odd; the upper one is even.
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

/// Returns the EtherType of PPPoE, whose header is the payload's beginning (RFC 2516
/// section 4): a packet of discovery has a code.
///
/// # Errors
/// If the header is cut.
pub(super) fn pppoe(frame: &[u8]) -> Result<(usize, u16), LeftOut> {
    match frame {
        [_, 0, _, _, _, _, ..] => Ok((0, 0x8864)),
        [_, _, _, _, _, _, ..] => Ok((0, 0x8863)),
        _ => Err(LeftOut::CutHeader),
    }
}

/// Returns the offset and the EtherType of the payload of Cisco HDLC: address, control
/// and an EtherType.
///
/// # Errors
/// For protocols whose number means something else in Ethernet.
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
