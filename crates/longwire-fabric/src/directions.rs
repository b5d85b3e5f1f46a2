//! Directions of links with their counters, for clients that read them many times a second.

use std::sync::Arc;

use longwire_engine::{LinkId, LinkSpec};
use longwire_runtime::fabric::{FlowCount, Occupancy};
use longwire_runtime::ledger::LinkCells;
use longwire_topology::State;

use crate::controller::Controller;
use crate::numbered::Numbered;

/// A direction of a link: both directions where they share one queue and rate. Its counters
/// are read without asking the network.
#[derive(Clone, Debug)]
pub struct Direction {
    /// Its number in the engine.
    pub id: LinkId,
    /// The name, as in `adsl7.up`.
    pub name: String,
    /// Whether it carries frames, as of when this was made.
    pub state: State,
    /// The options, as of when this was made.
    pub options: Arc<LinkSpec>,
    /// The counters.
    pub cells: Arc<LinkCells>,
}

impl Controller {
    /// Returns the number of directions, without those of removed links.
    pub fn direction_count(&self) -> usize {
        self.look(|network| network.links.iter().filter(|link| !link.removed).count())
    }

    /// Returns all directions, in the order in which they were added.
    pub fn directions(&self) -> Vec<Direction> {
        self.look(|network| {
            let links = 0..network.links.len() as u32;
            links
                .filter_map(|id| network.direction(LinkId(id)))
                .collect()
        })
    }

    /// Returns the direction of a name.
    pub fn direction(&self, name: &str) -> Option<Direction> {
        self.look(|network| match network.fitting(name).as_slice() {
            [id] => network.direction(*id),
            _ => None,
        })
    }

    /// Returns a direction as it is now; `None` if it has been removed.
    pub fn direction_of(&self, id: LinkId) -> Option<Direction> {
        self.look(|network| network.direction(id))
    }

    /// Returns the options of these directions as they are now, in their order; `None` for
    /// removed ones.
    pub fn options_of(&self, directions: &[LinkId]) -> Vec<Option<Arc<LinkSpec>>> {
        self.look(|network| {
            let links = directions.iter().map(|id| network.links.get(id.0 as usize));
            links
                .map(|link| link.filter(|link| !link.removed))
                .map(|link| link.map(|link| Arc::clone(&link.options)))
                .collect()
        })
    }

    /// Counts the delays of frames in these directions, and in no others, from now on.
    pub fn watch_delays(&self, directions: Vec<LinkId>) {
        self.handle().ask(move |core| core.watch(&directions));
    }

    /// Counts the flows of this direction, or of none, from now on.
    pub fn watch_flows(&self, direction: Option<LinkId>) {
        self.handle().ask(move |core| core.watch_flows(direction));
    }

    /// Returns the number of frames of the direction whose flows are counted, and its
    /// largest flows, the largest first.
    pub fn flows(&self) -> (u64, Vec<FlowCount>) {
        self.handle().query(|core| core.flows()).unwrap_or_default()
    }

    /// Returns the occupancy of the queues of these directions, in their order; empty if
    /// the network has ended.
    pub fn occupancies(&self, directions: Vec<LinkId>) -> Vec<Option<Occupancy>> {
        if !self.takes_changes() {
            self.handle().refresh();
            let directions = directions.iter();
            return directions
                .map(|id| self.handle().output_occupancy(*id))
                .collect();
        }
        let read = self.handle().query(move |core| {
            let directions = directions.iter();
            directions.map(|id| core.occupancy(*id)).collect()
        });
        read.unwrap_or_default()
    }
}

impl Numbered {
    fn direction(&self, id: LinkId) -> Option<Direction> {
        let link = self.links.get(id.0 as usize)?;
        (!link.removed).then(|| Direction {
            id,
            name: link.name.clone(),
            state: link.state,
            options: Arc::clone(&link.options),
            cells: Arc::clone(&link.cells),
        })
    }
}
