//! `longwire run FILE.toml` with real stations: four namespaces on a bridge of
//! four ports, with links between some of them that change while they run.
//!
//! Where namespaces are not allowed the test passes without having run, except
//! in CI.

mod common;

use std::net::{IpAddr, Ipv4Addr};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{Dir, longwire, ran, write};
use longwire_io::net::{NetNamespace, addr_add, link_up, veth};
use serde_json::Value;

/// The bridge's namespace, and the stations'.
struct Site {
    middle: NetNamespace,
    stations: Vec<NetNamespace>,
}

impl Site {
    /// Stations 10.9.0.1 and so on, each on a port p0, p1 and so on.
    fn new(count: u8) -> Option<Site> {
        let middle = NetNamespace::new();
        if let Err(error) = &middle {
            assert!(std::env::var_os("CI").is_none(), "{error}");
            eprintln!("skipped: {error}");
        }
        let mut site = Site {
            middle: middle.ok()?,
            stations: Vec::new(),
        };
        for number in 0..count {
            let station = NetNamespace::new().expect("another namespace");
            let port = format!("p{number}");
            let config = veth::VethConfig {
                a: veth::End {
                    name: &port,
                    ..veth::End::default()
                },
                b: veth::End {
                    name: "eth0",
                    namespace: Some(&station),
                    ..veth::End::default()
                },
            };
            let made = site.middle.run(|| {
                veth::create(&config)?;
                link_up(&port)
            });
            made.expect("it is entered").expect("a pair");
            let address = IpAddr::V4(Ipv4Addr::new(10, 9, 0, number + 1));
            let set_up = station.run(|| {
                link_up("eth0")?;
                addr_add("eth0", address, 24)
            });
            set_up.expect("it is entered").expect("an address");
            site.stations.push(station);
        }
        Some(site)
    }

    /// Starts a network; it runs until it is told to stop.
    fn start(&self, file: &str) -> Running {
        let child = self.middle.run(|| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
            command.args(["run", file, "--json", "--tolerance", "10s"]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn()
        });
        Running(child.expect("it is entered").expect("it starts"))
    }

    /// Pings from one station to another until it is answered once, and then
    /// the shortest of some round trips, in milliseconds; `None` if nothing
    /// answers.
    fn round_trip(&self, from: usize, to: usize) -> Option<f64> {
        let address = format!("10.9.0.{}", to + 1);
        let pinged = self.stations[from].run(|| {
            let mut command = Command::new("ping");
            command.args(["-c", "4", "-i", "0.2", "-W", "1", "-q", &address]);
            command.output()
        });
        let output = pinged.expect("it is entered").expect("ping is installed");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let times = text.split_once("min/avg/max/mdev = ")?.1;
        times.split('/').next()?.parse().ok()
    }
}

struct Running(Child);

impl Running {
    /// Ends it, as Ctrl-C does; its report.
    fn stop(self) -> Value {
        let pid = nix::unistd::Pid::from_raw(self.0.id() as i32);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).expect("it runs");
        let ended = ran(self.0.wait_with_output().expect("it ends"));
        assert_eq!(ended.code, 0, "{ended:?}");
        ended.json()
    }
}

const NETWORK: &str = r#"
[ports]
a = "packet:p0"
b = "packet:p1"
c = "packet:p2"
d = "packet:p3"

[[link]]
name = "ab"
match = "src=10.9.0.1,dst=10.9.0.2"
delay = "20ms"

[[link]]
name = "ac"
match = "src=10.9.0.1,dst=10.9.0.3"
delay = "5ms"
down = { delay = "15ms" }

[[at]]
time = "12s"
set = { "ab" = { delay = "40ms" } }
down = ["ac.down"]
"#;

#[test]
fn stations_meet_over_links_that_change() {
    let Some(site) = Site::new(4) else {
        return;
    };
    let dir = Dir::new();
    let file = dir.file("network.toml");
    write(&file, NETWORK.as_bytes());
    let began = Instant::now();
    let running = site.start(&file);
    // The first ones wait for the ports, and what came before the network ran
    // is late; ARP crosses the bridge by itself.
    let answered = (0..5).find_map(|_| site.round_trip(0, 1));
    assert!(answered.is_some(), "no answer");
    // What the stations and a busy machine add is bounded generously.
    let check = |found: Option<f64>, delays: f64| {
        let found = found.expect("an answer");
        let over = found - delays;
        assert!(over > -0.1 && over < 20.0, "{found} ms, not {delays} ms");
    };
    check(site.round_trip(0, 1), 40.0);
    check(site.round_trip(0, 2), 20.0);
    check(site.round_trip(0, 3), 0.0);
    check(site.round_trip(2, 1), 0.0);
    while began.elapsed() < Duration::from_secs(15) {
        std::thread::sleep(Duration::from_millis(50));
    }
    check(site.round_trip(0, 1), 80.0);
    assert_eq!(site.round_trip(0, 2), None, "one direction is down");
    let report = running.stop();
    let links = report["links"].as_array().expect("links");
    let link = |name: &str| {
        let found = links.iter().find(|link| link["name"] == name);
        found.unwrap_or_else(|| panic!("{name} in {links:?}"))
    };
    assert!(link("ac.down")["dropped"]["outage"].as_u64() >= Some(4));
    assert_eq!(link("ab.up")["dropped"], serde_json::json!({}));
    let learnt = report["switch"]["learnt"].as_u64();
    assert!(learnt >= Some(4), "{learnt:?} stations");
    for port in report["ports"].as_array().expect("ports") {
        let lost = ["memory", "ring_full", "send_failed", "refused"];
        for kind in lost {
            assert_eq!(port["artifacts"][kind], 0, "{port}");
        }
    }
}

#[test]
fn a_file_that_is_refused_starts_nothing() {
    let dir = Dir::new();
    let file = dir.file("wrong.toml");
    write(
        &file,
        b"[ports]\na = \"packet:nothing\"\n[[link]]\nname = \"x\"\nrate = \"fast\"\n",
    );
    let ended = longwire(&["run", &file]);
    assert_eq!(ended.code, 2, "{ended:?}");
    assert!(ended.stderr.contains("wrong.toml:5"), "{ended:?}");
    // One port is no link.
    let ended = longwire(&["run", "null"]);
    assert_eq!(ended.code, 2, "{ended:?}");
    assert!(ended.stderr.contains("two ends"), "{ended:?}");
}
