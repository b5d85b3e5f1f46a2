//! Per-frame rewriting state.

use super::About;
use super::Counts;
use super::addresses::Addresses;
use super::layers::DEPTH_MAX;
use super::mac::Renamed;
use super::options::{PortMap, Role};
use super::renumber::Renumber;
use super::unaltered::Unaltered;
use crate::bytes::array;
use crate::checksum::Change;
use crate::header::IpVersion;

/// State while the packets of a frame are rewritten.
pub(super) struct Rewriting<'a> {
    pub addresses: &'a mut Addresses,
    pub ports: &'a [PortMap],
    pub macs: &'a Renamed<'a>,
    pub renumber: Option<&'a mut Renumber>,
    pub counts: &'a mut Counts,
    pub about: &'a About,
    /// Whether packets inside tunnels are rewritten.
    pub inner: bool,
    /// Whether to look for packets inside tunnels.
    pub looks_inside: bool,
    /// First reason why part of the frame was not rewritten.
    pub unaltered: Option<Unaltered>,
    /// Number of enclosing packets.
    pub depth: u32,
}

impl Rewriting<'_> {
    /// Records that part of the frame stays unchanged.
    pub fn leave(&mut self, reason: Unaltered) {
        self.unaltered = self.unaltered.or(Some(reason));
    }

    /// Rewrites an address at an offset, if present.
    #[inline]
    pub fn address(
        &mut self,
        frame: &mut [u8],
        at: usize,
        version: IpVersion,
        role: Role,
    ) -> Change {
        let mut change = Change::NONE;
        let before = match version {
            IpVersion::V4 => {
                array(frame, at).map(|field| u128::from(u32::from_be_bytes(field)) << 96)
            }
            IpVersion::V6 => array(frame, at).map(u128::from_be_bytes),
        };
        let Some(before) = before else {
            if at < frame.len() {
                self.leave(Unaltered::Truncated);
            }
            return change;
        };
        let round = self.about.round;
        let after = self.addresses.changed(version, before, role, round);
        if after != before {
            let bytes = after.to_be_bytes();
            match version {
                IpVersion::V4 => {
                    change.double((before >> 96) as u32, (after >> 96) as u32);
                    frame[at..at + 4].copy_from_slice(&bytes[..4]);
                }
                IpVersion::V6 => {
                    change.long(before, after);
                    frame[at..at + 16].copy_from_slice(&bytes);
                }
            }
        }
        change
    }

    /// Calls `rewrite` for a nested packet, up to the maximum depth.
    pub fn nested(&mut self, frame: &mut [u8], rewrite: impl FnOnce(&mut Self, &mut [u8])) {
        if self.depth == DEPTH_MAX {
            return self.leave(Unaltered::Malformed);
        }
        self.depth += 1;
        rewrite(self, frame);
        self.depth -= 1;
    }
}
