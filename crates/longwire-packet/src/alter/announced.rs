//! Rewrites addresses announced by SCTP and Multipath TCP.

use super::options::Role;
use super::rewriting::Rewriting;
use crate::bytes::array;
use crate::checksum::{Change, sum_words};
use crate::header::{IpVersion, Options4};

/// Rewrites addresses in the chunks of the SCTP packet at `at` (RFC 9260, section 3.3.2; RFC 5061).
/// Returns whether any address changed.
pub(super) fn sctp(rewriting: &mut Rewriting<'_>, frame: &mut [u8], at: usize, end: usize) -> bool {
    const HEADER: usize = 12;
    const CHUNK_HEADER: usize = 4;
    let end = end.min(frame.len());
    let (mut chunk, mut changed) = (at + HEADER, false);
    while let Some([kind, _, len @ ..]) = array::<4>(&frame[..end], chunk) {
        let len = usize::from(u16::from_be_bytes(len));
        if len < CHUNK_HEADER {
            break;
        }
        // INIT and INIT ACK; ASCONF.
        let parameters = match kind {
            1 | 2 => Some(20),
            0xc1 => Some(8),
            _ => None,
        };
        if let Some(first) = parameters {
            let end = end.min(chunk + len);
            changed |= sctp_parameters(rewriting, frame, chunk + first, end);
        }
        chunk += len.next_multiple_of(4);
    }
    changed
}

fn sctp_parameters(
    rewriting: &mut Rewriting<'_>,
    frame: &mut [u8],
    mut at: usize,
    end: usize,
) -> bool {
    let mut changed = false;
    while let Some([high, low, len @ ..]) = array::<4>(&frame[..end], at) {
        let len = usize::from(u16::from_be_bytes(len));
        let version = match u16::from_be_bytes([high, low]) {
            5 => Some(IpVersion::V4),
            6 => Some(IpVersion::V6),
            // Add, delete and set-primary requests, which contain the address as a nested
            // parameter.
            0xc001 | 0xc002 | 0xc004 => {
                at += 8;
                continue;
            }
            _ => None,
        };
        if let Some(version) = version {
            let change = rewriting.address(frame, at + 4, version, Role::Source);
            changed |= !change.is_none();
        }
        if len < 4 {
            break;
        }
        at += len.next_multiple_of(4);
    }
    changed
}

/// Rewrites addresses in the options of the TCP header at `at` (RFC 8684, section 3.4.1), and
/// returns the change to bytes covered by the checksum.
pub(super) fn multipath_tcp(rewriting: &mut Rewriting<'_>, frame: &mut [u8], at: usize) -> Change {
    const MULTIPATH: u8 = 30;
    const ADD_ADDRESS: u8 = 3;
    let mut change = Change::NONE;
    let words = frame.get(at + 12).map_or(0, |byte| usize::from(byte >> 4));
    let (start, end) = (at + 20, frame.len().min(at + 4 * words));
    let mut next = 0;
    loop {
        let options = frame.get(start..end).unwrap_or(&[]);
        let Some((at, option)) = Options4(options, next).next() else {
            return change;
        };
        next = at + option.len();
        // With or without port and HMAC.
        let version = match (option, option.len()) {
            ([MULTIPATH, _, third, ..], _) if third >> 4 != ADD_ADDRESS => None,
            ([MULTIPATH, ..], 8 | 10 | 16 | 18) => Some(IpVersion::V4),
            ([MULTIPATH, ..], 20 | 22 | 28 | 30) => Some(IpVersion::V6),
            _ => None,
        };
        if let Some(version) = version {
            let before = sum_words(&frame[start..end]);
            _ = rewriting.address(frame, start + at + 4, version, Role::Source);
            change.sums(before, sum_words(&frame[start..end]));
        }
    }
}
