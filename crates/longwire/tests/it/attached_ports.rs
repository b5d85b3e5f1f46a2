//! Ports at pods' interfaces on two machines, both emulated by namespaces. The pods are
//! connected by routes over an underlay that Longwire emulates. Needs root and Linux
//! 6.6; without root, the tests pass without running, except in CI.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use longwire_client::{Address, Client, ClientError};
use longwire_io::net::sysctl;
use longwire_io::net::{NetNamespace, addr_add, link_names, link_up};
use longwire_testbed::support::{Folder, device, skip, wire};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::common::process::{RunningProgram, TIMEOUT, wait_for_word};
use crate::common::recording::{FrameTimes, delivered};
use crate::common::site::{Network, Site, run_in, well};
use crate::common::{longwire, write};

/// One-way delay of the links between the pods, in milliseconds.
const DELAY: f64 = 20.0;
/// One-way delay of the underlay, in milliseconds.
const UNDERLAY: f64 = 5.0;

/// Two machines with a pod each, and the underlay between them.
struct Pods {
    /// The machines are its stations.
    site: Site,
    pods: Vec<NetNamespace>,
    dir: Folder,
}

/// A machine's part of the pods' network.
struct Part {
    program: RunningProgram,
    report: String,
}

fn machine(number: usize) -> String {
    format!("10.9.0.{}", number + 1)
}

fn pod(number: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 20, number as u8, 2)
}

/// Returns a path by which other processes find a namespace of this one.
fn path_of(namespace: &NetNamespace) -> String {
    let descriptor = namespace.as_fd().as_raw_fd();
    format!("/proc/{}/fd/{descriptor}", std::process::id())
}

impl Pods {
    /// Returns `None` for users who may not create networks.
    fn new() -> Option<Pods> {
        if !nix::unistd::geteuid().is_root() {
            return skip("ports at interfaces in use take root");
        }
        let site = Site::new(2)?;
        let mut pods = Vec::new();
        for (number, host) in site.stations.iter().enumerate() {
            let pod_space = NetNamespace::new().expect("a namespace");
            let end = device("eth0", Some(&pod_space));
            wire(device("pod0", Some(host)), end).expect("a wire");
            let gateway = format!("10.20.{number}.1");
            let prepared = pod_space.run(|| {
                link_up("lo")?;
                addr_add("eth0", IpAddr::V4(pod(number)), 24)
            });
            prepared.expect("it is entered").expect("an address");
            let prepared = host.run(|| {
                addr_add("pod0", gateway.parse().expect("an address"), 24)?;
                sysctl::set("ipv4/ip_forward", "1")
            });
            prepared.expect("it is entered").expect("an address");
            let other = 1 - number;
            let route = ["ip", "route", "add", "default", "via", &gateway];
            well(&route, run_in(&pod_space, &route));
            let (to, by) = (format!("10.20.{other}.0/24"), machine(other));
            let route = ["ip", "route", "add", &to, "via", &by];
            well(&route, run_in(host, &route));
            pods.push(pod_space);
        }
        let pods = Pods {
            site,
            pods,
            dir: Folder::new(),
        };
        let made = longwire(&["key", &pods.dir.file("net.key")]);
        assert_eq!(made.code, 0, "{made:?}");
        write(&pods.dir.file("net.toml"), pods.network().as_bytes());
        Some(pods)
    }

    /// Returns a network with a link between the pods.
    fn network(&self) -> String {
        let port = |name: &str, number: usize| {
            let (place, to) = (path_of(&self.pods[number]), pod(1 - number));
            format!(
                "{name}.attach = {{ netns = '{place}', interface = 'eth0', to = ['{to}/32'] }}\n"
            )
        };
        format!(
            "[ports]\n{}{}[[link]]\nname = 'wire'\ndelay = '{DELAY}ms'\n\
             [[host]]\nname = 'h0'\naddress = '{}'\nports = 'west'\n\
             [[host]]\nname = 'h1'\naddress = '{}'\nports = 'east'\n\
             [underlay]\nkey = 'net.key'\n",
            port("west", 0),
            port("east", 1),
            machine(0),
            machine(1)
        )
    }

    fn underlay(&self) -> Network {
        let file = self.dir.file("underlay.toml");
        let text = format!(
            "[ports]\na = 'packet:p0'\nb = 'packet:p1'\n\
             [[link]]\nname = 'under'\ndelay = '{UNDERLAY}ms'\n"
        );
        write(&file, text.as_bytes());
        self.site.start(&file)
    }

    fn start(&self, number: usize) -> Part {
        let name = format!("h{number}");
        let report = self.dir.file(&format!("{name}.json"));
        let log = self.dir.file(&format!("{}.csv", ["west", "east"][number]));
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        command.args(["run", &self.dir.file("net.toml"), "--host", &name]);
        command.args(["--log", &log]);
        command.args(["--report", &report, "--tolerance", "10s"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Part {
            program: RunningProgram::start(&self.site.stations[number], &mut command),
            report,
        }
    }

    /// Returns the shortest of some round trips between the pods, in milliseconds; `None`
    /// without a reply.
    fn round_trip(&self) -> Option<f64> {
        let to = pod(1).to_string();
        let command = ["ping", "-c", "21", "-i", "0.02", "-W", "1", "-q", &to];
        let text = run_in(&self.pods[0], &command).stdout;
        let times = text.split_once("min/avg/max/mdev = ")?.1;
        times.split('/').next()?.parse().ok()
    }

    /// Waits until the pods' packets cross the network, or bypass it.
    #[track_caller]
    fn wait_until(&self, crossing: bool) {
        // Between a round trip of the underlay and one of the links.
        let crosses = |trip: f64| trip > DELAY + UNDERLAY;
        let began = Instant::now();
        loop {
            let found = self.round_trip();
            if found.is_some_and(|trip| crosses(trip) == crossing) {
                return;
            }
            assert!(began.elapsed() < TIMEOUT, "{found:?} ms");
        }
    }

    /// Sends megabytes from one pod to the other, and checks every byte.
    fn send(&self) {
        const BLOCK: usize = 251 * 257;
        const BLOCKS: usize = 40;
        let address = SocketAddr::new(IpAddr::V4(pod(1)), 7_000);
        let listener = self.pods[1].run(|| TcpListener::bind(address));
        let listener = listener.expect("entered").expect("a listener");
        let pattern: Vec<u8> = (0..BLOCK).map(|at| (at % 251) as u8).collect();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let stream = self.pods[0].run(|| TcpStream::connect(address));
                let mut stream = stream.expect("entered").expect("a connection");
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

    #[track_caller]
    fn assert_clean(&self) {
        let began = Instant::now();
        for pod in &self.pods {
            let left = || {
                let names = pod.run(link_names).expect("entered").expect("names");
                names.iter().any(|name| name.starts_with("lw-"))
            };
            while left() {
                assert!(began.elapsed() < TIMEOUT, "devices are left");
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

impl Part {
    fn stop(self) -> Value {
        self.program.signal(Signal::SIGINT);
        let ended = self.program.end();
        assert_eq!(ended.code, 0, "{ended:?}");
        let report = std::fs::read(self.report).expect("a report");
        serde_json::from_slice(&report).expect("JSON")
    }
}

/// Asserts that frames left a port less late than the underlay delays them: it delays them
/// before their release. A busy machine makes many frames late, but not all.
#[track_caller]
fn assert_contains_underlay(report: &Value, port: &str) {
    let mut ports = report["ports"].as_array().expect("ports").iter();
    let port = ports.find(|it| it["name"] == port).expect("its port");
    assert!(port["packets_in"].as_u64() > Some(10), "{port}");
    let mut bounds = port["lateness_histogram_us"]
        .as_array()
        .expect("bins")
        .iter();
    let in_time = |bound: f64| bound < 1_000.0 * UNDERLAY;
    assert!(
        bounds.any(|bin| bin[0].as_f64().is_some_and(in_time)),
        "{port}"
    );
}

#[test]
fn the_delay_between_pods_of_two_machines_contains_the_underlay() {
    let Some(pods) = Pods::new() else { return };
    let underlay = pods.underlay();
    pods.wait_until(false);
    let mut hosts = vec![pods.start(0), pods.start(1)];
    for host in &mut hosts {
        wait_for_word(&mut host.program, " between ");
    }
    pods.wait_until(true);
    pods.send();

    // Without its host, a pod's packets bypass the network, and soon those of the other
    // pod too.
    let killed = hosts.pop().expect("two hosts").program;
    killed.signal(Signal::SIGKILL);
    let _ = killed.end();
    pods.wait_until(false);
    // When the host is back, they enter the network again.
    let mut again = pods.start(1);
    wait_for_word(&mut again.program, " between ");
    pods.wait_until(true);
    hosts.push(again);

    let reports: Vec<Value> = hosts.into_iter().map(Part::stop).collect();
    underlay.stop();
    for (report, (port, link)) in reports
        .iter()
        .zip([("west", "wire.up"), ("east", "wire.down")])
    {
        let peer = &report["hosts"]["peers"][0];
        assert!(peer["frames_sent"].as_u64() > Some(10), "{peer}");
        let trip = peer["round_trip_ns"].as_f64().expect("a time") / 1e6;
        assert!(trip >= 2.0 * UNDERLAY, "{trip} ms between the hosts");
        assert_contains_underlay(report, port);
        let frames = delivered(&pods.dir.file(&format!("{port}.csv")), link);
        assert!(frames.len() > 10, "{frames:?}");
        let expected = (DELAY * 1e6) as i64;
        assert!(
            frames.iter().all(|frame| frame.time == expected),
            "{frames:?}"
        );
    }
    pods.assert_clean();
}

#[test]
fn ports_at_one_interface_take_packets_to_their_addresses() {
    if !nix::unistd::geteuid().is_root() {
        return skip("ports at interfaces in use take root").unwrap_or_default();
    }
    let Some(site) = Site::new(3) else { return };
    let made = ["ip", "link", "add", "br0", "up", "type", "bridge"];
    well(&made, run_in(&site.middle, &made));
    for port in ["p0", "p1", "p2"] {
        let joined = ["ip", "link", "set", port, "master", "br0"];
        well(&joined, run_in(&site.middle, &joined));
    }
    site.wait_for_answer(0, 1);
    let port = |name: &str, at: usize, to: usize| {
        let place = path_of(&site.stations[at]);
        format!(
            "{name}.attach = {{ netns = '{place}', to = '{}', interface = 'eth0' }}\n",
            machine(to)
        )
    };
    let text = format!(
        "on-port-loss = 'continue'\n[ports]\n{}{}{}{}[switching]\npairs = [['ab', 'ba'], ['ac', 'ca']]\n\
         [[link]]\nname = 'b'\nmatch = 'in-port=ab'\ndelay = '10ms'\n\
         [[link]]\nname = 'c'\nmatch = 'in-port=ac'\ndelay = '30ms'\n",
        port("ab", 0, 1),
        port("ac", 0, 2),
        port("ba", 1, 0),
        port("ca", 2, 0)
    );
    let dir = Folder::new();
    let file = dir.file("net.toml");
    write(&file, text.as_bytes());
    // In the namespace of this test, as no port is a device of the run's.
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    command.args(["run", &file, "--tolerance", "10s"]);
    let log = dir.file("log.csv");
    command.args(["--report", &dir.file("report.json"), "--log", &log]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut program = RunningProgram::start(&site.middle, &mut command);
    wait_for_word(&mut program, " between ");
    let taken = |to: usize, delays: f64| {
        let began = Instant::now();
        while site
            .round_trip(0, to)
            .is_none_or(|found| found < delays - 0.1)
        {
            assert!(began.elapsed() < TIMEOUT, "it does not begin");
        }
        site.assert_not_early(0, &machine(to), delays);
    };
    taken(1, 20.0);
    taken(2, 60.0);
    site.assert_not_early(1, &machine(2), 0.0);
    // Stations still resolve each other's hardware addresses.
    let neighbours = site.said(0, &["ip", "neigh", "flush", "all"]);
    assert_eq!(neighbours, "");
    taken(1, 20.0);
    let checked = well(&["check"], longwire(&["check", &file]));
    assert!(checked.contains("attach namespace"), "{checked}");

    program.signal(Signal::SIGINT);
    let ended = program.end();
    assert_eq!(ended.code, 0, "{ended:?}");
    site.assert_not_early(0, &machine(2), 0.0);
    for (link, delay_ms) in [("b.up", 10), ("b.down", 10), ("c.up", 30), ("c.down", 30)] {
        let frames = delivered(&log, link);
        assert!(frames.len() >= 4, "{link}: {frames:?}");
        let has = |frame: &FrameTimes| frame.time == delay_ms * 1_000_000;
        assert!(frames.iter().all(has), "{link}: {frames:?}");
    }
}

/// The network's path in a node's API.
const MESH: &str = "/v1/networks/mesh";

/// The node of one machine.
struct MachineNode {
    program: RunningProgram,
    socket: String,
}

impl MachineNode {
    fn start(pods: &Pods, number: usize) -> MachineNode {
        let of = |name: &str| pods.dir.file(&format!("{name}{number}"));
        let (state, socket) = (of("state"), of("node.sock"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        command.args(["node", "--state", &state, "--control", &socket]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut program = RunningProgram::start(&pods.site.stations[number], &mut command);
        wait_for_word(&mut program, "ready");
        MachineNode { program, socket }
    }

    fn client(&self) -> Client {
        Client::new(Address::Unix(self.socket.clone().into()), None).expect("a client")
    }

    fn put(&self, pods: &Pods, number: usize) -> Value {
        let key = std::fs::read_to_string(pods.dir.file("net.key")).expect("a key");
        let key = key.lines().find(|line| line.len() == 64).expect("digits");
        let body = json!({ "file": pods.network(), "host": format!("h{number}"), "key": key });
        self.client().put(MESH, &body).expect("it runs")
    }

    /// Waits until the network meets a condition.
    #[track_caller]
    fn wait_until(&self, is_so: impl Fn(&Value) -> bool) -> Value {
        let began = Instant::now();
        loop {
            let view = self.client().get(MESH).expect("a network");
            if is_so(&view) {
                return view;
            }
            assert!(began.elapsed() < TIMEOUT, "{view}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn runs(view: &Value) -> bool {
    view["state"] == "running"
}

/// Asserts that no link can be attached next to a pod's port: one that may wait does,
/// and reports why.
fn assert_no_link_next_to(client: &mut Client, pod: &NetNamespace) {
    let target = json!({ "netns": path_of(pod) });
    let mut body =
        json!({ "target": target, "interface": "eth0", "to": ["10.99.0.0/16"], "link": {} });
    match client.put("/v1/attachments/extra", &body) {
        Err(ClientError::Refused(refused)) => assert_eq!(refused.status, 409, "{refused:?}"),
        other => panic!("{other:?}"),
    }
    body["wait"] = true.into();
    let waits = client.put("/v1/attachments/extra", &body);
    let waits = waits.expect("it waits");
    assert_eq!(waits["taken"], true, "{waits}");
    let removed = client.delete("/v1/attachments/extra");
    removed.expect("it is removed");
}

#[test]
fn nodes_run_a_network_and_start_it_again() {
    let Some(pods) = Pods::new() else { return };
    let underlay = pods.underlay();
    let mut nodes = [0, 1].map(|number| MachineNode::start(&pods, number));
    let made = nodes[0].put(&pods, 0);
    assert_eq!(made["spec"]["key"], Value::Null, "{made}");
    nodes[0].wait_until(|view| view["reason"].to_string().contains("waiting for hosts: h1"));
    nodes[1].put(&pods, 1);
    let first = nodes[0].wait_until(runs);
    nodes[1].wait_until(runs);
    pods.wait_until(true);
    // A repeated request is a no-op, and its counters are readable.
    assert_eq!(nodes[0].put(&pods, 0)["pid"], first["pid"]);
    let mut client = nodes[0].client();
    let links = client.get(&format!("{MESH}/links")).expect("links");
    assert_eq!(links["links"][0]["name"], "wire", "{links}");
    let stats = client.get(&format!("{MESH}/stats")).expect("counters");
    assert!(stats.to_string().contains("packets"), "{stats}");

    assert_no_link_next_to(&mut client, &pods.pods[0]);

    // A failed run is restarted.
    let pid = first["pid"].as_i64().expect("a process") as i32;
    let process = nix::unistd::Pid::from_raw(pid);
    nix::sys::signal::kill(process, Signal::SIGKILL).expect("it runs");
    let second = nodes[0].wait_until(|view| runs(view) && view["pid"] != first["pid"]);
    assert_eq!(second["restarts"], 1, "{second}");
    // The network ends with the node, and is restored when the node starts.
    let [node, other] = nodes;
    node.program.signal(Signal::SIGKILL);
    let _ = node.program.end();
    pods.wait_until(false);
    nodes = [MachineNode::start(&pods, 0), other];
    nodes[0].wait_until(runs);
    pods.wait_until(true);

    let body = json!({ "file": { "ports": { "a": "null" }, "link": [{ "rat": 1 }] } });
    for (body, status) in [(body, 422), (json!({ "file": 7 }), 422), (json!({}), 400)] {
        match nodes[0].client().put("/v1/networks/other", &body) {
            Err(ClientError::Refused(refused)) => assert_eq!(refused.status, status, "{body}"),
            other => panic!("{body}: {other:?}"),
        }
    }
    for (node, port) in nodes.iter().zip(["west", "east"]) {
        let ended = node.client().delete(MESH).expect("it is removed");
        assert_contains_underlay(&ended["report"], port);
        let peer = &ended["report"]["hosts"]["peers"][0];
        assert!(peer["frames_sent"].as_u64() > Some(10), "{ended}");
        let list = node.client().get("/v1/networks").expect("a list");
        assert_eq!(list["networks"], json!([]));
    }
    pods.assert_clean();
    for node in nodes {
        node.program.signal(Signal::SIGTERM);
        assert_eq!(node.program.end().code, 0);
    }
    underlay.stop();
}
