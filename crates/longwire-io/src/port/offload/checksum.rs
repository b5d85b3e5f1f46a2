//! The Internet checksum (RFC 1071), and the completion of partial checksums.

use longwire_packet::crc32c;
use longwire_packet::header::IpVersion;

use super::Checksum;
use super::headers::{Headers, IpHeader, Transport, be16};
use super::tunnel::{self, InnerBytes};

/// Protocol number of SCTP.
const SCTP: u8 = 132;
/// Offset of the checksum in an SCTP header. No other header whose checksum is left to hardware has
/// it there.
const SCTP_CHECKSUM: u16 = 8;

/// A one's complement sum not yet folded to 16 bits.
///
/// Kept in native byte order: one's complement addition is independent of byte order up to a final
/// swap (RFC 1071 §2 B), which [`Sum::fold`] performs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum(u64);

/// Bytes added per round: eight independent lanes, which the compiler turns into vector additions.
const ROUND: usize = 32;

impl Sum {
    /// Adds bytes. Only the last slice added may have an odd length.
    #[must_use]
    pub(super) fn add(self, bytes: &[u8]) -> Sum {
        // A lane overflows only after 2^32 rounds.
        let mut lanes = [0u64; ROUND / 4];
        let mut rounds = bytes.chunks_exact(ROUND);
        for round in &mut rounds {
            for (lane, word) in lanes.iter_mut().zip(round.chunks_exact(4)) {
                *lane += u64::from(u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
            }
        }
        let mut total: u64 = lanes.iter().sum();
        let mut pairs = rounds.remainder().chunks_exact(2);
        for pair in &mut pairs {
            total += u64::from(u16::from_ne_bytes([pair[0], pair[1]]));
        }
        if let [last] = pairs.remainder() {
            total += u64::from(u16::from_ne_bytes([*last, 0]));
        }
        // Folding to 32 bits keeps any number of slices from overflowing.
        Sum(self.0 + (total >> 32) + (total & 0xffff_ffff))
    }

    /// Adds a number that is in network byte order in the packet.
    #[must_use]
    pub(super) fn add_number(self, value: u16) -> Sum {
        Sum(self.0 + u64::from(u16::from_ne_bytes(value.to_be_bytes())))
    }

    /// Returns the 16-bit sum, not complemented.
    pub(super) fn fold(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        u16::from_be_bytes((sum as u16).to_ne_bytes())
    }
}

/// Returns the pseudo-header sum (RFC 9293 §3.1, RFC 8200 §8.1) for a transport header and payload
/// of `len` bytes.
pub(super) fn pseudo_header(ip: &IpHeader, frame: &[u8], len: usize) -> Sum {
    let (source, destination) = ip.addresses(frame);
    let len = len as u32;
    Sum::default()
        .add(source)
        .add(destination)
        .add_number((len >> 16) as u16)
        .add_number(len as u16)
        .add_number(u16::from(ip.protocol))
}

/// Completes a checksum that a sender left to the hardware: the complement of the sum over all
/// bytes from `start` to the end of the frame, where the checksum field holds the folded
/// pseudo-header sum; for SCTP, CRC32c (RFC 9260 appendix A). Returns `false` if the field lies
/// outside the frame.
pub fn finish_checksum(frame: &mut [u8], checksum: Checksum) -> bool {
    finish_within(frame, checksum, frame.len())
}

/// Like [`finish_checksum`], for a packet that ends at `end`.
fn finish_within(frame: &mut [u8], checksum: Checksum, end: usize) -> bool {
    let start = usize::from(checksum.start);
    let at = start + usize::from(checksum.offset);
    let is_sctp = checksum.offset == SCTP_CHECKSUM;
    if at + if is_sctp { 4 } else { 2 } > end {
        return false;
    }
    if is_sctp {
        frame[at..at + 4].fill(0);
        let sum = crc32c(&[&frame[start..end]]);
        frame[at..at + 4].copy_from_slice(&sum.to_le_bytes());
    } else {
        put_checksum(frame, at, !Sum::default().add(&frame[start..end]).fold());
    }
    true
}

/// Completes the TCP, UDP or SCTP checksum of `frame` if it looks partial, for ports without
/// offload information (AF_XDP). Returns whether it did. Tunnelled packets are tried before the
/// packets around them.
///
/// A TCP or UDP checksum is partial when its field holds the folded pseudo-header sum P. Let S be
/// the sum of header and payload without the field. In one's complement arithmetic, the correct
/// checksum is C = ~(P + S), which is also the result of completing a field that holds P. A correct
/// checksum may happen to equal P, but completing it yields ~(P + S) = C = P again. A correct frame
/// is therefore never damaged, and the function is idempotent. (Zero has two forms, 0x0000 and
/// 0xffff. P is never 0x0000, because the protocol number is not zero, so a UDP field of zero, "no
/// checksum", is never changed. A result of 0x0000 is written as 0xffff: UDP requires this form,
/// TCP accepts both, and a field of P = 0xffff keeps its value.) The only possible error is to
/// repair one in 65,536 of the frames that arrived with an incorrect checksum.
///
/// In a tunnel, the outer sums must be correct once the inner checksum is completed, so the payload
/// of a datagram with a checksum is never changed. The payload of a datagram without a checksum is
/// changed if it is a tunnel header followed by a whole packet with a partial checksum.
///
/// An SCTP checksum is partial when its field is zero.
pub fn finish_if_partial(frame: &mut [u8]) -> bool {
    let found = tunnel::search(frame, |ip, tunnels| {
        let checksum = unfinished(frame, ip)?;
        let inner = InnerBytes {
            start: ip.transport_at,
            sum: !be16(frame, usize::from(checksum.start + checksum.offset))?,
        };
        tunnels.agree(frame, inner).then_some((checksum, ip.end))
    });
    found.is_some_and(|(checksum, end)| finish_within(frame, checksum, end))
}

/// Returns the checksum of the header after `ip` if it looks partial.
fn unfinished(frame: &[u8], ip: &IpHeader) -> Option<Checksum> {
    let start = u16::try_from(ip.transport_at).ok()?;
    if ip.protocol == SCTP {
        let at = ip.transport_at + usize::from(SCTP_CHECKSUM);
        return (frame[..ip.end].get(at..at + 4)? == [0; 4]).then_some(Checksum {
            start,
            offset: SCTP_CHECKSUM,
        });
    }
    let headers = Headers::within(ip, frame)?;
    let partial = pseudo_header(ip, frame, ip.end - ip.transport_at).fold();
    (be16(frame, headers.checksum_at()) == Some(partial)).then_some(headers.checksum())
}

/// Writes the TCP or UDP checksum. All other fields must be valid.
pub(super) fn write_transport_checksum(frame: &mut [u8], headers: &Headers) {
    let at = headers.checksum_at();
    let len = frame.len() - headers.transport_at();
    frame[at..at + 2].fill(0);
    let sum = !pseudo_header(&headers.ip, frame, len)
        .add(&frame[headers.transport_at()..])
        .fold();
    put_checksum(frame, at, sum);
}

/// Writes the IPv4 header checksum.
pub(super) fn write_ipv4_checksum(frame: &mut [u8], at: usize) {
    let len = usize::from(frame[at] & 0x0f) * 4;
    frame[at + 10..at + 12].fill(0);
    let sum = !Sum::default().add(&frame[at..at + len]).fold();
    frame[at + 10..at + 12].copy_from_slice(&sum.to_be_bytes());
}

/// Returns whether a datagram has no checksum, as UDP over IPv4 permits.
pub(super) fn has_no_checksum(frame: &[u8], headers: &Headers) -> bool {
    headers.transport == Transport::Udp
        && headers.ip.network == IpVersion::V4
        && be16(frame, headers.checksum_at()) == Some(0)
}

/// Writes a checksum. Zero becomes 0xffff, because zero means "none" in UDP (RFC 768).
pub(super) fn put_checksum(frame: &mut [u8], at: usize, sum: u16) {
    let sum = if sum == 0 { 0xffff } else { sum };
    frame[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}
