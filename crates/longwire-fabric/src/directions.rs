//! Directions of links with their counters, for clients that poll at a high rate.

use std::sync::Arc;

use longwire_engine::{LinkId, LinkSpec};
use longwire_runtime::fabric::{FlowCount, Occupancy};
use longwire_runtime::ledger::LinkCells;
use longwire_topology::State;

use crate::controller::Controller;
use crate::numbered::Numbered;

/// A direction of a link, or both directions if they share a queue. Counters are read
/// without locking the network.
#[derive(Clone, Debug)]
pub struct LinkDirection {
    /// Number in the engine.
    pub id: LinkId,
    /// Name, such as `adsl7.up`.
    pub name: String,
    /// State when this was created.
    pub state: State,
    /// Options when this was created.
    pub options: Arc<LinkSpec>,
    /// Counters.
    pub cells: Arc<LinkCells>,
}

impl Controller {
    /// Returns the number of directions of existing links.
    pub fn direction_count(&self) -> usize {
        self.look(|network| network.links.iter().filter(|link| !link.removed).count())
    }

    /// Returns all directions in the order in which they were added.
    pub fn directions(&self) -> Vec<LinkDirection> {
        self.look(|network| {
            let links = 0..network.links.len() as u32;
            links
                .filter_map(|id| network.direction(LinkId(id)))
                .collect()
        })
    }

    /// Returns the direction with a name, such as `adsl7.up`.
    pub fn direction(&self, name: &str) -> Option<LinkDirection> {
        self.look(|network| match network.fitting(name).as_slice() {
            [id] => network.direction(*id),
            _ => None,
        })
    }

    /// Returns the current data of a direction; `None` if it has been removed.
    pub fn direction_of(&self, id: LinkId) -> Option<LinkDirection> {
        self.look(|network| network.direction(id))
    }

    /// Returns the current options of directions; `None` for removed ones.
    pub fn options_of(&self, directions: &[LinkId]) -> Vec<Option<Arc<LinkSpec>>> {
        self.look(|network| {
            let links = directions.iter().map(|id| network.links.get(id.0 as usize));
            links
                .map(|link| link.filter(|link| !link.removed))
                .map(|link| link.map(|link| Arc::clone(&link.options)))
                .collect()
        })
    }

    /// Measures frame delays in these directions only.
    pub fn watch_delays(&self, directions: Vec<LinkId>) {
        self.handle().ask(move |core| core.watch(&directions));
    }

    /// Counts flows in this direction, or stops.
    pub fn watch_flows(&self, direction: Option<LinkId>) {
        self.handle().ask(move |core| core.watch_flows(direction));
    }

    /// Returns the number of frames and the largest flows, in descending order, of the
    /// direction whose flows are counted.
    pub fn flows(&self) -> (u64, Vec<FlowCount>) {
        self.handle().query(|core| core.flows()).unwrap_or_default()
    }

    /// Returns the queue occupancy of each direction; empty once the network has ended.
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
    fn direction(&self, id: LinkId) -> Option<LinkDirection> {
        let link = self.links.get(id.0 as usize)?;
        (!link.removed).then(|| LinkDirection {
            id,
            name: link.name.clone(),
            state: link.state,
            options: Arc::clone(&link.options),
            cells: Arc::clone(&link.cells),
        })
    }
}
