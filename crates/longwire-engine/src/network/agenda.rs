//! When which link has something to do.

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;

use crate::link::LinkId;
use crate::units::Nanos;

/// Links by the time of their next event. An idle link costs nothing, and
/// with `n` links that are not idle a change costs O(log n).
///
/// A link's time may change before it has come. Its old entry then stays and
/// is passed over when it comes up: that is rare, and cheaper than finding it.
#[derive(Debug, Default)]
pub(super) struct Agenda(BinaryHeap<Reverse<(Nanos, LinkId)>>);

impl Agenda {
    /// Adds an entry.
    #[inline]
    pub fn add(&mut self, at: Nanos, link: LinkId) {
        self.0.push(Reverse((at, link)));
    }

    /// The entry that is next.
    #[inline]
    pub fn first(&self) -> Option<(Nanos, LinkId)> {
        self.0.peek().map(|Reverse(entry)| *entry)
    }

    /// Takes the entry that is next, or puts another of the same link in its
    /// place, which is cheaper than taking and adding.
    #[inline]
    pub fn replace_first(&mut self, at: Option<Nanos>) {
        let Some(mut first) = self.0.peek_mut() else {
            return;
        };
        match at {
            Some(at) => first.0.0 = at,
            None => {
                alloc::collections::binary_heap::PeekMut::pop(first);
            }
        }
    }

    /// How many entries there are, those to be passed over included.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Forgets the entries that `keep` says no to.
    pub fn retain(&mut self, keep: impl Fn(Nanos, LinkId) -> bool) {
        self.0.retain(|Reverse((at, link))| keep(*at, *link));
    }
}
