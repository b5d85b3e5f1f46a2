//! Orders: scheduled changes of a running network.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use longwire_engine::Nanos;

use super::core::Core;

/// The operation of an order. It receives the order's time.
pub type Operation = Box<dyn FnOnce(&mut Core, Nanos) + Send>;

/// A query of a running network.
pub type Query = Box<dyn FnOnce(&Core) + Send>;

/// A change or a query of a running network, at a time between two events.
pub struct Order {
    /// The time, on the arrivals' clock.
    pub at: Nanos,
    /// The change or query.
    pub task: Task,
}

/// A change or a query.
pub enum Task {
    /// A change, which receives its time.
    Change(Operation),
    /// A query, which changes nothing.
    Query(Query),
}

impl Order {
    pub(super) fn is_change(&self) -> bool {
        matches!(self.task, Task::Change(_))
    }
}

/// Orders sorted by time. Ties keep the order of submission.
#[derive(Default)]
pub(super) struct Orders {
    queued: BinaryHeap<QueuedOrder>,
    added: u64,
}

impl Orders {
    pub fn add(&mut self, order: Order) {
        self.added += 1;
        self.queued.push(QueuedOrder {
            place: Reverse((order.at, self.added)),
            order,
        });
    }

    /// Returns the time of the next order.
    #[inline]
    pub fn next_at(&self) -> Option<Nanos> {
        self.queued.peek().map(|queued| queued.order.at)
    }

    /// Returns the time of the next change.
    #[inline]
    pub fn next_change(&self) -> Option<Nanos> {
        let next = &self.queued.peek()?.order;
        if next.is_change() {
            Some(next.at)
        } else {
            self.change_after_query()
        }
    }

    #[cold]
    fn change_after_query(&self) -> Option<Nanos> {
        let changes = self.queued.iter().map(|queued| &queued.order);
        let changes = changes.filter(|order| order.is_change());
        changes.map(|order| order.at).min()
    }

    /// Removes and returns the next order if it is due by `until`.
    pub fn take_due(&mut self, until: Nanos) -> Option<Order> {
        self.next_at().filter(|at| *at <= until)?;
        self.queued.pop().map(|queued| queued.order)
    }

    /// Removes and returns the next order if it is a query for a time before `until`.
    #[inline]
    pub fn take_query(&mut self, until: Nanos) -> Option<Query> {
        let next = &self.queued.peek()?.order;
        if next.is_change() || next.at >= until {
            return None;
        }
        match self.queued.pop()?.order.task {
            Task::Query(query) => Some(query),
            Task::Change(_) => None,
        }
    }
}

/// An order with its sequence number.
struct QueuedOrder {
    place: Reverse<(Nanos, u64)>,
    order: Order,
}

impl PartialEq for QueuedOrder {
    fn eq(&self, other: &QueuedOrder) -> bool {
        self.place == other.place
    }
}

impl Eq for QueuedOrder {}

impl PartialOrd for QueuedOrder {
    fn partial_cmp(&self, other: &QueuedOrder) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for QueuedOrder {
    fn cmp(&self, other: &QueuedOrder) -> std::cmp::Ordering {
        self.place.cmp(&other.place)
    }
}
