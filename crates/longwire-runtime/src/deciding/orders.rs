//! Orders: scheduled changes and queries of a running network.

use std::collections::VecDeque;

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
pub(super) struct Orders(VecDeque<Order>);

impl Orders {
    pub fn add(&mut self, order: Order) {
        let place = self.0.partition_point(|other| other.at <= order.at);
        self.0.insert(place, order);
    }

    /// Returns the time of the next order.
    #[inline]
    pub fn next_at(&self) -> Option<Nanos> {
        self.0.front().map(|order| order.at)
    }

    /// Returns the time of the next change.
    #[inline]
    pub fn next_change(&self) -> Option<Nanos> {
        let mut changes = self.0.iter().filter(|order| order.is_change());
        changes.next().map(|order| order.at)
    }

    /// Removes and returns the next order if it is due by `until`.
    pub fn take_due(&mut self, until: Nanos) -> Option<Order> {
        self.next_at().filter(|at| *at <= until)?;
        self.0.pop_front()
    }

    /// Removes and returns the next order if it is a query for a time before `until`.
    #[inline]
    pub fn take_query(&mut self, until: Nanos) -> Option<Query> {
        let next = self.0.front()?;
        if next.is_change() || next.at >= until {
            return None;
        }
        match self.0.pop_front()?.task {
            Task::Query(query) => Some(query),
            Task::Change(_) => None,
        }
    }
}
