//! Two FRR routers with OSPF or BGP over a network of `longwire run FILE.toml`: they
//! learn routes, lose them when the scenario takes the link down, and relearn them.
//!
//! Without permission to create namespaces, or without FRR, the tests pass without
//! running, except in CI.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::process::{PATIENCE, RunningProgram};
use crate::common::site::{Site, assert_nothing_lost, link, run_in};
use crate::common::{have, write};
use longwire_io::net::NetNamespace;
use longwire_testbed::support::Folder;

/// Directory of the daemons in Debian's and FRR's packages.
const DAEMONS: &str = "/usr/lib/frr";

/// Times at which the link goes down and comes up again.
const DOWN: f64 = 20.0;
const UP: f64 = 26.0;

/// A link between the routers.
const NETWORK: &str = r#"
[ports]
a = "packet:p0"
b = "packet:p1"

[[link]]
name = "wire"
match = "in-port=a"
delay = "5ms"

[[at]]
time = "20s"
down = ["wire"]

[[at]]
time = "26s"
up = ["wire"]
"#;

/// A routing protocol: its daemon, and the configuration of a router.
struct Protocol {
    daemon: &'static str,
    settings: fn(u8, u8) -> String,
    /// Range of silence after which a neighbour is declared dead, in seconds.
    dead: (f64, f64),
}

/// Four hellos/s; a neighbour is dead after a second without one (RFC 2328, appendix
/// C.3; intervals below a second are an extension of FRR).
const OSPF: Protocol = Protocol {
    daemon: "ospfd",
    settings: |own, _| {
        format!(
            "interface eth0\n\
             \x20ip ospf network point-to-point\n\
             \x20ip ospf dead-interval minimal hello-multiplier 4\n\
             \x20ip ospf retransmit-interval 1\n\
             router ospf\n\
             \x20ospf router-id 10.9.0.{own}\n\
             \x20network 10.9.0.0/24 area 0\n\
             \x20network 192.168.{own}.1/32 area 0\n\
             \x20timers throttle spf 0 50 100\n\
             \x20timers throttle lsa all 0\n\
             \x20timers lsa min-arrival 0\n"
        )
    },
    dead: (0.7, 1.0),
};

/// A keepalive per second; a session ends after three seconds without one (RFC 4271,
/// section 4.4).
const BGP: Protocol = Protocol {
    daemon: "bgpd",
    settings: |own, other| {
        format!(
            "router bgp 6500{own}\n\
             \x20bgp router-id 10.9.0.{own}\n\
             \x20no bgp ebgp-requires-policy\n\
             \x20timers bgp 1 3\n\
             \x20neighbor 10.9.0.{other} remote-as 6500{other}\n\
             \x20neighbor 10.9.0.{other} timers connect 1\n\
             \x20address-family ipv4 unicast\n\
             \x20 network 192.168.{own}.1/32\n"
        )
    },
    dead: (1.9, 3.0),
};

/// A router's daemons, run manually with all files in its folder.
struct Router {
    daemons: Vec<(&'static str, RunningProgram)>,
    dir: Folder,
}

impl Router {
    /// Returns `None` where FRR cannot drop root, which it requires.
    fn start(station: &NetNamespace, number: u8, protocol: &Protocol) -> Option<Router> {
        let mut router = Router {
            daemons: Vec::new(),
            dir: Folder::new(),
        };
        let other = 3 - number;
        let settings = (protocol.settings)(number, other);
        write(&router.dir.file("zebra.conf"), b"");
        let file = router.dir.file(&format!("{}.conf", protocol.daemon));
        write(&file, settings.as_bytes());
        let folder = router.dir.path().to_string_lossy().into_owned();
        let owned = run_in(station, &["chown", "-R", "frr:frr", &folder]);
        if owned.code != 0 {
            // In a user namespace, FRR's user does not exist, even in CI.
            eprintln!("skipped: no user frr: {}", owned.stderr);
            return None;
        }
        router.daemon(station, "zebra");
        let socket = router.dir.file("zserv.api");
        let start = Instant::now();
        while !Path::new(&socket).exists() {
            assert!(start.elapsed() < PATIENCE, "{}", router.logs());
            std::thread::sleep(Duration::from_millis(20));
        }
        router.daemon(station, protocol.daemon);
        Some(router)
    }

    fn daemon(&mut self, station: &NetNamespace, name: &'static str) {
        let file = |suffix: &str| self.dir.file(&format!("{name}.{suffix}"));
        let mut command = Command::new(format!("{DAEMONS}/{name}"));
        command.args(["-f", &file("conf"), "-i", &file("pid"), "-P", "0"]);
        command.args(["-z", &self.dir.file("zserv.api")]);
        command.arg("--vty_socket").arg(self.dir.path());
        command.arg("--log").arg(format!("file:{}", file("log")));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let running = RunningProgram::start(station, &mut command);
        self.daemons.push((name, running));
    }

    /// Returns the daemons' logs.
    fn logs(&self) -> String {
        let log = |(name, _): &(&str, RunningProgram)| {
            std::fs::read_to_string(self.dir.file(&format!("{name}.log"))).unwrap_or_default()
        };
        self.daemons.iter().map(log).collect()
    }
}

impl Drop for Router {
    /// Stops the daemons and removes their crash report folders.
    fn drop(&mut self) {
        for (name, mut running) in self.daemons.drain(..) {
            let id = running.child().id();
            drop(running);
            let _ = std::fs::remove_dir_all(format!("/var/tmp/frr/{name}.{id}"));
        }
    }
}

/// Polls a router's table until a route appears or disappears, and returns the time in
/// seconds since `began`; `None` if that takes until `until`.
fn changed(site: &Site, there: bool, began: Instant, until: f64) -> Option<f64> {
    loop {
        let routed = site.said(0, &["ip", "route", "show", "192.168.2.1"]);
        let now = began.elapsed().as_secs_f64();
        if now >= until {
            return None;
        }
        if routed.is_empty() != there {
            return Some(now);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn routes_follow_the_link(protocol: &Protocol) {
    let Some(site) = Site::new(2) else { return };
    if !have(&format!("{DAEMONS}/zebra")) {
        return;
    }
    // Behind each router is a network of a single address.
    for (station, number) in [(0, 1), (1, 2)] {
        let own = format!("192.168.{number}.1/32");
        site.said(station, &["ip", "addr", "add", &own, "dev", "lo"]);
    }
    let dir = Folder::new();
    let file = dir.file("routers.toml");
    write(&file, NETWORK.as_bytes());
    let network = site.start(&file);
    let began = Instant::now();
    let mut routers = Vec::new();
    for (station, number) in [(0, 1), (1, 2)] {
        let router = Router::start(&site.stations[station], number, protocol);
        let Some(router) = router else { return };
        routers.push(router);
    }
    let logs = || routers.iter().map(Router::logs).collect::<String>();
    // The route appears, stays while the link is up, disappears once the neighbour has
    // been silent long enough, stays away, and appears again.
    let came = changed(&site, true, began, DOWN - 1.0);
    assert!(came.is_some(), "no route\n{}", logs());
    let delay = site.round_trip_to(0, "192.168.2.1").expect("an answer");
    assert!((9.9..30.0).contains(&delay), "{delay} ms");
    let (least, most) = protocol.dead;
    let went = changed(&site, false, began, UP);
    let went = went.unwrap_or_else(|| panic!("the route stays\n{}", logs()));
    let late = went - DOWN;
    // The network started shortly before it was seen to run, and a busy machine may
    // delay daemons.
    assert!(
        late > least - 0.5 && late < most + 1.5,
        "gone after {late} s"
    );
    let early = changed(&site, true, began, UP);
    assert_eq!(early, None, "there is no link");
    let back = changed(&site, true, began, UP + 30.0);
    let back = back.unwrap_or_else(|| panic!("no route again\n{}", logs()));
    let again = site.round_trip_to(0, "192.168.2.1").expect("an answer");
    assert!((9.9..30.0).contains(&again), "{again} ms");
    println!(
        "{}: {came:?}, gone {late} s after, back at {back}",
        protocol.daemon
    );
    let report = network.stop();
    for name in ["wire.up", "wire.down"] {
        let lost = &link(&report, name)["drops"];
        assert!(lost["outage"].as_u64() >= Some(3), "{name}: {lost}");
    }
    assert_nothing_lost(&report);
}

#[test]
fn ospf_routes_go_and_come_with_the_link() {
    routes_follow_the_link(&OSPF);
}

#[test]
fn bgp_routes_go_and_come_with_the_link() {
    routes_follow_the_link(&BGP);
}
