//! Places a network on the nodes of its pods.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use serde_json::{Map, Value, json};

use crate::api::{HostPlacement, Network, NetworkSpec, PortPlacement, Reason};
use crate::facts::{Labels, PodFacts};
use crate::network::{PlacedNetwork, TopologyError, check_links, read_topology};
use crate::plan::{Hindrance, ResourceKey, Selection};

/// Table of a topology that lists pairs of ports.
const SWITCHING: &str = "switching";

/// Addresses of emulators, by node.
pub type Agents = BTreeMap<String, IpAddr>;

/// Places a network, without its key. A port keeps its pod from `before` while the pod is selected;
/// otherwise, it gets the first selected pod by name.
///
/// # Errors
/// The reason why the network cannot be placed.
pub fn place(
    network: &Network,
    pods: &[PodFacts],
    namespaces: &BTreeMap<String, Labels>,
    agents: &Agents,
    before: &[PortPlacement],
    udp_port: u16,
) -> Result<PlacedNetwork, Hindrance> {
    let ResourceKey { namespace, name } = ResourceKey::of(network);
    let spec = &network.spec;
    let refused = |error: TopologyError| Hindrance::refused("/topology", error.to_string(), "");
    let mut file = read_topology(&spec.topology).map_err(refused)?;
    let partners = partners(&file);
    check_partners(spec, &file, partners.as_ref())?;
    check_links(&file, spec.ports.len()).map_err(refused)?;
    let chosen = choose(&namespace, spec, pods, namespaces, before)?;
    let hosts = hosts(&chosen, agents, udp_port)?;
    let mut ports = Map::new();
    for (port, pod) in &chosen {
        let own: BTreeSet<IpAddr> = pod.addresses.iter().copied().collect();
        let others = chosen.iter().filter(|(other, _)| match &partners {
            Some(pairs) => pairs.get(*port).is_some_and(|partner| partner == *other),
            None => *other != port,
        });
        let to: BTreeSet<String> = others
            .flat_map(|(_, other)| &other.addresses)
            .filter(|address| !own.contains(address))
            .map(IpAddr::to_string)
            .collect();
        let attach = json!({ "attach": { "pod": pod.target(), "to": to } });
        ports.insert((*port).to_owned(), attach);
    }
    file.insert("ports".to_owned(), Value::Object(ports));
    let placement = chosen.iter().map(|(port, pod)| PortPlacement {
        port: (*port).to_owned(),
        pod: pod.target(),
        node: pod.node.clone().unwrap_or_default(),
    });
    let placement: Vec<PortPlacement> = placement.collect();
    if hosts.len() > 1 {
        file.insert("host".to_owned(), host_tables(&hosts, &placement));
    } else {
        file.remove("underlay");
    }
    Ok(PlacedNetwork {
        namespace,
        name,
        generation: network.metadata.generation.unwrap_or_default(),
        udp_port,
        file,
        hosts,
        ports: placement,
        seed: spec.seed,
        key: String::new(),
    })
}

/// Returns the pod of each port.
fn choose<'a>(
    namespace: &str,
    spec: &'a NetworkSpec,
    pods: &'a [PodFacts],
    namespaces: &BTreeMap<String, Labels>,
    before: &[PortPlacement],
) -> Result<BTreeMap<&'a str, &'a PodFacts>, Hindrance> {
    let mut chosen: BTreeMap<&str, &PodFacts> = BTreeMap::new();
    for (port, selection) in &spec.ports {
        let selection = Selection::of(namespace, selection).map_err(|hindrance| Hindrance {
            pointer: Some(format!("/ports/{port}")),
            remedy: None,
            ..hindrance
        })?;
        let fits = |pod: &&PodFacts| {
            !pod.has_ended
                && !pod.is_host_network
                && pod.node.is_some()
                && !pod.addresses.is_empty()
                && selection.selects(pod, namespaces)
        };
        let old = before.iter().find(|old| old.port == *port);
        let is_old = |pod: &PodFacts| old.is_some_and(|old| old.pod == pod.target());
        // Sort by name, because the cache's order may change.
        let pod = pods
            .iter()
            .filter(fits)
            .min_by_key(|pod| (!is_old(pod), pod.target(), &pod.uid));
        let pod = pod.ok_or_else(|| {
            let message = format!("port '{port}' has no pod with an address");
            Hindrance::new(Reason::Waiting, message)
        })?;
        chosen.insert(port, pod);
    }
    Ok(chosen)
}

/// Refuses ports without a unique partner: ARP does not cross a network, so a switch could not
/// learn the ports of pods.
fn check_partners(
    spec: &NetworkSpec,
    file: &Map<String, Value>,
    partners: Option<&BTreeMap<String, String>>,
) -> Result<(), Hindrance> {
    let count = spec.ports.len();
    let has_mode = file
        .get(SWITCHING)
        .is_some_and(|table| table.get("mode").is_some());
    let message = match partners {
        None if count <= 2 || has_mode => return Ok(()),
        None => format!("{count} ports, but [switching] has neither pairs nor mode"),
        Some(partners) => {
            let mut ports = spec.ports.keys();
            let Some(port) = ports.find(|port| !partners.contains_key(*port)) else {
                return Ok(());
            };
            format!("port '{port}' is in no pair")
        }
    };
    let pointer = format!("/topology/{SWITCHING}/pairs");
    let remedy = "write [switching] pairs = [[\"a\", \"b\"], …] with all ports";
    Err(Hindrance::refused(&pointer, message, remedy))
}

/// Returns the nodes of the pods, with their emulators' addresses.
fn hosts(
    chosen: &BTreeMap<&str, &PodFacts>,
    agents: &Agents,
    udp_port: u16,
) -> Result<Vec<HostPlacement>, Hindrance> {
    let nodes = chosen.values().filter_map(|pod| pod.node.as_deref());
    let nodes: BTreeSet<&str> = nodes.collect();
    let hosts = nodes.into_iter().map(|node| {
        let address = agents.get(node).ok_or_else(|| {
            let message = format!("no emulator runs on {node}");
            Hindrance::new(Reason::NodeUnavailable, message)
        })?;
        Ok(HostPlacement {
            node: node.to_owned(),
            address: SocketAddr::new(*address, udp_port).to_string(),
        })
    });
    hosts.collect()
}

fn host_tables(hosts: &[HostPlacement], ports: &[PortPlacement]) -> Value {
    let tables = hosts.iter().map(|host| {
        let ports = ports.iter().filter(|port| port.node == host.node);
        let ports: Vec<&str> = ports.map(|port| port.port.as_str()).collect();
        json!({ "name": host.node, "address": host.address, "ports": ports })
    });
    tables.collect()
}

/// Returns the partner of each port, if the topology has pairs of ports.
fn partners(file: &Map<String, Value>) -> Option<BTreeMap<String, String>> {
    let pairs = file.get(SWITCHING)?.get("pairs")?.as_array()?;
    let mut partners = BTreeMap::new();
    for pair in pairs {
        let (one, other) = (pair.get(0)?.as_str()?, pair.get(1)?.as_str()?);
        partners.insert(one.to_owned(), other.to_owned());
        partners.insert(other.to_owned(), one.to_owned());
    }
    Some(partners)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::fixture;

    fn pod(name: &str, app: &str, node: &str, last: u8) -> PodFacts {
        fixture::pod(name, &[("app", app)], node, last)
    }

    fn spec() -> NetworkSpec {
        let app = |app: &str| json!({ "podSelector": { "matchLabels": { "app": app } } });
        let spec = json!({
            "topology": { "link": [{ "name": "wan", "delay": "20ms" }] },
            "ports": { "cart": app("cart"), "store": app("store") },
        });
        serde_json::from_value(spec).expect("a spec")
    }

    fn place_in_shop(
        spec: &NetworkSpec,
        pods: &[PodFacts],
        before: &[PortPlacement],
    ) -> Result<PlacedNetwork, Hindrance> {
        let agents = Agents::from([
            ("n0".to_owned(), IpAddr::from([10, 1, 0, 1])),
            ("n1".to_owned(), IpAddr::from([10, 1, 0, 2])),
        ]);
        let mut network = Network::new("wan", spec.clone());
        network.metadata.namespace = Some("shop".to_owned());
        place(&network, pods, &BTreeMap::new(), &agents, before, 4801)
    }

    fn placed(pods: &[PodFacts], before: &[PortPlacement]) -> Result<PlacedNetwork, Hindrance> {
        place_in_shop(&spec(), pods, before)
    }

    /// Returns a cart on n0 and a store on `node`.
    fn cart_and_store(node: &str) -> [PodFacts; 2] {
        [
            pod("cart-0", "cart", "n0", 1),
            pod("store-0", "store", node, 2),
        ]
    }

    #[test]
    fn hosts_are_the_nodes_of_the_pods() {
        let placement = placed(&cart_and_store("n1"), &[]).expect("it is placed");
        let expected = json!({
            "link": [{ "name": "wan", "delay": "20ms" }],
            "ports": {
                "cart": { "attach": { "pod": "shop/cart-0", "to": ["10.0.0.2"] } },
                "store": { "attach": { "pod": "shop/store-0", "to": ["10.0.0.1"] } },
            },
            "host": [
                { "name": "n0", "address": "10.1.0.1:4801", "ports": ["cart"] },
                { "name": "n1", "address": "10.1.0.2:4801", "ports": ["store"] },
            ],
        });
        assert_eq!(Value::Object(placement.file), expected);
        // One node needs no hosts.
        let placement = placed(&cart_and_store("n0"), &[]).expect("it is placed");
        assert!(!placement.file.contains_key("host"));
        assert_eq!(placement.hosts.len(), 1);
    }

    #[test]
    fn a_port_keeps_its_pod() {
        let mut pods = vec![
            pod("cart-1", "cart", "n0", 1),
            pod("store-0", "store", "n1", 2),
        ];
        let first = placed(&pods, &[]).expect("it is placed");
        pods.push(pod("cart-0", "cart", "n1", 3));
        let second = placed(&pods, &first.ports).expect("it is placed");
        assert_eq!(first, second);
        // Another pod replaces the removed one.
        pods.remove(0);
        let third = placed(&pods, &first.ports).expect("it is placed");
        assert_eq!(third.ports[0].pod, "shop/cart-0");
    }

    #[test]
    fn a_network_waits_for_its_pods_and_emulators() {
        let elsewhere = cart_and_store("n9");
        let waits = placed(&elsewhere[..1], &[]).expect_err("no store");
        assert_eq!(waits.reason, Reason::Waiting);
        let waits = placed(&elsewhere, &[]).expect_err("no emulator");
        assert_eq!(waits.reason, Reason::NodeUnavailable);
    }

    fn spec_of_pairs(switching: Value, ports: &[(&str, &str)]) -> NetworkSpec {
        let mut spec = spec();
        spec.ports.clear();
        spec.topology["switching"] = switching;
        spec.topology["link"][0]["match"] = json!("any");
        for (port, app) in ports {
            let selection = json!({ "podSelector": { "matchLabels": { "app": app } } });
            let selection = serde_json::from_value(selection).expect("a selection");
            spec.ports.insert((*port).to_owned(), selection);
        }
        spec
    }

    fn place_one_node(spec: &NetworkSpec) -> Result<PlacedNetwork, Hindrance> {
        let apps = [("a", 1), ("b", 2), ("c", 3), ("d", 4)];
        let pods = apps.map(|(app, last)| pod(app, app, "n0", last));
        place_in_shop(spec, &pods, &[])
    }

    /// Two ports may belong to one pod.
    #[test]
    fn a_port_of_a_pair_sends_to_its_partner_alone() {
        let pairs = json!({ "pairs": [["ab", "ba"], ["ac", "ca"]] });
        let spec = spec_of_pairs(pairs, &[("ab", "a"), ("ac", "a"), ("ba", "b"), ("ca", "c")]);
        let file = place_one_node(&spec).expect("it is placed").file;
        for (port, pod, partner) in [
            ("ab", "a", 2),
            ("ac", "a", 3),
            ("ba", "b", 1),
            ("ca", "c", 1),
        ] {
            let to = [format!("10.0.0.{partner}")];
            let attach = json!({ "pod": format!("shop/{pod}"), "to": to });
            assert_eq!(file["ports"][port]["attach"], attach);
        }
    }

    #[test]
    fn ports_without_a_partner_are_refused_with_a_remedy() {
        let ports = [("a", "a"), ("b", "b"), ("c", "c")];
        let one_pair = json!({ "pairs": [["a", "b"]] });
        let no_pairs = "3 ports, but [switching] has neither pairs nor mode";
        for (switching, message) in [(one_pair, "port 'c' is in no pair"), (json!({}), no_pairs)] {
            let refusal = place_one_node(&spec_of_pairs(switching, &ports));
            let refusal = refusal.expect_err("it is refused");
            assert_eq!(refusal.reason, Reason::Refused);
            assert_eq!(refusal.message, message);
            let pointer = Some("/topology/switching/pairs");
            assert_eq!(refusal.pointer.as_deref(), pointer);
            assert!(refusal.remedy.is_some());
        }
    }
}
