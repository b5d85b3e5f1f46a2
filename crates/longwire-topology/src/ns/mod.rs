//! Imports topologies from ns-2 and Emulab scripts: the commands that describe nodes and links.
//! Commands that do not affect the network are ignored; unsupported ones are rejected with their
//! line.

mod network;
mod script;
mod tcl;

use std::fmt::Write;

use longwire_engine::Nanos;
use network::{Edge, EdgeOptions, Network};
use script::Script;

/// Default queue length in ns-2 and Emulab, in packets.
const QUEUE: u64 = 50;

/// Maximum number of nodes.
const NODES_MAX: usize = 60_000;

/// Converts a script to TOML, with at most `paths_max` paths between nodes.
///
/// # Errors
/// A message of the form `LINE: reason; remedy`.
pub fn import(text: &str, paths_max: usize) -> Result<String, String> {
    let mut script = Script::default();
    let run = script.run(text, 1);
    run.map_err(|(line, reason)| format!("{line}: {reason}"))?;
    let mut network = script.network;
    if let Some(edge) = network.edges.iter().find(|edge| edge.down.is_none()) {
        return Err(format!(
            "{}: link '{}' has no reverse direction; add a second simplex-link, or use duplex-link",
            edge.line, edge.name
        ));
    }
    let nodes: Vec<usize> = nodes(&network);
    let count = nodes.len();
    if !(2..=NODES_MAX).contains(&count) {
        return Err(format!("1: {count} nodes; a topology has 2 to {NODES_MAX}"));
    }
    let pairs = count * (count - 1) / 2;
    if pairs > paths_max {
        return Err(format!(
            "1: {count} nodes need up to {pairs} paths, but {paths_max} are allowed; pass --paths \
             {pairs}"
        ));
    }
    give_addresses(&mut network, &nodes);
    Ok(written(&network, &nodes))
}

fn nodes(network: &Network) -> Vec<usize> {
    let vertices = network.vertices.iter().enumerate();
    let nodes = vertices.filter(|(_, vertex)| !vertex.is_lan);
    nodes.map(|(index, _)| index).collect()
}

/// Assigns unused addresses in 10.0.0.0/8 to nodes without one.
fn give_addresses(network: &mut Network, nodes: &[usize]) {
    let taken = network.vertices.iter().flat_map(|vertex| &vertex.addresses);
    let taken: Vec<String> = taken.cloned().collect();
    let mut free = (1..).map(|nth: u32| std::net::Ipv4Addr::from((10 << 24) + nth).to_string());
    for node in nodes {
        let vertex = &mut network.vertices[*node];
        if vertex.addresses.is_empty() {
            let unused = free.by_ref().find(|address| !taken.contains(address));
            vertex.addresses.extend(unused);
        }
    }
}

fn written(network: &Network, nodes: &[usize]) -> String {
    let mut toml = String::from(
        "# Imported from a script. Replace the ports with existing interfaces.\n\n[ports]\n",
    );
    let mut line = |text: String| toml = std::mem::take(&mut toml) + &text + "\n";
    for node in nodes {
        let vertex = &network.vertices[*node];
        let opens = quoted(&format!("packet:{}", vertex.name));
        let (name, addresses) = (quoted(&vertex.name), vertex.addresses.join(", "));
        line(format!("{name} = {opens} # {addresses}"));
    }
    if nodes.len() == 2 {
        line("\n[switching]\nmode = \"pairs\"".to_owned());
    }
    line(format!("\n[defaults]\nqueue = \"{QUEUE}p\""));
    for edge in &network.edges {
        line(link(edge));
    }
    for (index, from) in nodes.iter().enumerate() {
        let reached = network.shortest_paths(*from);
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

fn options(options: &EdgeOptions) -> String {
    let mut text = format!("rate = \"{}\"\n", options.rate);
    if options.delay_ns > 0 {
        let delay = Nanos::from_nanos(options.delay_ns);
        let _ = writeln!(text, "delay = \"{delay}\"");
    }
    if options.loss > 0.0 {
        let percent = format!("{:.7}", options.loss * 100.0);
        let percent = percent.trim_end_matches('0').trim_end_matches('.');
        let _ = writeln!(text, "loss = \"{percent}%\"");
    }
    if let Some(queue) = options.queue {
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

fn path(
    network: &Network,
    (from, to): (usize, usize),
    reached: &[Option<(usize, usize)>],
) -> Option<String> {
    let mut via = Vec::new();
    let mut vertex = to;
    while vertex != from {
        let (edge, before) = reached[vertex]?;
        let edge = &network.edges[edge];
        let direction = if edge.ends.0 == before { "" } else { ".down" };
        via.push(quoted(&format!("{}{direction}", edge.name)));
        vertex = before;
    }
    via.reverse();
    let (from, to) = (&network.vertices[from], &network.vertices[to]);
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
