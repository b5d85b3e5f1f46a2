//! Host networks, to be connected by a link or a network of links.

use std::panic::resume_unwind;
use std::thread::{self, Builder, ScopedJoinHandle};

use longwire_io::RxPort;
use longwire_io::net::{NetNamespace, link};
use longwire_io::port::options::{CarrierControl, OpenOptions};
use longwire_io::port::registry::{self, Port};
use longwire_runtime::clock::monotonic_now;
use longwire_runtime::stage::BURST;

use crate::config::{Device, EnvironmentConfig, Side};
use crate::error::EnvironmentError;
use crate::follow::Follower;
use crate::network;
use crate::plan::{Host, Names, Plan, mac_of};
use crate::silence::Groups;
use crate::user;

/// Maximum MTU of a veth device.
const MTU_MAX: u32 = 65_535;
/// Size of an Ethernet header with a VLAN tag, in bytes.
const ETHERNET: usize = 14 + 4;

/// The device that the emulator opens as a host's port.
#[derive(Clone, Copy, Debug)]
pub struct PortPlace<'a> {
    /// Namespace of the device.
    pub namespace: &'a NetNamespace,
    /// Device name in that namespace.
    pub device: &'a str,
}

/// The networks of near, far and other hosts, and the emulator's network. They exist while this
/// value exists, or a thread or process in them.
#[derive(Debug)]
pub struct Networks {
    hosts: Vec<Host>,
    /// Indexed by host.
    namespaces: Vec<NetNamespace>,
    hub: NetNamespace,
    plan: Plan,
    device: Device,
    /// MTU of the hosts' devices, unless commands change it.
    mtu: u32,
    notes: Vec<String>,
    /// Indexed by host.
    groups: Vec<Groups>,
    _follower: Follower,
}

/// Ports opened at the same time; each takes two threads and waits for an RCU grace period.
const OPENED_TOGETHER: usize = 16;

impl Networks {
    /// Creates the networks, without the configuration's uplink.
    ///
    /// # Errors
    ///
    /// If the system does not allow namespaces (the message names the setting), or a device cannot
    /// be created.
    pub fn new(config: &EnvironmentConfig) -> Result<Networks, EnvironmentError> {
        Networks::make(Plan::USUAL, config, new_namespace)
    }

    /// Creates the networks in namespaces obtained from `namespace`.
    pub(crate) fn make(
        plan: Plan,
        config: &EnvironmentConfig,
        mut namespace: impl FnMut() -> Result<NetNamespace, EnvironmentError>,
    ) -> Result<Networks, EnvironmentError> {
        let hub = namespace()?;
        let mut notes = network::prepare_hub(&hub)?;
        let hosts = plan.hosts(config);
        let (mut namespaces, mut groups) = (Vec::new(), Vec::new());
        for host in &hosts {
            let network = namespace()?;
            let prepared = network::prepare_network(host, &hosts, &network, &hub, config)?;
            notes.extend(prepared.notes);
            groups.push(prepared.groups);
            namespaces.push(network);
        }
        let follower = Follower::start(&hosts, &namespaces)?;
        let mut networks = Networks {
            hosts,
            namespaces,
            hub,
            plan,
            device: config.device,
            mtu: config.mtu,
            notes: Vec::new(),
            groups,
            _follower: follower,
        };
        networks.add_notes(notes);
        Ok(networks)
    }

    /// Returns the network of a side, for threads that send or receive in it. Its device is
    /// [`network::DEVICE`].
    pub fn network(&self, side: Side) -> &NetNamespace {
        &self.namespaces[side.index()]
    }

    /// Returns the networks of all hosts, near first and far second.
    pub fn all(&self) -> &[NetNamespace] {
        &self.namespaces
    }

    /// Returns the names and addresses of all hosts.
    pub(crate) fn names(&self) -> Names<'_> {
        Names(&self.hosts)
    }

    /// Returns the MAC address of a host's device; host 0 is `near`.
    pub fn mac(&self, host: usize) -> [u8; 6] {
        mac_of(self.hosts[host].number, 0)
    }

    /// Returns the default addresses of near and far.
    pub fn plan(&self) -> Plan {
        self.plan
    }

    /// Returns notes for the user: optional steps that failed.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        self.notes.iter().map(String::as_str)
    }

    pub(crate) fn add_notes(&mut self, notes: Vec<String>) {
        self.notes.extend(notes);
        self.notes.sort();
        self.notes.dedup();
    }

    /// Returns the device to open as a side's port.
    pub fn port(&self, side: Side) -> PortPlace<'_> {
        self.port_of(side.index())
    }

    fn port_of(&self, host: usize) -> PortPlace<'_> {
        match self.device {
            Device::Veth => PortPlace {
                namespace: &self.hub,
                device: &self.hosts[host].device,
            },
            Device::Tap => PortPlace {
                namespace: &self.namespaces[host],
                device: network::DEVICE,
            },
        }
    }

    /// Opens ports of this kind (`auto`, `packet`, `xdp`, `tap`) for near and far. Waits until the
    /// kernel has finished its announcements, so that later frames come from programs in the
    /// networks. Programs may raise their devices' MTU to at most 65,535, except with `xdp`.
    ///
    /// # Errors
    ///
    /// If a namespace cannot be entered, or a port cannot be opened.
    pub fn open_ports(&self, kind: &str) -> Result<(Port, Port), EnvironmentError> {
        let mut ports = self.open_all_ports(kind)?.into_iter();
        let mut next = || ports.next().unwrap_or_else(|| unreachable!("near and far"));
        Ok((next(), next()))
    }

    /// Opens the ports of all hosts in order; see [`Networks::open_ports`].
    ///
    /// # Errors
    ///
    /// See [`Networks::open_ports`].
    pub fn open_all_ports(&self, kind: &str) -> Result<Vec<Port>, EnvironmentError> {
        let open = |host: usize| -> Result<Port, EnvironmentError> {
            let place = self.port_of(host);
            let options = OpenOptions {
                frame_usual: Some(self.mtu as usize + ETHERNET),
                carrier: if self.hosts[host].carrier {
                    CarrierControl::OwnPair
                } else {
                    CarrierControl::Off
                },
                ..OpenOptions::default()
            };
            let name = format!("{kind}:{}", place.device);
            let opened = place.namespace.run(|| {
                if self.device == Device::Veth {
                    // AF_XDP frame memory has no space for longer frames.
                    let mtu = if kind == "xdp" { self.mtu } else { MTU_MAX };
                    link::set_mtu(place.device, mtu)?;
                }
                Ok::<_, EnvironmentError>(registry::open(&name, &options)?)
            });
            opened?
        };
        let mut ports = Vec::with_capacity(self.hosts.len());
        for first in (0..self.hosts.len()).step_by(OPENED_TOGETHER) {
            let hosts = first..self.hosts.len().min(first + OPENED_TOGETHER);
            let opened: Result<Vec<Port>, EnvironmentError> = thread::scope(|scope| {
                let open = &open;
                let start = |host| {
                    let started = Builder::new().spawn_scoped(scope, move || open(host));
                    started.map_err(|e| {
                        EnvironmentError::system("start a thread (see `ulimit -u`)", e)
                    })
                };
                let opening: Result<Vec<_>, _> = hosts.map(start).collect();
                let opened = opening?.into_iter().map(ScopedJoinHandle::join);
                opened
                    .map(|opened| opened.unwrap_or_else(|panic| resume_unwind(panic)))
                    .collect()
            });
            ports.extend(opened?);
        }
        self.settle()?;
        for port in &mut ports {
            while port.rx.receive(monotonic_now(), BURST, &mut |_| {})?.frames > 0 {}
        }
        Ok(ports)
    }

    /// Waits until the kernel has finished its announcements.
    fn settle(&self) -> Result<(), EnvironmentError> {
        if self.device == Device::Tap {
            // A TAP device gets its carrier and IPv6 address once its port is open.
            self.namespaces.iter().try_for_each(network::wait_running)?;
        }
        for (groups, namespace) in self.groups.iter().zip(&self.namespaces) {
            namespace.run(|| groups.wait_reported())?;
        }
        Ok(())
    }
}

/// Creates the networks of near and far, joined directly by a veth pair, as a baseline without
/// emulation.
///
/// # Errors
///
/// See [`Networks::new`].
pub fn direct_networks() -> Result<[NetNamespace; 2], EnvironmentError> {
    let (near, far) = (new_namespace()?, new_namespace()?);
    let config = EnvironmentConfig::default();
    let hosts = Plan::USUAL.hosts(&config);
    network::join_hosts([&hosts[0], &hosts[1]], [&near, &far], &config)?;
    Ok([near, far])
}

/// Creates a namespace. If the system refuses, the error names the likely cause.
pub(crate) fn new_namespace() -> Result<NetNamespace, EnvironmentError> {
    NetNamespace::new().map_err(|source| EnvironmentError::Forbidden {
        source,
        advice: user::advice(nix::unistd::geteuid()),
    })
}
