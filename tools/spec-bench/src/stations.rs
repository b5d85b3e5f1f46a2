//! Testbed for networks: stations in separate network namespaces, each with a veth pair to the
//! namespace of the network's ports.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path as FilePath;

use longwire_io::net::{NetError, NetNamespace, addr_add, link_stats};
use longwire_io::port::options::{OpenOptions, Purpose};
use longwire_io::port::registry::{self, Port};
use longwire_runtime::deciding::NetworkParts;
use longwire_runtime::{Faults, FileLoader, NetworkPlan, RunConfig, RunningNetwork};

use crate::program::{checked, start};
use longwire::Error;
use longwire_network::Numbered;
use longwire_testbed::support;
use longwire_topology::Topology;
use longwire_traffic::sockets::{Host, Path};

/// Name of a station's only device.
const DEVICE: &str = support::Stations::DEVICE;

/// Prefix length of a lane's network.
const PREFIX_LEN: u8 = 24;

/// Stations that are connected only by a network.
#[derive(Debug)]
pub(super) struct Stations(support::Stations);

/// Two stations, with addresses that are unique to this lane, so that a network can match their
/// frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lane {
    pub number: u8,
    /// Sending and receiving station.
    pub from: usize,
    pub to: usize,
}

impl Lane {
    /// Returns the addresses of the sending and the receiving station.
    pub fn addresses(self) -> [Ipv4Addr; 2] {
        [1, 2].map(|host| Ipv4Addr::new(10, 78, self.number, host))
    }
}

impl Stations {
    /// Creates `count` stations, at most 256.
    pub fn new(count: usize) -> Result<Stations, NetError> {
        support::Stations::new(count).map(Stations)
    }

    /// Returns a station's namespace.
    pub fn host(&self, station: usize) -> &NetNamespace {
        &self.0.hosts[station]
    }

    /// Gives two stations the addresses of a lane.
    pub fn add_lane(&self, lane: Lane) -> Result<(), NetError> {
        for (station, address) in [lane.from, lane.to].into_iter().zip(lane.addresses()) {
            self.host(station)
                .run(|| addr_add(DEVICE, IpAddr::V4(address), PREFIX_LEN))??;
        }
        Ok(())
    }

    /// Returns the path from a lane's sending station to its receiving station.
    pub fn path(&self, lane: Lane) -> Path<'_> {
        let [from, to] = lane.addresses();
        Path {
            from: Host {
                namespace: self.host(lane.from),
                address: from,
            },
            to: Host {
                namespace: self.host(lane.to),
                address: to,
            },
        }
    }

    /// Opens a station's device.
    pub fn open_device(&self, station: usize, purpose: Purpose) -> Result<Port, Error> {
        let options = OpenOptions {
            purpose,
            ..OpenOptions::default()
        };
        let open = || registry::open(&format!("packet:{DEVICE}"), &options);
        Ok(self.host(station).run(open)??)
    }

    /// Returns the number of frames received by the devices of all stations.
    pub fn received(&self) -> Result<u64, Error> {
        let mut frames = 0;
        for host in &self.0.hosts {
            frames += host.run(|| link_stats(DEVICE))??.rx_packets;
        }
        Ok(frames)
    }

    /// Starts a network from these parts; the ports are those of the stations, in order.
    pub fn start(
        &self,
        kind: &str,
        parts: NetworkParts,
        config: RunConfig,
    ) -> Result<RunningNetwork, Error> {
        let names = (0..self.0.hosts.len()).map(support::Stations::port);
        let ports = names.map(|name| (format!("{kind}:{name}"), name));
        let plan = NetworkPlan::changeable(self.open(ports.collect())?, parts);
        start(plan, config)
    }

    /// Starts the network of a topology, as `longwire run FILE` does.
    pub fn start_topology(&self, text: &str, config: RunConfig) -> Result<RunningNetwork, Error> {
        let topology = checked(Topology::parse("bench", text, FilePath::new("")))?;
        let ports = topology.ports.iter();
        let ports = ports.map(|port| (port.opens.clone(), port.name.clone()));
        let ports = self.open(ports.collect())?;
        let parts = Numbered::new(topology).parts(&FileLoader::reporting_to(&Faults::new()))?;
        let plan = NetworkPlan::changeable(ports, parts);
        start(plan, config)
    }

    /// Opens ports in the network's namespace.
    fn open(&self, ports: Vec<(String, String)>) -> Result<Vec<(String, Port)>, Error> {
        let options = OpenOptions::default();
        let open = || {
            let open = |(text, name): (String, String)| {
                registry::open(&text, &options).map(|port| (name, port))
            };
            ports.into_iter().map(open).collect::<Result<Vec<_>, _>>()
        };
        Ok(self.0.middle.run(open)??)
    }
}
