//! Release queue of the links of a pair.

use std::collections::VecDeque;

use longwire_engine::{LinkId, Nanos, ReleaseQueue};

/// Items of two links, sorted by release; ties keep insertion order. If the releases of
/// each link never decrease, each link needs only a FIFO, which takes a third of the
/// time.
#[derive(Debug)]
pub(super) enum PairReleases<T> {
    /// The releases of each link never decrease.
    InOrder(Lines<T>),
    /// Sorted on one line, each with its link.
    Sorted(ReleaseQueue<(usize, T)>),
}

/// FIFO per link, and the number of items added.
#[derive(Debug)]
pub(super) struct Lines<T> {
    of: [VecDeque<LineItem<T>>; 2],
    added: u64,
}

#[derive(Debug)]
struct LineItem<T> {
    release: Nanos,
    /// Insertion number over both links.
    number: u64,
    item: T,
}

impl<T> LineItem<T> {
    #[inline]
    fn place(&self) -> (Nanos, u64) {
        (self.release, self.number)
    }
}

impl<T> PairReleases<T> {
    /// Returns an empty queue; `in_order` if the releases of each link never decrease.
    pub fn new(in_order: bool) -> PairReleases<T> {
        if in_order {
            PairReleases::InOrder(Lines {
                of: [VecDeque::new(), VecDeque::new()],
                added: 0,
            })
        } else {
            PairReleases::Sorted(ReleaseQueue::new())
        }
    }

    /// Adds an item of link 0 or 1.
    #[inline]
    pub fn push(&mut self, link: usize, release: Nanos, item: T) {
        match self {
            PairReleases::InOrder(lines) => {
                let number = lines.added;
                lines.added += 1;
                let line = &mut lines.of[link];
                debug_assert!(line.back().is_none_or(|last| last.release <= release));
                line.push_back(LineItem {
                    release,
                    number,
                    item,
                });
            }
            PairReleases::Sorted(queue) => queue.push(LinkId(0), release, (link, item)),
        }
    }

    /// Removes the next item if its release is at most `now`; also returns its link.
    #[inline]
    pub fn pop_due(&mut self, now: Nanos) -> Option<(usize, Nanos, T)> {
        match self {
            PairReleases::InOrder(lines) => {
                let link = lines.next()?;
                let line = &mut lines.of[link];
                if line.front()?.release > now {
                    return None;
                }
                let next = line.pop_front()?;
                Some((link, next.release, next.item))
            }
            PairReleases::Sorted(queue) => {
                let (_, release, (link, item)) = queue.pop_due(now)?;
                Some((link, release, item))
            }
        }
    }

    /// Returns the release of the next item.
    pub fn next_at(&self) -> Option<Nanos> {
        match self {
            PairReleases::InOrder(lines) => {
                let next = lines.of[lines.next()?].front();
                next.map(|next| next.release)
            }
            PairReleases::Sorted(queue) => queue.next_at(),
        }
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        match self {
            PairReleases::InOrder(lines) => lines.of.iter().map(VecDeque::len).sum(),
            PairReleases::Sorted(queue) => queue.len(),
        }
    }
}

impl<T> Lines<T> {
    /// Returns the link of the next item.
    #[inline]
    fn next(&self) -> Option<usize> {
        let [first, second] = &self.of;
        match (first.front(), second.front()) {
            (None, None) => None,
            (Some(_), None) => Some(0),
            (None, Some(_)) => Some(1),
            (Some(first), Some(second)) => Some(usize::from(second.place() < first.place())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares non-decreasing releases per link, with many ties, with the sorting queue.
    #[test]
    fn both_kinds_return_the_same_items() {
        let (mut lines, mut oracle) = (PairReleases::new(true), PairReleases::new(false));
        let (mut latest, mut now) = ([0u64; 2], 0u64);
        let (mut state, mut ties) = (1u64, 0);
        for number in 0..20_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let link = (state >> 63) as usize;
            latest[link] = latest[link].max(now) + (state >> 40) % 3;
            ties += u32::from(latest[0] == latest[1]);
            let release = Nanos::from_nanos(latest[link]);
            lines.push(link, release, number);
            oracle.push(link, release, number);
            assert_eq!(lines.next_at(), oracle.next_at());
            now += (state >> 50) % 3;
            let until = Nanos::from_nanos(now);
            while let Some(due) = oracle.pop_due(until) {
                assert_eq!(lines.pop_due(until), Some(due));
            }
            assert_eq!(lines.pop_due(until), None);
            assert_eq!(lines.len(), oracle.len());
        }
        assert!(ties > 1_000, "{ties}");
        while let Some(due) = oracle.pop_due(Nanos::MAX) {
            assert_eq!(lines.pop_due(Nanos::MAX), Some(due));
        }
        assert_eq!((lines.len(), lines.next_at()), (0, None));
    }
}
