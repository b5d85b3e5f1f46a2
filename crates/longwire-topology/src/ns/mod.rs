//! Topologies from scripts of ns-2 and Emulab: as much of their language as
//! describes nodes and links. Any other command of a script is refused with
//! its line, except those that do not change the network.

mod network;
mod script;
mod tcl;
mod values;
mod variables;

use std::fmt::Write;

use network::{Edge, EdgeSide, Network};
use script::Script;

/// The queue of a link that gives none: both ns-2 and Emulab have 50 packets.
const QUEUE: u64 = 50;

/// The most nodes: addresses are given to those that have none.
const NODES_MAX: usize = 60_000;

/// The TOML of a script. At most `paths_max` paths join its nodes.
///
/// # Errors
/// `LINE: what is wrong, and what would do`.
pub fn import(text: &str, paths_max: usize) -> Result<String, String> {
    let mut script = Script::default();
    script
        .run(text, 1)
        .map_err(|(line, reason)| format!("{line}: {reason}"))?;
    let mut network = script.network;
    if let Some(edge) = network.edges.iter().find(|edge| edge.down.is_none()) {
        return Err(format!(
            "{}: the link '{}' has no way back; write a second simplex-link, or duplex-link",
            edge.line, edge.name
        ));
    }
    let nodes: Vec<usize> = nodes(&network);
    if nodes.len() < 2 || nodes.len() > NODES_MAX {
        return Err(format!(
            "1: there are {} nodes; there can be 2 to {NODES_MAX}",
            nodes.len()
        ));
    }
    let pairs = nodes.len() * (nodes.len() - 1) / 2;
    if pairs > paths_max {
        return Err(format!(
            "1: {} nodes need up to {pairs} paths, and {paths_max} are allowed; give --paths \
             {pairs}",
            nodes.len()
        ));
    }
    give_addresses(&mut network, &nodes);
    Ok(written(&network, &nodes))
}

fn nodes(network: &Network) -> Vec<usize> {
    let places = network.places.iter().enumerate();
    places
        .filter(|(_, place)| !place.is_lan)
        .map(|(index, _)| index)
        .collect()
}

/// Nodes without an address get one of 10.0.0.0/8 that no other node has.
fn give_addresses(network: &mut Network, nodes: &[usize]) {
    let taken: Vec<String> = network
        .places
        .iter()
        .flat_map(|place| place.addresses.clone())
        .collect();
    let mut free = (1..).map(|nth: u32| std::net::Ipv4Addr::from((10 << 24) + nth).to_string());
    for node in nodes {
        let place = &mut network.places[*node];
        if place.addresses.is_empty() {
            place
                .addresses
                .extend(free.by_ref().find(|address| !taken.contains(address)));
        }
    }
}

fn written(network: &Network, nodes: &[usize]) -> String {
    let mut toml = String::from(
        "# Imported from a script. Change what the ports open to what there is.\n\n[ports]\n",
    );
    let mut line = |text: String| toml = std::mem::take(&mut toml) + &text + "\n";
    for node in nodes {
        let place = &network.places[*node];
        let opens = quoted(&format!("packet:{}", place.name));
        line(format!(
            "{} = {opens} # {}",
            quoted(&place.name),
            place.addresses.join(", ")
        ));
    }
    if nodes.len() == 2 {
        line("\n[switching]\nmode = \"pairs\"".to_owned());
    }
    line(format!("\n[defaults]\nqueue = \"{QUEUE}p\""));
    for edge in &network.edges {
        line(link(edge));
    }
    for (index, from) in nodes.iter().enumerate() {
        let reached = network.reached(*from);
        for to in &nodes[index + 1..] {
            if let Some(text) = path(network, (*from, *to), &reached) {
                line(text);
            }
        }
    }
    toml
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn options(side: &EdgeSide) -> String {
    let mut text = format!("rate = \"{}\"\n", side.rate);
    if side.delay_ns > 0 {
        let delay = longwire_engine::Nanos::from_nanos(side.delay_ns);
        let _ = writeln!(text, "delay = \"{delay}\"");
    }
    if side.loss > 0.0 {
        let percent = format!("{:.7}", side.loss * 100.0);
        let percent = percent.trim_end_matches('0').trim_end_matches('.');
        let _ = writeln!(text, "loss = \"{percent}%\"");
    }
    if let Some(queue) = side.queue {
        let _ = writeln!(text, "queue = \"{queue}p\"");
    }
    text
}

fn link(edge: &Edge) -> String {
    let mut text = format!("\n[[link]]\nname = {}\n", quoted(&edge.name));
    let down = edge.down.as_ref().unwrap_or(&edge.up);
    if edge.up == *down {
        text += &options(&edge.up);
    } else {
        text = text + "[link.up]\n" + &options(&edge.up) + "[link.down]\n" + &options(down);
    }
    text.trim_end().to_owned()
}

/// The path between two nodes, if there is one.
fn path(
    network: &Network,
    (from, to): (usize, usize),
    reached: &[Option<(usize, usize)>],
) -> Option<String> {
    let mut via = Vec::new();
    let mut place = to;
    while place != from {
        let (edge, before) = reached[place]?;
        let edge = &network.edges[edge];
        let way = if edge.ends.0 == before { "" } else { ".down" };
        via.push(quoted(&format!("{}{way}", edge.name)));
        place = before;
    }
    via.reverse();
    let (from, to) = (&network.places[from], &network.places[to]);
    let mut matches = Vec::new();
    for source in &from.addresses {
        for destination in &to.addresses {
            matches.push(format!("\"src={source},dst={destination}\""));
        }
    }
    Some(format!(
        "\n[[path]]\nname = {}\nvia = [{}]\nmatch = [{}]",
        quoted(&format!("{}:{}", from.name, to.name)),
        via.join(", "),
        matches.join(", ")
    ))
}
