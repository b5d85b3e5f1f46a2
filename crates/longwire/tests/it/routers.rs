//! Two FRR routers with OSPF or BGP over a network of `longwire run FILE.toml`: they learn routes,
//! lose them when the link is turned off, and relearn them.
//!
//! Skipped without FRR or without permission to create namespaces, except in CI.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::program::{RunningProgram, TIMEOUT, background, eventually, run_in};
use crate::common::site::{Site, assert_nothing_lost};
use crate::common::{count, have, longwire, named, write};
use longwire_io::net::NetNamespace;
use longwire_testbed::support::Folder;

/// Directory of the daemons in Debian's and FRR's packages.
const DAEMONS: &str = "/usr/lib/frr";

/// Time without a link, in which no route may appear.
const OUTAGE: Duration = Duration::from_secs(3);

/// A link between the routers.
const NETWORK: &str = r#"
[ports]
a = "packet:p0"
b = "packet:p1"

[[link]]
name = "wire"
match = "in-port=a"
delay = "5ms"
"#;

/// A routing protocol: daemon and router configuration.
struct Protocol {
    daemon: &'static str,
    settings: fn(u8, u8) -> String,
}

/// OSPF with four hellos/s and a dead interval of one second (RFC 2328, appendix C.3; sub-second
/// intervals are an FRR extension).
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
};

/// BGP with one keepalive per second and a hold time of three seconds (RFC 4271, section 4.4).
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
};

/// A router's daemons; all their files are in one folder.
struct Router {
    daemons: Vec<(&'static str, RunningProgram)>,
    dir: Folder,
}

impl Router {
    /// Starts the daemons; `None` if FRR cannot switch from root to its own user, which it
    /// requires.
    fn start(station: &NetNamespace, number: u8, protocol: &Protocol) -> Option<Router> {
        let mut router = Router {
            daemons: Vec::new(),
            dir: Folder::new(),
        };
        let other = 3 - number;
        let settings = (protocol.settings)(number, other);
        write(router.dir.file("zebra.conf"), "");
        let file = router.dir.file(&format!("{}.conf", protocol.daemon));
        write(&file, &settings);
        let owned = run_in(station, format!("chown -R frr:frr {}", router.dir.file("")));
        if owned.code != 0 {
            // A user namespace lacks FRR's user, even in CI.
            eprintln!("skipped: no user frr: {}", owned.stderr);
            return None;
        }
        router.daemon(station, "zebra");
        let socket = router.dir.file("zserv.api");
        eventually("zebra answers", || Path::new(&socket).exists());
        router.daemon(station, protocol.daemon);
        Some(router)
    }

    fn daemon(&mut self, station: &NetNamespace, name: &'static str) {
        let file = |suffix: &str| self.dir.file(&format!("{name}.{suffix}"));
        let (conf, pid, log) = (file("conf"), file("pid"), file("log"));
        let (socket, folder) = (self.dir.file("zserv.api"), self.dir.file(""));
        let line = format!(
            "{DAEMONS}/{name} -f {conf} -i {pid} -P 0 -z {socket} --vty_socket {folder} \
             --log file:{log}"
        );
        let running = background(station, &line);
        self.daemons.push((name, running));
    }

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
        for (name, running) in self.daemons.drain(..) {
            let id = running.id();
            drop(running);
            let _ = std::fs::remove_dir_all(format!("/var/tmp/frr/{name}.{id}"));
        }
    }
}

/// Polls the first router's table until the route to the second appears or disappears; returns
/// whether that happened in time.
fn changed(site: &Site, there: bool, within: Duration) -> bool {
    let began = Instant::now();
    loop {
        let routed = site.said(0, "ip route show 192.168.2.1");
        if routed.is_empty() != there {
            return true;
        }
        if began.elapsed() >= within {
            return false;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn routes_follow_the_link(protocol: &Protocol) {
    let Some(site) = Site::new(2) else { return };
    if !have(&format!("{DAEMONS}/zebra")) {
        return;
    }
    // Each router has a network with a single address.
    for (station, number) in [(0, 1), (1, 2)] {
        site.said(station, format!("ip addr add 192.168.{number}.1/32 dev lo"));
    }
    let dir = Folder::new();
    let control = dir.file("control.sock");
    let network = site.start_network(&dir, NETWORK, &format!("--control {control}"));
    let mut routers = Vec::new();
    for (station, number) in [(0, 1), (1, 2)] {
        let router = Router::start(&site.stations[station], number, protocol);
        let Some(router) = router else { return };
        routers.push(router);
    }
    let assert_changed = |there, what: &str| {
        let logs = || routers.iter().map(Router::logs).collect::<String>();
        assert!(changed(&site, there, TIMEOUT), "{what}\n{}", logs());
    };
    let take = |verb: &str| longwire(format!("ctl {verb} wire --control {control}")).well();
    assert_changed(true, "no route");
    site.assert_not_early(0, "192.168.2.1", 10.0);
    take("off");
    assert_changed(false, "the route stays");
    assert!(!changed(&site, true, OUTAGE), "there is no link");
    take("on");
    assert_changed(true, "no route again");
    site.assert_not_early(0, "192.168.2.1", 10.0);
    let report = network.stop();
    for name in ["wire.up", "wire.down"] {
        let lost = &named(&report["links"], name)["drops"];
        assert!(count(&lost["outage"]) >= 3, "{name}: {lost}");
    }
    assert_nothing_lost(&report);
}

#[test]
fn ospf_routes_follow_the_link() {
    routes_follow_the_link(&OSPF);
}

#[test]
fn bgp_routes_follow_the_link() {
    routes_follow_the_link(&BGP);
}
