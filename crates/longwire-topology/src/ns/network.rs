//! A script's network: nodes, LANs and links.

use std::collections::{HashMap, VecDeque};

/// Options of a link in one direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EdgeOptions {
    /// Rate, in `rate` syntax.
    pub rate: String,
    /// Delay in nanoseconds.
    pub delay_ns: u64,
    /// Loss probability.
    pub loss: f64,
    /// Queue limit in packets.
    pub queue: Option<u64>,
}

/// A link between two vertices.
#[derive(Clone, Debug)]
pub struct Edge {
    /// Name in the topology.
    pub name: String,
    /// Source and destination vertex for direction up.
    pub ends: (usize, usize),
    /// Options for direction up.
    pub up: EdgeOptions,
    /// Options for direction down; `None` for a simplex link without a counterpart.
    pub down: Option<EdgeOptions>,
    /// Line of the command that created it.
    pub line: usize,
    /// LAN to which it belongs, if any.
    pub lan: Option<String>,
}

/// A node or a LAN.
#[derive(Clone, Debug)]
pub struct Vertex {
    /// Name.
    pub name: String,
    /// Whether this is a LAN, which has no port.
    pub is_lan: bool,
    /// A node's addresses.
    pub addresses: Vec<String>,
}

/// All vertices and edges.
#[derive(Clone, Debug, Default)]
pub struct Network {
    /// Nodes and LANs in script order.
    pub vertices: Vec<Vertex>,
    /// Links in script order.
    pub edges: Vec<Edge>,
}

impl Network {
    /// Returns the index of a vertex, by name.
    pub fn vertex(&self, name: &str) -> Option<usize> {
        self.vertices.iter().position(|vertex| vertex.name == name)
    }

    /// Returns the link between two vertices, and whether its direction up leads from `a` to `b`.
    pub fn between(&mut self, a: usize, b: usize) -> Option<(&mut Edge, bool)> {
        let joins = |edge: &&mut Edge| edge.ends == (a, b) || edge.ends == (b, a);
        let edge = self.edges.iter_mut().find(joins)?;
        let forward = edge.ends == (a, b);
        Some((edge, forward))
    }

    /// Returns, for each vertex reachable from `from`, the last link of a path with the fewest
    /// links, and the vertex before that link. Ties are broken by script order.
    pub fn shortest_paths(&self, from: usize) -> Vec<Option<(usize, usize)>> {
        let mut neighbours: HashMap<usize, Vec<(usize, usize)>> = HashMap::new();
        for (index, edge) in self.edges.iter().enumerate() {
            let (a, b) = edge.ends;
            neighbours.entry(a).or_default().push((index, b));
            neighbours.entry(b).or_default().push((index, a));
        }
        let mut reached = vec![None; self.vertices.len()];
        let mut waiting = VecDeque::from([from]);
        while let Some(vertex) = waiting.pop_front() {
            for (edge, next) in neighbours.get(&vertex).into_iter().flatten() {
                if *next != from && reached[*next].is_none() {
                    reached[*next] = Some((*edge, vertex));
                    waiting.push_back(*next);
                }
            }
        }
        reached
    }
}
