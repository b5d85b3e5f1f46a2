//! The network of a script: nodes, LANs, and links between them.

use std::collections::{HashMap, VecDeque};

/// One direction of a link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EdgeSide {
    /// As `rate` takes it.
    pub rate: String,
    /// One way, in nanoseconds.
    pub delay_ns: u64,
    /// A probability.
    pub loss: f64,
    /// In packets.
    pub queue: Option<u64>,
}

/// A link between two places.
#[derive(Clone, Debug)]
pub struct Edge {
    /// Its name in the topology.
    pub name: String,
    /// The nodes between which `up` leads.
    pub ends: (usize, usize),
    /// From the first to the second.
    pub up: EdgeSide,
    /// Back; a simplex link has none until its counterpart is found.
    pub down: Option<EdgeSide>,
    /// The line that made it.
    pub line: usize,
    /// The LAN that it leads to.
    pub lan: Option<String>,
}

/// A node or a LAN.
#[derive(Clone, Debug)]
pub struct Vertex {
    /// Its name.
    pub name: String,
    /// LANs have no port.
    pub is_lan: bool,
    /// Of a node.
    pub addresses: Vec<String>,
}

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct Network {
    /// Nodes and LANs in the order of the script.
    pub places: Vec<Vertex>,
    /// Links in the order of the script.
    pub edges: Vec<Edge>,
}

impl Network {
    /// The number of a place.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.places.iter().position(|place| place.name == name)
    }

    /// The link between two places, and whether its `up` leads from the first
    /// to the second.
    pub fn between(&mut self, a: usize, b: usize) -> Option<(&mut Edge, bool)> {
        let joins = |edge: &&mut Edge| edge.ends == (a, b) || edge.ends == (b, a);
        let edge = self.edges.iter_mut().find(joins)?;
        let forward = edge.ends == (a, b);
        Some((edge, forward))
    }

    /// From a place to all others by the fewest links, and among those by the
    /// order of the script: for each place the link that leads to it, and the
    /// place before.
    pub fn reached(&self, from: usize) -> Vec<Option<(usize, usize)>> {
        let mut neighbours: HashMap<usize, Vec<(usize, usize)>> = HashMap::new();
        for (index, edge) in self.edges.iter().enumerate() {
            let (a, b) = edge.ends;
            neighbours.entry(a).or_default().push((index, b));
            neighbours.entry(b).or_default().push((index, a));
        }
        let mut reached = vec![None; self.places.len()];
        let mut waiting = VecDeque::from([from]);
        while let Some(place) = waiting.pop_front() {
            for (edge, next) in neighbours.get(&place).into_iter().flatten() {
                if *next != from && reached[*next].is_none() {
                    reached[*next] = Some((*edge, place));
                    waiting.push_back(*next);
                }
            }
        }
        reached
    }
}
