//! A source of prebuilt frames.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use longwire_engine::models::framing::Framing;
use longwire_engine::models::rate::Serializer;
use longwire_engine::{BitRate, Nanos};

use super::Region;
use crate::port::{Offload, PortError, ReceiveResult, RegionId, RxFrame, RxPort};

/// Prefetch distance in an uncached region: a network card would have put the frames in
/// the cache.
const WARM_AHEAD: usize = 4096;

/// Delivers a region's frames repeatedly, as fast as accepted.
#[derive(Debug)]
pub struct Source {
    pub(super) region: Arc<Region>,
    next_place: usize,
    left: u64,
    timeline: Option<Timeline>,
    /// Whether frames are accepted in place, without reading their bytes.
    pub(super) lending: bool,
}

/// Arrivals in virtual time: each frame arrives when a wire of this rate has carried the
/// previous one.
#[derive(Debug)]
struct Timeline {
    wire: Serializer,
    now: Nanos,
}

impl Source {
    /// Creates a source of `count` frames of `size` bytes, from a region of about
    /// `area` bytes, stamped with the time of the call.
    pub fn new(size: usize, area: usize, count: u64) -> Source {
        Source {
            region: Region::new(size, area),
            next_place: 0,
            left: count,
            timeline: None,
            lending: false,
        }
    }

    /// Like [`Source::new`], with the stamps of a saturated wire of this rate, from time
    /// zero on.
    pub fn paced(size: usize, area: usize, rate: BitRate, count: u64) -> Source {
        Source {
            timeline: Some(Timeline {
                wire: Serializer::new(Some(rate), Framing::NONE),
                now: Nanos::ZERO,
            }),
            ..Source::new(size, area, count)
        }
    }
}

impl RxPort for Source {
    #[inline]
    fn receive(
        &mut self,
        now: Nanos,
        max: usize,
        take: &mut impl FnMut(RxFrame<'_>),
    ) -> Result<ReceiveResult, PortError> {
        let frames = self.left.min(max as u64) as usize;
        let len = self.region.size as u32;
        for _ in 0..frames {
            let arrival = match &mut self.timeline {
                None => now,
                Some(timeline) => {
                    let arrival = timeline.now;
                    timeline.now = timeline.wire.depart(arrival, len);
                    arrival
                }
            };
            let place = self.next_place;
            if !self.lending {
                self.region.warm(place + WARM_AHEAD);
            }
            take(RxFrame {
                bytes: self.region.frame(place as u64),
                arrival,
                offload: Offload::NONE,
                wire_len: len,
                lent: Some(place as u64),
            });
            let next = place + self.region.stride;
            self.next_place = if next < self.region.bytes.len() {
                next
            } else {
                0
            };
        }
        self.left -= frames as u64;
        Ok(ReceiveResult {
            frames,
            end: self.left == 0,
        })
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn region(&self) -> Option<RegionId> {
        Some(self.region.id)
    }

    fn frame_max(&self) -> usize {
        self.region.size
    }
}
