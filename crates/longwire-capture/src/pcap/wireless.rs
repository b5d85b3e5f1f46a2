//! IEEE 802.11 data frames, preceded by a capture driver's header.

use super::counts::LeftOut;
use super::payload::{ETHERTYPE_MIN, Payload, be, length_field};
use super::source::Order;

/// Header that the driver prepends to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Driver {
    /// LINKTYPE_IEEE802_11.
    None,
    /// LINKTYPE_IEEE802_11_PRISM, which may also contain AVS headers.
    Prism,
    /// LINKTYPE_IEEE802_11_RADIOTAP.
    Radiotap,
    /// LINKTYPE_IEEE802_11_AVS.
    Avs,
    /// LINKTYPE_PPI.
    PerPacket,
}

/// Properties of a frame, taken from the driver's header.
#[derive(Clone, Copy, Debug, Default)]
struct Start {
    at: usize,
    /// Whether the frame ends with its FCS.
    has_fcs: bool,
    /// Whether the FCS was incorrect.
    is_damaged: bool,
    /// Whether padding aligns the payload to four bytes, relative to the start of the frame.
    is_padded: bool,
}

const FCS_LEN: u32 = 4;

/// Returns the payload of a data frame, without LLC and SNAP if they contain an EtherType (RFC
/// 1042, IEEE 802.1H).
///
/// # Errors
/// If this is not a data frame, or the payload is incomplete or encrypted.
pub(super) fn payload(driver: Driver, frame: &[u8], wire_len: u32) -> Result<Payload, LeftOut> {
    let start = match driver {
        Driver::None => Start::default(),
        Driver::Prism => prism(frame).ok_or(LeftOut::CutHeader)?,
        Driver::Radiotap => radiotap(frame).ok_or(LeftOut::CutHeader)?,
        Driver::Avs => avs(frame).ok_or(LeftOut::CutHeader)?,
        Driver::PerPacket => per_packet(frame).ok_or(LeftOut::CutHeader)??,
    };
    if start.is_damaged {
        return Err(LeftOut::WirelessDamaged);
    }
    let trailer_len = if start.has_fcs { FCS_LEN } else { 0 };
    let wire_len = wire_len.saturating_sub(trailer_len);
    let frame = &frame[..frame.len().min(wire_len as usize)];
    let inner = frame.get(start.at..).ok_or(LeftOut::CutHeader)?;
    let (receiver, sender, payload_at) = data_frame(inner, start.is_padded)?;
    let at = start.at + payload_at;
    let body = frame.get(at..).ok_or(LeftOut::CutHeader)?;
    let (skipped, kind) = match ether_type(body) {
        Some(kind) => (8, kind),
        None if body.len() < 3 => return Err(LeftOut::CutHeader),
        None => (0, length_field(wire_len - at as u32)?),
    };
    Ok(Payload {
        trailer_len,
        ..Payload::between(receiver, sender, kind, at + skipped)
    })
}

/// Parses the header of a data frame (IEEE 802.11-2020, 9.2 and 9.3.2): its receiver and sender, and
/// the offset of its payload.
fn data_frame(frame: &[u8], is_padded: bool) -> Result<([u8; 6], [u8; 6], usize), LeftOut> {
    const TYPE_DATA: u8 = 2;
    const TO_DISTRIBUTION: u8 = 1;
    const FROM_DISTRIBUTION: u8 = 2;
    const BOTH: u8 = TO_DISTRIBUTION | FROM_DISTRIBUTION;
    let &[first, flags, ..] = frame else {
        return Err(LeftOut::CutHeader);
    };
    let (version, kind, subtype) = (first & 3, first >> 2 & 3, first >> 4);
    if version != 0 || kind != TYPE_DATA {
        return Err(LeftOut::WirelessControl);
    }
    if subtype & 4 != 0 {
        return Err(LeftOut::WirelessEmpty);
    }
    let (more_fragments, is_protected) = (flags & 4 != 0, flags & 0x40 != 0);
    let has_control = flags & 0x80 != 0;
    if is_protected {
        return Err(LeftOut::WirelessEncrypted);
    }
    let address = |at: usize| -> Result<[u8; 6], LeftOut> {
        let bytes = frame.get(at..).and_then(|rest| rest.first_chunk());
        bytes.copied().ok_or(LeftOut::CutHeader)
    };

    let (receiver, sender, mut payload_at) = match flags & BOTH {
        TO_DISTRIBUTION => (address(16)?, address(10)?, 24),
        FROM_DISTRIBUTION => (address(4)?, address(16)?, 24),
        BOTH => (address(16)?, address(24)?, 30),
        _ => (address(4)?, address(10)?, 24),
    };
    let fragment = frame.get(22).ok_or(LeftOut::CutHeader)? & 0xf;
    let mut is_aggregate = false;
    if subtype & 8 != 0 {
        let quality = frame.get(payload_at).ok_or(LeftOut::CutHeader)?;
        is_aggregate = quality & 0x80 != 0;
        payload_at += if has_control { 6 } else { 2 };
    }
    if more_fragments || fragment != 0 || is_aggregate {
        return Err(LeftOut::WirelessPart);
    }
    if is_padded {
        payload_at = payload_at.next_multiple_of(4);
    }
    Ok((receiver, sender, payload_at))
}

/// Returns the EtherType of a payload that starts with LLC and SNAP, unless these are also kept in
/// Ethernet (IEEE 802.1H: AppleTalk address resolution and IPX).
fn ether_type(body: &[u8]) -> Option<u16> {
    let head: &[u8; 8] = body.first_chunk()?;
    let kind = be(head, 6);
    let is_bridged = match head[..6] {
        [0xaa, 0xaa, 3, 0, 0, 0] => !matches!(kind, 0x80f3 | 0x8137),
        [0xaa, 0xaa, 3, 0, 0, 0xf8] => true,
        _ => false,
    };
    (is_bridged && kind >= ETHERTYPE_MIN).then_some(kind)
}

fn u32_at(bytes: &[u8], at: usize, order: Order) -> Option<u32> {
    Some(order.u32(bytes.get(at..at.checked_add(4)?)?, 0))
}

/// Parses a radiotap header (<https://www.radiotap.org>): version, length, and words that list the
/// fields that follow. Uses only the flags, which are the first field or follow a timestamp.
fn radiotap(frame: &[u8]) -> Option<Start> {
    const MORE_WORDS: u32 = 1 << 31;
    const TIME: u32 = 1;
    const FLAGS: u32 = 2;
    if *frame.first()? != 0 {
        return None;
    }
    let len = usize::from(Order::Little.u16(frame.get(..4)?, 2));
    let header = frame.get(..len)?;
    let word = |at| u32_at(header, at, Order::Little);
    let mut at = 4;
    while word(at)? & MORE_WORDS != 0 {
        at += 4;
    }
    at += 4;
    let fields = word(4)?;
    if fields & TIME != 0 {
        at = at.next_multiple_of(8) + 8;
    }
    let flags = match fields & FLAGS {
        0 => 0,
        _ => *header.get(at)?,
    };
    Some(Start {
        at: len,
        has_fcs: flags & 0x10 != 0,
        is_padded: flags & 0x20 != 0,
        is_damaged: flags & 0x40 != 0,
    })
}

/// Parses a Prism header (a message code and the header's length, in the capturing machine's byte
/// order) or an AVS header.
fn prism(frame: &[u8]) -> Option<Start> {
    const CODES: [u32; 2] = [0x41, 0x44];
    let word = |at, order| u32_at(frame, at, order);
    if word(0, Order::Big)? & !0xf == AVS_COOKIE {
        return avs(frame);
    }
    let is_little = CODES.contains(&word(0, Order::Little)?);
    let order = if is_little { Order::Little } else { Order::Big };
    let is_prism = CODES.contains(&word(0, order)?);
    start_at(word(4, order)?).filter(|_| is_prism)
}

/// First word of an AVS header, whose last four bits are the version.
const AVS_COOKIE: u32 = 0x8021_1000;

/// Parses an AVS header: a cookie and the header's length.
fn avs(frame: &[u8]) -> Option<Start> {
    let is_avs = u32_at(frame, 0, Order::Big)? & !0xf == AVS_COOKIE;
    start_at(u32_at(frame, 4, Order::Big)?).filter(|_| is_avs)
}

fn start_at(len: u32) -> Option<Start> {
    Some(Start {
        at: usize::try_from(len).ok()?,
        ..Start::default()
    })
}

/// Parses a PPI header: version, flags, length, link type, and fields. Only the field 802.11-Common
/// is used.
fn per_packet(frame: &[u8]) -> Option<Result<Start, LeftOut>> {
    const WIRELESS: u32 = 105;
    const COMMON: u16 = 2;
    let len = usize::from(Order::Little.u16(frame.get(..4)?, 2));
    let link_type = u32_at(frame, 4, Order::Little)?;
    if link_type != WIRELESS {
        return Some(Err(LeftOut::LinkType(link_type)));
    }
    let mut start = start_at(len as u32)?;
    let mut rest = frame.get(8..len)?;
    while let Some((head, fields)) = rest.split_first_chunk::<4>() {
        let (kind, len) = (Order::Little.u16(head, 0), Order::Little.u16(head, 2));
        let (field, after) = fields.split_at_checked(usize::from(len))?;
        if let (COMMON, Some(flags)) = (kind, field.get(8)) {
            start.has_fcs = flags & 1 != 0;
            start.is_damaged = flags & 4 != 0;
        }
        rest = after;
    }
    Some(Ok(start))
}
