//! Arrivals of the frames in watched links, from which their delays follow.
//!
//! The queue of a network holds frames without the time of their arrival at its link: only
//! for links that someone watches is it kept here. In lanes, frames have it on their lines.

use std::collections::VecDeque;

use longwire_engine::{LinkId, Nanos};

/// Frames of one link whose arrival is kept; of a longer queue, the oldest are forgotten.
const PENDING_MAX: usize = 1 << 16;

/// The arrivals of frames in watched links.
#[derive(Debug, Default)]
pub(super) struct WatchedLinks {
    /// By the link's number; `None` if it is not watched.
    links: Vec<Option<Pending>>,
}

/// The frames of a link that it has not decided about.
#[derive(Debug, Default)]
struct Pending {
    /// The number of the frame offered last, truncated.
    offered: u32,
    /// Numbers and arrivals, in the order of the offers.
    frames: VecDeque<(u32, Nanos)>,
}

impl WatchedLinks {
    /// Returns a table of these links; `None` if there are none.
    pub fn new(links: &[LinkId]) -> Option<Box<WatchedLinks>> {
        let last = links.iter().map(|link| link.0 as usize).max()?;
        let mut watched = WatchedLinks::default();
        watched.links.resize_with(last + 1, || None);
        for link in links {
            watched.links[link.0 as usize] = Some(Pending::default());
        }
        Some(Box::new(watched))
    }

    /// Notes the arrival of a frame. `recorded` is its number if verdicts are recorded;
    /// otherwise it gets one here. Returns the number.
    #[inline]
    pub fn offered(&mut self, link: LinkId, recorded: Option<u32>, arrival: Nanos) -> u32 {
        let Some(Some(pending)) = self.links.get_mut(link.0 as usize) else {
            return recorded.unwrap_or(0);
        };
        // Frames that lanes have put into the queue have the number 0, which is not kept.
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

    /// Returns the arrival of a frame that the link decides about, and forgets it. A frame
    /// is found once: `None` for further deliveries of it.
    #[inline]
    pub fn decided(&mut self, link: LinkId, number: u32) -> Option<Nanos> {
        let frames = &mut self.links.get_mut(link.0 as usize)?.as_mut()?.frames;
        let (first, arrival) = *frames.front()?;
        if first == number {
            frames.pop_front();
            return Some(arrival);
        }
        // Of flow queues: numbers grow, also where they wrap.
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
        // Other links, and frames that were there before, are not known.
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
