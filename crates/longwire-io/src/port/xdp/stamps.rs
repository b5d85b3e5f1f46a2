//! Send stamps of AF_XDP: the kernel writes when a frame left into a piece of
//! memory in front of it, if asked to (TX metadata, Linux 6.8).
//!
//! Where frames are copied, the stamp is taken when the driver is done with
//! the kernel's copy: on a veth device as the frame is handed to the peer. It
//! is on the scale of CLOCK_TAI. Stamped frames go the way of all others, so
//! that none is overtaken.

use std::collections::VecDeque;

use longwire_engine::Nanos;
use nix::time::ClockId;

use super::super::clocks::ahead_of_monotonic;
use super::super::{SendStamp, StampedBy};
use super::umem::Umem;

/// Bytes of `struct xsk_tx_metadata`: flags, and a union of 16 bytes that
/// the stamp begins.
pub(super) const METADATA: usize = 24;
/// Stamps kept until somebody asks for them, and frames waited for; beyond
/// it the oldest are forgotten.
const KEPT_MAX: usize = 8192;

/// Frames whose stamps were asked for, and stamps that came.
#[derive(Debug, Default)]
pub(super) struct Stamps {
    /// Chunks on their way, each with its frame's release.
    waiting: VecDeque<(u64, Nanos)>,
    /// Releases, and times on CLOCK_TAI's scale.
    came: VecDeque<(Nanos, u64)>,
}

impl Stamps {
    /// Asks for the stamp of the frame in a chunk: the metadata that goes in
    /// front of it.
    pub(super) fn ask(&mut self, chunk: u64, release: Nanos) -> [u8; METADATA] {
        if self.waiting.len() == KEPT_MAX {
            self.waiting.pop_front();
        }
        self.waiting.push_back((chunk, release));
        let mut metadata = [0; METADATA];
        let flags = u64::from(libc::XDP_TXMD_FLAGS_TIMESTAMP);
        metadata[..8].copy_from_slice(&flags.to_ne_bytes());
        metadata
    }

    /// The device dropped the frame in this chunk.
    pub(super) fn dropped(&mut self, chunk: u64) {
        self.waiting.retain(|(waiting, _)| *waiting != chunk);
    }

    /// A chunk has come back: takes the stamp, if one was asked for.
    #[inline]
    pub(super) fn completed(&mut self, umem: &Umem, chunk: u64, metadata_at: u64) {
        if !self.waiting.is_empty() {
            self.take(umem, chunk, metadata_at);
        }
    }

    fn take(&mut self, umem: &Umem, chunk: u64, metadata_at: u64) {
        // Nearly always the first: frames leave in order.
        let place = self
            .waiting
            .iter()
            .position(|(waiting, _)| *waiting == chunk);
        let Some((_, release)) = place.and_then(|place| self.waiting.remove(place)) else {
            return;
        };
        // SAFETY: the chunk has come back to the sending half, and no other
        // piece of it is in use.
        let metadata = unsafe { umem.piece(metadata_at, METADATA) };
        let stamp = metadata.and_then(|metadata| metadata[8..].first_chunk().copied());
        let stamp = stamp.map_or(0, u64::from_ne_bytes);
        // Zero: nobody wrote one.
        if stamp > 0 {
            if self.came.len() == KEPT_MAX {
                self.came.pop_front();
            }
            self.came.push_back((release, stamp));
        }
    }

    /// Hands out what has come.
    pub(super) fn drain(&mut self, take: &mut impl FnMut(SendStamp)) {
        if self.came.is_empty() {
            return;
        }
        let ahead = ahead_of_monotonic(ClockId::CLOCK_TAI);
        for (release, tai) in self.came.drain(..) {
            take(SendStamp {
                release,
                left: Nanos::from_nanos(tai.saturating_add_signed(ahead.saturating_neg())),
                by: StampedBy::Kernel,
            });
        }
    }
}
