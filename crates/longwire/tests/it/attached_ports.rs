//! Ports at pods' interfaces on two machines, both emulated by namespaces. Routes connect the pods
//! over an underlay emulated by Longwire. Needs Linux 6.6 and root; skipped without root, except in
//! CI.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};

use longwire_client::Client;
use longwire_io::net::{NetNamespace, addr_add, link_up, sysctl};
use longwire_testbed::support::{Folder, device, skip, wire, within};
use serde_json::{Value, json};

use crate::common::node::{RunningNode, assert_refused};
use crate::common::program::{
    RunningProgram, change, eventually, longwire, ping, start_in, wait_for,
};
use crate::common::recording::assert_delays;
use crate::common::site::{Network, Site, assert_no_attachment, path_of};
use crate::common::{count, list, named, number, read, read_json, write};

/// One-way delay of the links between the pods, in milliseconds.
const DELAY: f64 = 20.0;
/// One-way delay of the underlay, in milliseconds.
const UNDERLAY: f64 = 5.0;

/// Two machines with one pod each, and the underlay between them.
struct Pods {
    /// The underlay's stations are the machines.
    site: Site,
    pods: Vec<NetNamespace>,
    dir: Folder,
}

fn may_attach() -> bool {
    nix::unistd::geteuid().is_root() || skip::<()>("ports at interfaces in use take root").is_some()
}

fn machine(number: usize) -> String {
    format!("10.9.0.{}", number + 1)
}

fn pod(number: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 20, number as u8, 2)
}

/// Returns the configuration line of a port attached to `eth0` that takes packets to one address.
fn port_line(name: &str, at: &NetNamespace, to: impl ToString) -> String {
    let (place, to) = (path_of(at), to.to_string());
    format!("{name}.attach = {{ netns = '{place}', interface = 'eth0', to = ['{to}/32'] }}\n")
}

impl Pods {
    /// Creates the machines and pods; `None` if the user may not create networks.
    fn new() -> Option<Pods> {
        if !may_attach() {
            return None;
        }
        let site = Site::new(2)?;
        let mut pods = Vec::new();
        for (number, host) in site.stations.iter().enumerate() {
            let pod_space = NetNamespace::new().expect("a namespace");
            let end = device("eth0", Some(&pod_space));
            wire(device("pod0", Some(host)), end).expect("a wire");
            let gateway = format!("10.20.{number}.1");
            within(&pod_space, || {
                link_up("lo")?;
                addr_add("eth0", IpAddr::V4(pod(number)), 24)
            });
            within(host, || {
                addr_add("pod0", gateway.parse().expect("an address"), 24)?;
                sysctl::set("ipv4/ip_forward", "1")
            });
            change(&pod_space, format!("ip route add default via {gateway}"));
            let other = 1 - number;
            let by = machine(other);
            change(host, format!("ip route add 10.20.{other}.0/24 via {by}"));
            pods.push(pod_space);
        }
        let dir = Folder::new();
        longwire(format!("key {}", dir.file("net.key"))).well();
        let pods = Pods { site, pods, dir };
        write(pods.dir.file("net.toml"), pods.network());
        Some(pods)
    }

    /// Returns a network with a link between the pods.
    fn network(&self) -> String {
        let west = port_line("west", &self.pods[0], pod(1));
        let east = port_line("east", &self.pods[1], pod(0));
        let host = |number: usize, port| {
            let address = machine(number);
            format!("[[host]]\nname = 'h{number}'\naddress = '{address}'\nports = '{port}'\n")
        };
        format!(
            "[ports]\n{west}{east}[[link]]\nname = 'wire'\ndelay = '{DELAY}ms'\n{}{}\
             [underlay]\nkey = 'net.key'\n",
            host(0, "west"),
            host(1, "east")
        )
    }

    fn underlay(&self) -> Network {
        let text = format!(
            "[ports]\na = 'packet:p0'\nb = 'packet:p1'\n\
             [[link]]\nname = 'under'\ndelay = '{UNDERLAY}ms'\n"
        );
        let file = self.dir.file("underlay.toml");
        write(&file, text);
        self.site.start(&file)
    }

    /// Starts a machine's part of the network.
    fn start(&self, number: usize) -> RunningProgram {
        let file = |name: String| self.dir.file(&name);
        let (net, report) = (file("net.toml".into()), file(format!("h{number}.json")));
        let log = file(format!("{}.csv", ["west", "east"][number]));
        let files = format!("--log {log} --report {report}");
        let line = format!("longwire run {net} --host h{number} {files} --tolerance 10s");
        start_in(&self.site.stations[number], line)
    }

    /// Waits until the pods' packets cross the network, or bypass it.
    #[track_caller]
    fn wait_until(&self, crossing: bool) {
        eventually("the packets take another way", || {
            let trip = ping(&self.pods[0], "-c 21 -i 0.02 -W 1", pod(1));
            // The threshold lies between the RTT of the underlay and that of the link.
            trip.is_some_and(|trip| (trip > DELAY + UNDERLAY) == crossing)
        });
    }

    /// Sends megabytes from one pod to the other, and checks every byte.
    fn send(&self) {
        const BLOCK: usize = 251 * 257;
        const BLOCKS: usize = 40;
        let address = SocketAddr::new(IpAddr::V4(pod(1)), 7_000);
        let listener = within(&self.pods[1], || TcpListener::bind(address));
        let pattern: Vec<u8> = (0..BLOCK).map(|at| (at % 251) as u8).collect();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut stream = within(&self.pods[0], || TcpStream::connect(address));
                for _ in 0..BLOCKS {
                    stream.write_all(&pattern).expect("no reset");
                }
            });
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut received = Vec::new();
            stream.read_to_end(&mut received).expect("no reset");
            assert_eq!(received.len(), BLOCK * BLOCKS);
            let mut bytes = received.iter().zip(0_usize..);
            assert!(bytes.all(|(byte, at)| usize::from(*byte) == at % BLOCK % 251));
        });
    }
}

/// Asserts that lateness at a port excludes the underlay's delay, because the release includes it.
/// On a busy machine, many frames are late, but not all.
#[track_caller]
fn assert_contains_underlay(report: &Value, port: &str) {
    let peer = &report["hosts"]["peers"][0];
    assert!(count(&peer["frames_sent"]) > 10, "{peer}");
    let port = named(&report["ports"], port);
    assert!(count(&port["packets_in"]) > 10, "{port}");
    let mut bins = list(&port["lateness_histogram_us"]).iter();
    let in_time = |bin: &Value| {
        bin[0]
            .as_f64()
            .is_some_and(|bound| bound < 1_000.0 * UNDERLAY)
    };
    assert!(bins.any(in_time), "{port}");
}

#[test]
fn the_delay_between_pods_of_two_machines_contains_the_underlay() {
    let Some(pods) = Pods::new() else { return };
    let underlay = pods.underlay();
    pods.wait_until(false);
    let hosts = [0, 1].map(|number| pods.start(number));
    let [first, second] = hosts.map(|host| host.ready(" between "));
    pods.wait_until(true);
    pods.send();

    // Without its host, a pod's packets bypass the network; soon the other pod's packets do too.
    second.kill();
    pods.wait_until(false);
    // Packets enter the network again once the host is back.
    let again = pods.start(1).ready(" between ");
    pods.wait_until(true);

    first.stop();
    again.stop();
    underlay.stop();
    for (host, port, link) in [(0, "west", "wire.up"), (1, "east", "wire.down")] {
        let report = read_json(&pods.dir.file(&format!("h{host}.json")));
        let trip = number(&report["hosts"]["peers"][0]["round_trip_ns"]) / 1e6;
        assert!(trip >= 2.0 * UNDERLAY, "{trip} ms between the hosts");
        assert_contains_underlay(&report, port);
        assert_delays(
            &pods.dir.file(&format!("{port}.csv")),
            link,
            11,
            DELAY as i64,
        );
    }
    pods.pods.iter().for_each(assert_no_attachment);
}

#[test]
fn ports_at_one_interface_take_packets_to_their_addresses() {
    if !may_attach() {
        return;
    }
    let Some(site) = Site::new(3) else { return };
    change(&site.middle, "ip link add br0 up type bridge");
    for port in ["p0", "p1", "p2"] {
        change(&site.middle, format!("ip link set {port} master br0"));
    }
    site.wait_for_answer(0, 1);
    let port = |name, at: usize, to| port_line(name, &site.stations[at], machine(to));
    let ports = [
        port("ab", 0, 1),
        port("ac", 0, 2),
        port("ba", 1, 0),
        port("ca", 2, 0),
    ];
    let text = format!(
        "on-port-loss = 'continue'\n[ports]\n{}[switching]\npairs = [['ab', 'ba'], ['ac', 'ca']]\n\
         [[link]]\nname = 'b'\nmatch = 'in-port=ab'\ndelay = '10ms'\n\
         [[link]]\nname = 'c'\nmatch = 'in-port=ac'\ndelay = '30ms'\n",
        ports.concat()
    );
    let dir = Folder::new();
    let log = dir.file("log.csv");
    let network = site.start_network(&dir, &text, &format!("--log {log}"));
    let taken = |to: usize, delays: f64| {
        eventually("it does not begin", || {
            site.round_trip(0, to) > Some(delays - 0.1)
        });
        site.assert_not_early(0, &machine(to), delays);
    };
    taken(1, 20.0);
    taken(2, 60.0);
    site.assert_not_early(1, &machine(2), 0.0);
    // Stations can still resolve each other's hardware addresses.
    assert_eq!(site.said(0, "ip neigh flush all"), "");
    taken(1, 20.0);
    longwire(format!("check {}", dir.file("network.toml")))
        .well()
        .prints("attach namespace");

    network.stop();
    site.assert_not_early(0, &machine(2), 0.0);
    for (link, delay_ms) in [("b.up", 10), ("b.down", 10), ("c.up", 30), ("c.down", 30)] {
        assert_delays(&log, link, 4, delay_ms);
    }
}

/// Path of the network in a node's API.
const MESH: &str = "/v1/networks/mesh";

fn put(node: &RunningNode, pods: &Pods, number: usize) -> Value {
    let key = read(pods.dir.file("net.key"));
    let key = key.lines().find(|line| line.len() == 64).expect("digits");
    let body = json!({ "file": pods.network(), "host": format!("h{number}"), "key": key });
    node.client().put(MESH, &body).expect("it runs")
}

/// Waits until a node's network meets a condition.
#[track_caller]
fn wait_until(node: &RunningNode, is_so: impl Fn(&Value) -> bool) -> Value {
    wait_for("another state", || {
        let view = node.client().get(MESH).expect("a network");
        let met = is_so(&view);
        if met { Ok(view) } else { Err(view) }
    })
}

fn runs(view: &Value) -> bool {
    view["state"] == "running"
}

/// Asserts that no link can be attached next to a pod's port; an attachment with `wait` waits and
/// reports the reason.
fn assert_no_link_next_to(client: &mut Client, pod: &NetNamespace) {
    const EXTRA: &str = "/v1/attachments/extra";
    let target = json!({ "netns": path_of(pod) });
    let mut body =
        json!({ "target": target, "interface": "eth0", "to": ["10.99.0.0/16"], "link": {} });
    assert_refused(client.put(EXTRA, &body), 409, &body);
    body["wait"] = true.into();
    let waits = client.put(EXTRA, &body).expect("it waits");
    assert_eq!(waits["taken"], true, "{waits}");
    client.delete(EXTRA).expect("it is removed");
}

#[test]
fn nodes_run_a_network_and_start_it_again() {
    let Some(pods) = Pods::new() else { return };
    let underlay = pods.underlay();
    let start = |number: usize| {
        let machine = &pods.site.stations[number];
        RunningNode::start_in(machine, &pods.dir, &format!("node{number}"))
    };
    let [node, other] = [0, 1].map(start);
    let made = put(&node, &pods, 0);
    assert_eq!(made["spec"]["key"], Value::Null, "{made}");
    wait_until(&node, |view| {
        view["reason"].to_string().contains("waiting for hosts: h1")
    });
    put(&other, &pods, 1);
    let first = wait_until(&node, runs);
    wait_until(&other, runs);
    pods.wait_until(true);
    // A repeated request is a no-op, and the run's counters are readable.
    assert_eq!(put(&node, &pods, 0)["pid"], first["pid"]);
    let mut client = node.client();
    let links = client.get(&format!("{MESH}/links")).expect("links");
    assert_eq!(links["links"][0]["name"], "wire", "{links}");
    let stats = client.get(&format!("{MESH}/stats")).expect("counters");
    assert!(stats.to_string().contains("packets"), "{stats}");

    assert_no_link_next_to(&mut client, &pods.pods[0]);

    // A failed run is restarted.
    let pid = nix::unistd::Pid::from_raw(count(&first["pid"]) as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).expect("it runs");
    let second = wait_until(&node, |view| runs(view) && view["pid"] != first["pid"]);
    assert_eq!(second["restarts"], 1, "{second}");
    // The network ends with the node, and is restored when the node starts.
    node.kill();
    pods.wait_until(false);
    let nodes = [start(0), other];
    wait_until(&nodes[0], runs);
    pods.wait_until(true);

    let wrong = json!({ "file": { "ports": { "a": "null" }, "link": [{ "rat": 1 }] } });
    for (body, status) in [(wrong, 422), (json!({ "file": 7 }), 422), (json!({}), 400)] {
        let refused = nodes[0].client().put("/v1/networks/other", &body);
        assert_refused(refused, status, &body);
    }
    for (node, port) in nodes.iter().zip(["west", "east"]) {
        let ended = node.client().delete(MESH).expect("it is removed");
        assert_contains_underlay(&ended["report"], port);
        let networks = node.client().get("/v1/networks").expect("a list");
        assert_eq!(networks["networks"], json!([]));
    }
    pods.pods.iter().for_each(assert_no_attachment);
    nodes.into_iter().for_each(RunningNode::stop);
    underlay.stop();
}
