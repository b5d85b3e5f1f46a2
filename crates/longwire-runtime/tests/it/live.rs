//! Live runs between two hosts in network namespaces, with real sockets, super-packets
//! and port loss. Requires the right to create namespaces; without it, the tests are
//! skipped with a message, and fail in CI.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use longwire_engine::{BitRate, LinkConfig, models};
use longwire_io::net::{self, NetNamespace};
use longwire_runtime::{LinkSetup, NetworkPlan, Placement, RunConfig, RunningNetwork, start};
use longwire_testbed::support::namespace;
use longwire_testbed::{EnvironmentConfig, Networks, Side};

pub struct Hosts {
    pub networks: Networks,
}

impl Hosts {
    pub fn new() -> Option<Hosts> {
        Hosts::with(&EnvironmentConfig::default())
    }

    pub fn with(config: &EnvironmentConfig) -> Option<Hosts> {
        // Fails without the right to namespaces.
        namespace()?;
        let networks = Networks::new(config);
        Some(Hosts {
            networks: networks.expect("networks"),
        })
    }

    pub fn host(&self, side: Side) -> (&NetNamespace, Ipv4Addr) {
        let address = self.networks.plan().v4_of(side);
        (self.networks.network(side), address)
    }

    pub fn start(
        &self,
        kind: &str,
        up: LinkConfig,
        down: LinkConfig,
        config: RunConfig,
    ) -> RunningNetwork {
        let (near, far) = self.networks.open_ports(kind).expect("ports");
        let setup = |name: &str, config| LinkSetup::new(name, config);
        let (up, down) = (setup("up", up), setup("down", down));
        let plan = NetworkPlan::link(near, far, up, Some(down));
        start(plan, config, None).expect("a run")
    }

    /// Sends `bytes` over TCP from near to far and checks them; returns the time taken.
    fn tcp(&self, bytes: usize) -> Duration {
        self.tcp_to(self.host(Side::Far).1, bytes)
    }

    /// Like [`Hosts::tcp`], to an address of far.
    pub fn tcp_to(&self, address: Ipv4Addr, bytes: usize) -> Duration {
        let ((near, _), (far, _)) = (self.host(Side::Near), self.host(Side::Far));
        let listener = far.run(|| TcpListener::bind((address, 0)));
        let listener = listener.expect("a thread");
        let listener = listener.expect("a listener");
        let target = listener.local_addr().expect("its address");
        let start = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let connect = || TcpStream::connect_timeout(&target, Duration::from_secs(10));
                let stream = near.run(connect).expect("a thread");
                let data: Vec<u8> = (0..bytes).map(|i| (i % 251) as u8).collect();
                stream
                    .expect("a connection")
                    .write_all(&data)
                    .expect("sent");
            });
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut data = Vec::new();
            stream
                .set_read_timeout(Some(Duration::from_secs(20)))
                .expect("a timeout");
            stream.read_to_end(&mut data).expect("received");
            assert_eq!(data.len(), bytes);
            assert!(
                data.iter()
                    .enumerate()
                    .all(|(i, byte)| *byte == (i % 251) as u8)
            );
        });
        start.elapsed()
    }

    /// Returns the round-trip time of a datagram.
    fn round_trip(&self) -> Option<Duration> {
        let bind = |side| {
            let (host, address) = self.host(side);
            let socket = host
                .run(|| UdpSocket::bind((address, 0)))
                .expect("a thread");
            let socket = socket.expect("a socket");
            socket
                .set_read_timeout(Some(Duration::from_secs(3)))
                .expect("a timeout");
            socket
        };
        let (near, far) = (bind(Side::Near), bind(Side::Far));
        let target = far.local_addr().expect("its address");
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut buffer = [0; 64];
                if let Ok((len, from)) = far.recv_from(&mut buffer) {
                    let _ = far.send_to(&buffer[..len], from);
                }
            });
            let start = Instant::now();
            near.send_to(b"there and back", target).expect("sent");
            let mut buffer = [0; 64];
            near.recv(&mut buffer).ok().map(|_| start.elapsed())
        })
    }
}

pub fn link(rate: Option<u64>, delay: &str) -> LinkConfig {
    LinkConfig {
        rate: rate.and_then(BitRate::from_bits_per_sec).into(),
        delay: models::DELAY.parse(delay).expect("a delay"),
        ..LinkConfig::default()
    }
}

#[test]
fn tcp_crosses_every_kind_of_port_unharmed() {
    let Some(hosts) = Hosts::new() else { return };
    for kind in ["packet", "xdp"] {
        let running = hosts.start(
            kind,
            link(None, "1ms"),
            link(None, "1ms"),
            RunConfig::default(),
        );
        hosts.tcp(4_000_000);
        let report = running.stop();
        let up = &report.links[0];
        assert_eq!(report.error, None, "{kind}");
        // Super-packets count as wire frames.
        assert!(
            up.traffic.packets_in >= 4_000_000 / 1448,
            "{kind}: {}",
            up.traffic.packets_in
        );
        assert!(
            up.traffic.bytes_in / up.traffic.packets_in <= 1514,
            "{kind}"
        );
        assert_eq!(up.drops.values().sum::<u64>(), 0, "{kind}");
    }
}

#[test]
fn a_rate_holds_against_super_packets() {
    let Some(hosts) = Hosts::new() else { return };
    let up = link(Some(40_000_000), "2ms");
    let running = hosts.start("packet", up, link(None, "2ms"), RunConfig::default());
    let took = hosts.tcp(5_000_000);
    let report = running.stop();
    // 5 MB at 40 Mbit/s take 1 s, plus 4.6 % for headers.
    assert!(took >= Duration::from_millis(1_040), "{took:?}");
    let up = &report.links[0];
    assert_eq!(up.drops["mtu"] + up.drops["loss"], 0);
    assert!(
        up.queue.unwrap_or_default().queue_bytes_max <= 500_000 + 1_514,
        "{}",
        up.queue.unwrap_or_default().queue_bytes_max
    );
}

#[test]
fn a_delay_holds_with_every_placement() {
    let Some(hosts) = Hosts::new() else { return };
    for placement in [
        Placement::Together,
        Placement::PerDirection,
        Placement::PerStage,
    ] {
        let config = RunConfig {
            placement,
            ..RunConfig::default()
        };
        let running = hosts.start("packet", link(None, "30ms"), link(None, "20ms"), config);
        // The first round trip resolves addresses.
        hosts.round_trip();
        let (mut trips, mut sleeps) = (Vec::new(), Vec::new());
        for _ in 0..11 {
            trips.push(hosts.round_trip().expect("an answer"));
            let began = Instant::now();
            thread::sleep(Duration::from_millis(10));
            sleeps.push(began.elapsed());
        }
        trips.sort_unstable();
        sleeps.sort_unstable();
        assert!(
            trips[0] >= Duration::from_millis(50),
            "{placement:?}: {trips:?}"
        );
        // A thread that is not woken sleeps for up to 250 ms. A round trip has five
        // wake-ups; 2 ms each on a busy machine delay it without a defect.
        let busy = sleeps[5] > Duration::from_millis(12);
        assert!(
            trips[5] < Duration::from_millis(80) || busy,
            "{placement:?}: {trips:?}, {sleeps:?}"
        );
        let report = running.stop();
        for link in &report.links {
            let lateness = link.lateness_us;
            assert!(
                lateness.max > 0.0 && link.traffic.packets_out >= 12,
                "{lateness:?}"
            );
            assert!(
                lateness.p50 < 15_000.0 || busy,
                "{placement:?}: {lateness:?}"
            );
        }
    }
}

#[test]
fn a_port_that_goes_away_ends_the_run_with_a_word() {
    for kind in ["packet", "xdp"] {
        let Some(hosts) = Hosts::new() else { return };
        let running = hosts.start(
            kind,
            link(None, "1ms"),
            link(None, "1ms"),
            RunConfig::default(),
        );
        assert!(hosts.round_trip().is_some());
        let port = hosts.networks.port(Side::Far);
        port.namespace
            .run(|| net::link_delete(port.device))
            .expect("a thread")
            .expect("deleted");
        assert!(running.wait(Duration::from_secs(5)), "{kind}: the run ends");
        let report = running.stop();
        let error = report.error.expect("a reason");
        assert!(error.contains("far"), "{kind}: {error}");
        assert!(
            report.links[0].traffic.packets_out > 0,
            "{kind}: the report has what was done"
        );
    }
}

#[test]
fn an_idle_link_sleeps() {
    let Some(hosts) = Hosts::new() else { return };
    let running = hosts.start(
        "packet",
        link(None, "1s"),
        link(None, "1s"),
        RunConfig::default(),
    );
    let time = Duration::from_secs(2);
    std::thread::sleep(time);
    let report = running.stop();
    // A bench measures the exact value; spinning would use all of the time.
    assert!(
        report.cpu_s < time.as_secs_f64() / 10.0,
        "{} s",
        report.cpu_s
    );
}
