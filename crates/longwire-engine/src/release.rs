//! The release queue: what waits for its release, of many links, by time.

use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Ordering;

use crate::link::LinkId;
use crate::units::Nanos;

/// Items waiting for their release.
///
/// Each link's items wait in a line of their own, and a heap holds the head
/// of each line that is not empty: an idle link costs nothing, and with `n`
/// active links a push or a pop costs O(log n). An item that would overtake
/// its own link's line (order policy `reorder`) waits in the heap itself.
///
/// Ties are broken by the order of pushing.
#[derive(Debug)]
pub struct ReleaseQueue<T> {
    lines: Vec<Line<T>>,
    heads: BinaryHeap<Head<T>>,
    pushed: u64,
    len: usize,
}

/// An item and its place in time.
#[derive(Debug)]
struct Waiting<T> {
    release: Nanos,
    sequence: u64,
    item: T,
}

/// The items of one link that wait in order.
#[derive(Debug)]
struct Line<T> {
    /// The release of the item that stands in the heap for this line.
    head: Option<Nanos>,
    behind: VecDeque<Waiting<T>>,
}

impl<T> Default for Line<T> {
    fn default() -> Line<T> {
        Line {
            head: None,
            behind: VecDeque::new(),
        }
    }
}

/// An item at the head of its link's line, or one that overtook it.
#[derive(Debug)]
struct Head<T> {
    waiting: Waiting<T>,
    link: LinkId,
    overtakes: bool,
}

impl<T> Default for ReleaseQueue<T> {
    fn default() -> ReleaseQueue<T> {
        ReleaseQueue::new()
    }
}

impl<T> ReleaseQueue<T> {
    /// An empty queue.
    pub fn new() -> ReleaseQueue<T> {
        ReleaseQueue {
            lines: Vec::new(),
            heads: BinaryHeap::new(),
            pushed: 0,
            len: 0,
        }
    }

    /// Adds an item of `link`, to be released at `release`.
    pub fn push(&mut self, link: LinkId, release: Nanos, item: T) {
        let waiting = Waiting {
            release,
            sequence: self.pushed,
            item,
        };
        self.pushed += 1;
        self.len += 1;
        let index = link.0 as usize;
        if index >= self.lines.len() {
            self.lines.resize_with(index + 1, Line::default);
        }
        let line = &mut self.lines[index];
        // The line's last item, or its head when it waits alone.
        let tail = line.behind.back().map_or(line.head, |last| Some(last.release));
        match tail {
            Some(tail) if tail <= release => line.behind.push_back(waiting),
            Some(_) => self.heads.push(Head {
                waiting,
                link,
                overtakes: true,
            }),
            None => {
                line.head = Some(release);
                self.heads.push(Head {
                    waiting,
                    link,
                    overtakes: false,
                });
            }
        }
    }

    /// When the next item is due.
    pub fn next_at(&self) -> Option<Nanos> {
        self.heads.peek().map(|head| head.waiting.release)
    }

    /// Takes the next item due at `now` or before: its link, release and
    /// itself.
    pub fn pop_due(&mut self, now: Nanos) -> Option<(LinkId, Nanos, T)> {
        if self.next_at()? > now {
            return None;
        }
        let head = self.heads.pop()?;
        self.len -= 1;
        if !head.overtakes {
            self.advance(head.link);
        }
        Some((head.link, head.waiting.release, head.waiting.item))
    }

    /// Brings the next item of a line whose head has gone to the heap.
    fn advance(&mut self, link: LinkId) {
        let line = &mut self.lines[link.0 as usize];
        let next = line.behind.pop_front();
        line.head = next.as_ref().map(|waiting| waiting.release);
        if let Some(waiting) = next {
            self.heads.push(Head {
                waiting,
                link,
                overtakes: false,
            });
        }
    }

    /// How many items wait.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<T> Head<T> {
    fn key(&self) -> (Nanos, u64) {
        (self.waiting.release, self.waiting.sequence)
    }
}

impl<T> PartialEq for Head<T> {
    fn eq(&self, other: &Head<T>) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Head<T> {}

impl<T> PartialOrd for Head<T> {
    fn partial_cmp(&self, other: &Head<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Head<T> {
    /// Reversed: the standard heap keeps the greatest on top.
    fn cmp(&self, other: &Head<T>) -> Ordering {
        other.key().cmp(&self.key())
    }
}
