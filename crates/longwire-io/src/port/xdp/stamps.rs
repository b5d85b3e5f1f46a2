//! Send stamps of AF_XDP: on request the kernel writes the departure of a frame into a
//! piece of memory before it (TX metadata, Linux 6.8).
//!
//! If frames are copied, the stamp is taken when the driver is done with the kernel's
//! copy: on a veth device as the frame is handed to the peer. It is on the scale of
//! CLOCK_TAI. All frames take the same path, so that none is overtaken.

use std::collections::VecDeque;

use longwire_engine::Nanos;
use nix::time::ClockId;

use super::super::clocks::ahead_of_monotonic;
use super::super::{SendStamp, StampedBy};
use super::umem::Umem;

/// Bytes of `struct xsk_tx_metadata`: flags, and a union of 16 bytes that begins with
/// the stamp.
pub(super) const METADATA: usize = 24;
/// Maximum number of stamps kept for the caller, and of frames that wait for one;
/// beyond it the oldest are dropped.
const KEPT_MAX: usize = 8192;

/// Frames whose stamps were requested, and received stamps.
#[derive(Debug, Default)]
pub(super) struct PendingStamps {
    /// Chunks in transit, each with its frame's release.
    waiting: VecDeque<(u64, Nanos)>,
    /// Releases, and times on CLOCK_TAI's scale.
    received: VecDeque<(Nanos, u64)>,
}

impl PendingStamps {
    /// Requests the stamp of the frame in a chunk: returns the metadata to write before
    /// it.
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

    /// Records that the device dropped the frame in this chunk.
    pub(super) fn dropped(&mut self, chunk: u64) {
        self.waiting.retain(|(waiting, _)| *waiting != chunk);
    }

    /// Takes the stamp of a completed chunk, if one was requested.
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
        // SAFETY: the chunk was returned to the sending half, and no other
        // piece of it is in use.
        let metadata = unsafe { umem.piece(metadata_at, METADATA) };
        let stamp = metadata.and_then(|metadata| metadata[8..].first_chunk().copied());
        let stamp = stamp.map_or(0, u64::from_ne_bytes);
        // Zero: no stamp was written.
        if stamp > 0 {
            if self.received.len() == KEPT_MAX {
                self.received.pop_front();
            }
            self.received.push_back((release, stamp));
        }
    }

    /// Passes the received stamps to `take`.
    pub(super) fn drain(&mut self, take: &mut impl FnMut(SendStamp)) {
        if self.received.is_empty() {
            return;
        }
        let ahead = ahead_of_monotonic(ClockId::CLOCK_TAI);
        for (release, tai) in self.received.drain(..) {
            take(SendStamp {
                release,
                left: Nanos::from_nanos(tai.saturating_add_signed(ahead.saturating_neg())),
                by: StampedBy::Kernel,
            });
        }
    }
}
