//! Sending stages as threads run them, and the order of departures over several ports.

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicU32};

use longwire_engine::Nanos;
use longwire_io::PortError;
use longwire_io::port::AnyRx;

use super::{Ingress, Step};
use crate::deciding::InsideCounts;
use crate::witness::PauseHistory;

/// A sending stage, for one port or for all ports of a network.
pub(crate) trait OutputStage {
    /// Reads a burst from the `port`-th input of this stage's thread, on which no other sending
    /// stage runs.
    fn read(&mut self, ingress: &mut Ingress<AnyRx>, _port: usize) -> Result<Step, PortError> {
        ingress.step()
    }

    /// Sends at most one burst of due frames. A deciding stage first admits and decides frames.
    ///
    /// # Errors
    /// An output port failed. A loss that the network survives is not an error.
    fn step(&mut self) -> Result<Step, PortError>;

    /// Returns the time of the next known action: a release, or an earlier time if the port has a
    /// lead.
    fn next_release(&mut self) -> Option<Nanos>;

    /// Returns whether no frame is queued in the stage or unsent in its ports.
    fn is_empty(&mut self) -> bool;

    /// Adds a thread whose pauses excuse lateness.
    fn excuse_by(&mut self, pauses: &Arc<PauseHistory>);

    /// Publishes the last counts. Returns the network's counts, if there is one.
    fn finish(&mut self) -> Option<InsideCounts>;

    /// Returns the ports' remarks.
    fn remarks(&self) -> Vec<String>;
}

/// A frame's place among the departures from all ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeparturePlace {
    /// Time of handover.
    pub at: Nanos,
    /// Frame number in the feed, modulo 2^32. Breaks ties.
    pub number: u32,
}

impl Ord for DeparturePlace {
    fn cmp(&self, other: &DeparturePlace) -> Ordering {
        let by_number = || self.number.wrapping_sub(other.number).cast_signed().cmp(&0);
        self.at.cmp(&other.at).then_with(by_number)
    }
}

impl PartialOrd for DeparturePlace {
    fn partial_cmp(&self, other: &DeparturePlace) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The limit on the frames that a port may send before another port must send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// Earliest next departure from the other ports; `None` if they are idle.
    pub before: Option<DeparturePlace>,
    /// Frame number below which all frames are on their lines.
    pub published: u32,
}

impl Turn {
    /// Returns whether a frame may leave in this turn.
    #[inline]
    pub fn allows(&self, place: DeparturePlace) -> bool {
        self.is_published(place) && self.before.is_none_or(|other| place < other)
    }

    /// Returns whether all frames with lower numbers are on their lines.
    #[inline]
    pub fn is_published(&self, place: DeparturePlace) -> bool {
        place.number.wrapping_sub(self.published).cast_signed() < 0
    }
}

/// Number of a feed's published frames, modulo 2^32. Lines are published one after another, so
/// without this number, a reader could see a frame and miss an earlier one on another line.
#[derive(Debug, Default)]
pub(crate) struct FeedNumbers(AtomicU32);

impl FeedNumbers {
    /// Publishes that frames below `number` are on their lines.
    pub fn publish(&self, number: u32) {
        self.0.store(number, atomic::Ordering::Release);
    }

    /// Returns the number of published frames. Call before reading the lines.
    pub fn published(&self) -> u32 {
        self.0.load(atomic::Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_break_ties_and_wrap_around() {
        let place = |at, number| DeparturePlace {
            at: Nanos::from_nanos(at),
            number,
        };
        assert!(place(1, 9) < place(2, 3));
        assert!(place(1, 3) < place(1, 9));
        assert!(place(1, u32::MAX) < place(1, 2));
        let turn = Turn {
            before: Some(place(1, 1)),
            published: 0,
        };
        assert!(turn.allows(place(1, u32::MAX)));
        assert!(!turn.allows(place(0, 0)), "an earlier frame may be unseen");
        assert!(!turn.allows(place(2, u32::MAX)), "the other port's turn");
    }
}
