//! Live runs between two hosts in network namespaces, with real sockets, super-packets and port
//! loss. Without the right to create namespaces, the tests are skipped with a message, except in
//! CI, where they fail.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

use longwire_io::net::{self, NetNamespace};
use longwire_runtime::{LinkSetup, NetworkPlan, RunConfig, RunningNetwork, start};
use longwire_testbed::support::namespace;
use longwire_testbed::{EnvironmentConfig, Networks, Side};

use crate::common::delayed;

pub struct Hosts {
    pub networks: Networks,
}

impl Hosts {
    pub fn new() -> Option<Hosts> {
        Hosts::with(&EnvironmentConfig::default())
    }

    pub fn with(config: &EnvironmentConfig) -> Option<Hosts> {
        // Fails without the right to create namespaces.
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

    /// Starts a link with a delay of 1 ms each way, between ports of this kind.
    pub fn start(&self, kind: &str) -> RunningNetwork {
        let (near, far) = self.networks.open_ports(kind).expect("ports");
        let [up, down] = ["up", "down"].map(|name| LinkSetup::new(name, delayed("1ms")));
        let plan = NetworkPlan::link(near, far, up, Some(down));
        start(plan, RunConfig::default(), None).expect("a run")
    }

    /// Sends `bytes` over TCP from near to far and checks them.
    fn tcp(&self, bytes: usize) {
        self.tcp_to(self.host(Side::Far).1, bytes);
    }

    /// Like [`Hosts::tcp`], to an address of far.
    pub fn tcp_to(&self, address: Ipv4Addr, bytes: usize) {
        let ((near, _), (far, _)) = (self.host(Side::Near), self.host(Side::Far));
        let listener = far.run(|| TcpListener::bind((address, 0)));
        let listener = listener.expect("a thread");
        let listener = listener.expect("a listener");
        let target = listener.local_addr().expect("its address");
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
    }
}

#[test]
fn tcp_crosses_every_kind_of_port_unharmed() {
    let Some(hosts) = Hosts::new() else { return };
    for kind in ["packet", "xdp"] {
        let running = hosts.start(kind);
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
fn a_port_that_goes_away_ends_the_run_with_a_word() {
    for kind in ["packet", "xdp"] {
        let Some(hosts) = Hosts::new() else { return };
        let running = hosts.start(kind);
        hosts.tcp(1_000);
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
            "{kind}: the report has no delivered frames"
        );
    }
}
