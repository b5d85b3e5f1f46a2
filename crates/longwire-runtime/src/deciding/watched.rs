//! Arrivals at watched links, to compute delays.
//!
//! A network's queue does not keep arrival times, so this table does for watched links.
//! Lanes keep the arrivals of their frames on their lines.

use std::collections::VecDeque;

use longwire_engine::{LinkId, Nanos};

/// Maximum number of arrivals kept per link. With a longer queue, the oldest are lost.
const PENDING_MAX: usize = 1 << 16;

/// Arrivals of the frames in watched links.
#[derive(Debug, Default)]
pub(super) struct WatchedLinks {
    /// Indexed by link number; `None` if not watched.
    links: Vec<Option<Pending>>,
}

/// Undecided frames of a link.
#[derive(Debug, Default)]
struct Pending {
    /// Truncated number of the last offered frame.
    offered: u32,
    /// Numbers and arrivals, in order of offers.
    frames: VecDeque<(u32, Nanos)>,
}

impl WatchedLinks {
    /// Returns a table of these links; `None` if `links` is empty.
    pub fn new(links: &[LinkId]) -> Option<Box<WatchedLinks>> {
        let last = links.iter().map(|link| link.0 as usize).max()?;
        let mut watched = WatchedLinks::default();
        watched.links.resize_with(last + 1, || None);
        for link in links {
            watched.links[link.0 as usize] = Some(Pending::default());
        }
        Some(Box::new(watched))
    }

    /// Records an arrival and returns the frame's number: `recorded` if verdicts are
    /// recorded, otherwise a new one.
    #[inline]
    pub fn offered(&mut self, link: LinkId, recorded: Option<u32>, arrival: Nanos) -> u32 {
        let Some(Some(pending)) = self.links.get_mut(link.0 as usize) else {
            return recorded.unwrap_or(0);
        };
        // Skip 0: it marks frames queued by lanes, which have no entry here.
        let next = match pending.offered.wrapping_add(1) {
            0 => 1,
            next => next,
        };
        let number = recorded.unwrap_or(next);
        pending.offered = number;
        if pending.frames.len() == PENDING_MAX {
            pending.frames.pop_front();
        }
        pending.frames.push_back((number, arrival));
        number
    }

    /// Removes and returns the arrival of a decided frame. `None` for further deliveries of
    /// that frame.
    #[inline]
    pub fn decided(&mut self, link: LinkId, number: u32) -> Option<Nanos> {
        let frames = &mut self.links.get_mut(link.0 as usize)?.as_mut()?.frames;
        let (first, arrival) = *frames.front()?;
        if first == number {
            frames.pop_front();
            return Some(arrival);
        }
        // Flow queues decide out of order, but the entries are sorted by number modulo 2^32.
        let place = |of: &(u32, Nanos)| of.0.wrapping_sub(first);
        let found = frames.binary_search_by_key(&number.wrapping_sub(first), place);
        frames.remove(found.ok()?).map(|(_, arrival)| arrival)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time: u64) -> Nanos {
        Nanos::from_nanos(time)
    }

    #[test]
    fn arrivals_are_found_in_any_order_and_once() {
        let mut watched = WatchedLinks::new(&[LinkId(3)]).expect("a link");
        let link = LinkId(3);
        let numbers: Vec<u32> = (0..5)
            .map(|time| watched.offered(link, None, at(time)))
            .collect();
        for place in [2, 0, 4, 1, 3] {
            let found = watched.decided(link, numbers[place]);
            assert_eq!(found, Some(at(place as u64)));
            assert_eq!(watched.decided(link, numbers[place]), None);
        }
        // Unwatched links and earlier frames are unknown.
        assert_eq!(watched.offered(LinkId(7), None, at(1)), 0);
        assert_eq!(watched.decided(LinkId(7), 0), None);
        assert_eq!(watched.decided(link, 0), None);
    }

    #[test]
    fn numbers_wrap_and_long_queues_forget_their_oldest_frames() {
        let mut watched = WatchedLinks::new(&[LinkId(0)]).expect("a link");
        for number in [u32::MAX - 1, u32::MAX, 0, 1] {
            watched.offered(LinkId(0), Some(number), at(number.into()));
        }
        assert_eq!(watched.decided(LinkId(0), 0), Some(at(0)));
        assert_eq!(
            watched.decided(LinkId(0), u32::MAX),
            Some(at(u32::MAX.into()))
        );
        let mut watched = WatchedLinks::new(&[LinkId(0)]).expect("a link");
        let first = watched.offered(LinkId(0), None, at(1));
        for _ in 0..PENDING_MAX {
            watched.offered(LinkId(0), None, at(2));
        }
        assert_eq!(watched.decided(LinkId(0), first), None);
        assert_eq!(watched.decided(LinkId(0), first + 1), Some(at(2)));
    }
}
