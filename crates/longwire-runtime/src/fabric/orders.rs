//! Orders: changes of a running fabric, each at a time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use longwire_engine::Nanos;

use super::core::Core;

/// What an order does; it is given its time.
pub type Work = Box<dyn FnOnce(&mut Core, Nanos) + Send>;

/// A change of a running fabric, at a time: between two events.
pub struct Order {
    /// When, on the clock of arrivals.
    pub at: Nanos,
    /// What to do; it is given that time.
    pub work: Work,
}

/// Orders by time, and those of one time in the order in which they came.
#[derive(Default)]
pub(super) struct Orders {
    queued: BinaryHeap<Queued>,
    added: u64,
}

impl Orders {
    pub fn add(&mut self, order: Order) {
        self.added += 1;
        self.queued.push(Queued {
            place: Reverse((order.at, self.added)),
            order,
        });
    }

    /// When the next one is due.
    #[inline]
    pub fn next_at(&self) -> Option<Nanos> {
        self.queued.peek().map(|queued| queued.order.at)
    }

    /// The next one, if it is due by `until`.
    pub fn take_due(&mut self, until: Nanos) -> Option<Order> {
        self.next_at().filter(|at| *at <= until)?;
        self.queued.pop().map(|queued| queued.order)
    }
}

/// An order in its place.
struct Queued {
    place: Reverse<(Nanos, u64)>,
    order: Order,
}

impl PartialEq for Queued {
    fn eq(&self, other: &Queued) -> bool {
        self.place == other.place
    }
}

impl Eq for Queued {}

impl PartialOrd for Queued {
    fn partial_cmp(&self, other: &Queued) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Queued {
    fn cmp(&self, other: &Queued) -> std::cmp::Ordering {
        self.place.cmp(&other.place)
    }
}
