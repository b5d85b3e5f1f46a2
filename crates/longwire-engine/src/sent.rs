//! Frames that a tail-drop queue counts until they depart.

use core::mem;

use longwire_units::Nanos;

use crate::fifo::Fifo;
use crate::prelude::*;

/// Frames whose departures are known: the last one, and earlier ones that had not departed when the
/// next one was added.
#[derive(Debug, Default)]
pub(crate) struct SentFrames {
    last: FrameInService,
    /// Frames in `earlier`. At zero, `earlier` is not read: no heap access with at most one queued frame.
    ahead: u32,
    /// Boxed on first use, because many links are never busy.
    earlier: Option<Box<EarlierFrames>>,
}

/// Frames in order of departure. The first ones may have departed.
#[derive(Debug, Default)]
struct EarlierFrames {
    frames: Fifo<FrameInService>,
    bytes: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct FrameInService {
    departure: Nanos,
    len: u32,
}

impl SentFrames {
    /// No frames.
    pub const NONE: SentFrames = SentFrames {
        last: FrameInService {
            departure: Nanos::ZERO,
            len: 0,
        },
        ahead: 0,
        earlier: None,
    };

    /// Adds a frame after the last one, and removes frames that departed by `now`.
    #[inline]
    pub fn add(&mut self, now: Nanos, departure: Nanos, len: u32) {
        let last = mem::replace(&mut self.last, FrameInService { departure, len });
        if last.departure <= now {
            self.forget_all();
        } else {
            self.add_earlier(now, last);
        }
    }

    /// Returns the frames and bytes that depart after `now`.
    #[inline]
    pub fn counted(&self, now: Nanos) -> (u64, u64) {
        if self.last.departure <= now {
            return (0, 0);
        }
        let earlier = self.earlier.as_ref().filter(|_| self.ahead > 0);
        let (frames, bytes) = earlier.map_or((0, 0), |earlier| earlier.counted(now));
        (frames + 1, bytes + u64::from(self.last.len))
    }

    /// Removes frames that departed by `now`.
    #[inline]
    pub fn forget(&mut self, now: Nanos) {
        if self.ahead > 0
            && let Some(earlier) = &mut self.earlier
        {
            earlier.forget(now);
            self.ahead = earlier.frames.len() as u32;
        }
    }

    /// Returns the departure of the last frame.
    #[inline]
    pub fn last_departure(&self) -> Nanos {
        self.last.departure
    }

    pub fn set_last_departure(&mut self, departure: Nanos) {
        self.last.departure = departure;
    }

    /// Removes all frames but the last.
    #[inline]
    fn forget_all(&mut self) {
        if mem::take(&mut self.ahead) > 0
            && let Some(earlier) = &mut self.earlier
        {
            earlier.clear();
        }
    }

    fn add_earlier(&mut self, now: Nanos, frame: FrameInService) {
        let earlier = self.earlier.get_or_insert_default();
        earlier.forget(now);
        earlier.bytes += u64::from(frame.len);
        earlier.frames.push_back(frame);
        self.ahead = earlier.frames.len() as u32;
    }
}

impl EarlierFrames {
    #[cold]
    fn clear(&mut self) {
        self.frames.clear();
        self.bytes = 0;
    }

    fn forget(&mut self, now: Nanos) {
        while let Some(gone) = self.frames.pop_front_if(|first| first.departure <= now) {
            self.bytes -= u64::from(gone.len);
        }
    }

    fn counted(&self, now: Nanos) -> (u64, u64) {
        let gone = self.frames.iter();
        let gone = gone.take_while(|frame| frame.departure <= now);
        let rest = (self.frames.len() as u64, self.bytes);
        gone.fold(rest, |(frames, bytes), gone| {
            (frames - 1, bytes - u64::from(gone.len))
        })
    }
}
