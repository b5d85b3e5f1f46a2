//! Generated networks: links with a delay, and paths over them.

use std::collections::{HashMap, VecDeque};

use longwire_engine::Nanos;
use longwire_runtime::shards::ShardLink;
use longwire_units::random::Stream;

/// A kind of network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Stations around a switch, with a link in each direction: paths of two links.
    Star,
    /// A tree of eight branches at each node: paths lead from leaf to leaf.
    Tree,
    /// A fat tree of switches with equal numbers of ports (Al-Fares et al., 2008): six
    /// links between hosts of different pods, one of the ways at random.
    FatTree,
    /// Nodes with four neighbours each on average: shortest paths. Delays are spread over
    /// two orders of magnitude.
    Random,
}

pub(super) const SHAPES: [Shape; 4] = [Shape::Star, Shape::Tree, Shape::FatTree, Shape::Random];

/// Maximum number of nodes of a random network: a shortest path visits all of them.
const RANDOM_NODES_MAX: usize = 2_500;

/// Branches of a node of a tree.
const BRANCHES: usize = 8;

/// A network.
#[derive(Clone, Debug, Default)]
pub(super) struct Topology {
    /// Its links. The load of each is the number of paths that cross it.
    pub links: Vec<ShardLink>,
    /// Its paths, of one link or more each.
    pub paths: Vec<Vec<u32>>,
}

impl Shape {
    pub fn name(self) -> &'static str {
        match self {
            Shape::Star => "star",
            Shape::Tree => "tree",
            Shape::FatTree => "fat tree",
            Shape::Random => "random",
        }
    }

    /// Generates a network of about this many links with as many paths. `delay`: the
    /// delay of each link, on average in a random network.
    pub fn generate(self, links: usize, delay: Nanos, seed: u64) -> Topology {
        let mut stream = Stream::of_seed(seed);
        let mut topology = match self {
            Shape::Star => star(links, &mut stream),
            Shape::Tree => tree(links, &mut stream),
            Shape::FatTree => fat_tree(links, &mut stream),
            Shape::Random => random(links, &mut stream),
        };
        for link in &mut topology.links {
            let factor = match self {
                // 0.1 to 10 times, evenly in the logarithm.
                Shape::Random => 10_f64.powf(stream.unit() * 2.0 - 1.0),
                _ => 1.0,
            };
            let nanos = delay.as_nanos() as f64 * factor;
            link.lookahead = Nanos::from_nanos(nanos as u64);
        }
        for link in topology.paths.iter().flatten() {
            topology.links[*link as usize].load += 1;
        }
        topology
    }
}

/// Draws two different numbers below `count`, which is at least two.
fn pair(count: usize, stream: &mut Stream) -> (usize, usize) {
    let from = stream.up_to(count as u64 - 1) as usize;
    let to = stream.up_to(count as u64 - 2) as usize;
    (from, if to >= from { to + 1 } else { to })
}

fn star(links: usize, stream: &mut Stream) -> Topology {
    let stations = (links / 2).max(2);
    let path = |_| {
        let (from, to) = pair(stations, stream);
        vec![2 * from as u32, 2 * to as u32 + 1]
    };
    Topology {
        paths: (0..2 * stations).map(path).collect(),
        links: vec![ShardLink::default(); 2 * stations],
    }
}

/// Node 0 is the root; the parent of node `n` is `(n - 1) / 8`. Node `n` has links `2n - 2`
/// up and `2n - 1` down.
fn tree(links: usize, stream: &mut Stream) -> Topology {
    let nodes = (links / 2).max(BRANCHES) + 1;
    let first_leaf = (nodes - 2) / BRANCHES + 1;
    let path = |_| {
        let (from, to) = pair(nodes - first_leaf, stream);
        let (mut from, mut to) = (first_leaf + from, first_leaf + to);
        let (mut up, mut down) = (Vec::new(), Vec::new());
        while from != to {
            // A parent has a lower number: the higher of both is not the common one.
            if from > to {
                up.push(2 * from as u32 - 2);
                from = (from - 1) / BRANCHES;
            } else {
                down.push(2 * to as u32 - 1);
                to = (to - 1) / BRANCHES;
            }
        }
        up.extend(down.into_iter().rev());
        up
    };
    Topology {
        paths: (0..2 * (nodes - 1)).map(path).collect(),
        links: vec![ShardLink::default(); 2 * (nodes - 1)],
    }
}

/// Switches of `ports` ports have `3 ports^3 / 2` links in all: as many between hosts and
/// edge switches as between these and the next tier, and as above that.
fn fat_tree(links: usize, stream: &mut Stream) -> Topology {
    let mut half = 1;
    while 12 * (half + 1_usize).pow(3) <= links {
        half += 1;
    }
    let tier = 2 * half.pow(3);
    // Links up are even and links down odd, tier after tier.
    let up = |level: usize, index: usize| 2 * (level * tier + index) as u32;
    let mut below = |count: usize| stream.up_to(count as u64 - 1) as usize;
    let mut paths = Vec::new();
    while paths.len() < 6 * tier {
        let (from, to) = (below(tier), below(tier));
        if from == to {
            continue;
        }
        let edges = [from / half, to / half];
        let pods = edges.map(|edge| edge / half);
        let mut path = vec![up(0, from)];
        if edges[0] != edges[1] {
            let middle = below(half);
            path.push(up(1, edges[0] * half + middle));
            if pods[0] != pods[1] {
                // A core switch is joined to the switch of the same number in each pod.
                let core = below(half);
                let above = pods.map(|pod| (pod * half + middle) * half + core);
                path.extend([up(2, above[0]), up(2, above[1]) + 1]);
            }
            path.push(up(1, edges[1] * half + middle) + 1);
        }
        path.push(up(0, to) + 1);
        paths.push(path);
    }
    Topology {
        paths,
        links: vec![ShardLink::default(); 6 * tier],
    }
}

/// A ring, so that all nodes are joined, and as many edges at random.
fn random(links: usize, stream: &mut Stream) -> Topology {
    let nodes = (links / 4).clamp(3, RANDOM_NODES_MAX);
    let mut neighbours = vec![Vec::new(); nodes];
    let mut count = 0;
    for node in 0..2 * nodes {
        let (one, other) = if node < nodes {
            (node, (node + 1) % nodes)
        } else {
            pair(nodes, stream)
        };
        neighbours[one].push((other, count));
        neighbours[other].push((one, count + 1));
        count += 2;
    }
    // One search for each start gives the paths to many ends.
    let mut starts: HashMap<usize, Vec<Option<(usize, u32)>>> = HashMap::new();
    let path = |_| {
        let (from, to) = pair(nodes, stream);
        let before = starts
            .entry(from)
            .or_insert_with(|| shortest(from, &neighbours));
        let mut path = Vec::new();
        let mut at = to;
        while let Some((node, link)) = before[at].filter(|_| at != from) {
            path.push(link);
            at = node;
        }
        path.reverse();
        path
    };
    Topology {
        paths: (0..count).map(path).collect(),
        links: vec![ShardLink::default(); count as usize],
    }
}

/// Returns for each node the one before it on a shortest path from `start`, and the link
/// from there (breadth first).
fn shortest(start: usize, neighbours: &[Vec<(usize, u32)>]) -> Vec<Option<(usize, u32)>> {
    let mut before = vec![None; neighbours.len()];
    let mut queue = VecDeque::from([start]);
    while let Some(node) = queue.pop_front() {
        for (next, link) in &neighbours[node] {
            if *next != start && before[*next].is_none() {
                before[*next] = Some((node, *link));
                queue.push_back(*next);
            }
        }
    }
    before
}
