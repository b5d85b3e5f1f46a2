//! Networks of hosts with a gap between them, for a link or a network of links to close.

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
use crate::{silence, user};

/// The largest MTU of a veth device.
const MTU_MAX: u32 = 65_535;
/// Bytes of an Ethernet header with a VLAN tag.
const ETHERNET: usize = 14 + 4;

/// The place in which the emulator opens the port of a host.
#[derive(Clone, Copy, Debug)]
pub struct PortPlace<'a> {
    /// The namespace to be in when opening it.
    pub namespace: &'a NetNamespace,
    /// The device's name there.
    pub device: &'a str,
}

/// The networks of near, far and further hosts, and the emulator's between them. They live as
/// long as this value, a thread in them, or a process in them.
#[derive(Debug)]
pub struct Networks {
    hosts: Vec<Host>,
    /// In the order of the hosts.
    namespaces: Vec<NetNamespace>,
    hub: NetNamespace,
    plan: Plan,
    device: Device,
    /// The MTU of the hosts' devices, unless commands change it.
    mtu: u32,
    notes: Vec<String>,
    _follower: Follower,
}

impl Networks {
    /// Makes the networks. The configuration's uplink is left out.
    ///
    /// # Errors
    ///
    /// When the system does not allow namespaces (the message says which
    /// setting stands in the way), or a device cannot be made.
    pub fn new(config: &EnvironmentConfig) -> Result<Networks, EnvironmentError> {
        Networks::make(Plan::USUAL, config, new_namespace)
    }

    /// Makes the networks in namespaces that `namespace` makes.
    pub(crate) fn make(
        plan: Plan,
        config: &EnvironmentConfig,
        mut namespace: impl FnMut() -> Result<NetNamespace, EnvironmentError>,
    ) -> Result<Networks, EnvironmentError> {
        let hub = namespace()?;
        let mut notes = network::prepare_hub(&hub)?;
        let hosts = plan.hosts(config);
        let mut namespaces = Vec::new();
        for host in &hosts {
            let network = namespace()?;
            notes.extend(network::prepare_network(
                host, &hosts, &network, &hub, config,
            )?);
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
            _follower: follower,
        };
        networks.add_notes(notes);
        Ok(networks)
    }

    /// The network of a side, for threads that send or receive there. Its
    /// device is [`network::DEVICE`].
    pub fn network(&self, side: Side) -> &NetNamespace {
        &self.namespaces[side.index()]
    }

    /// The networks of all hosts, near first and far second.
    pub fn all(&self) -> &[NetNamespace] {
        &self.namespaces
    }

    /// The names and addresses of all hosts.
    pub(crate) fn names(&self) -> Names<'_> {
        Names(&self.hosts)
    }

    /// Returns the MAC address of a host's device. Hosts count from 0, near.
    pub fn mac(&self, host: usize) -> [u8; 6] {
        mac_of(self.hosts[host].number, 0)
    }

    /// The usual addresses of near and far.
    pub fn plan(&self) -> Plan {
        self.plan
    }

    /// Notes for the user: optional steps that failed.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        self.notes.iter().map(String::as_str)
    }

    pub(crate) fn add_notes(&mut self, notes: Vec<String>) {
        self.notes.extend(notes);
        self.notes.sort();
        self.notes.dedup();
    }

    /// The place in which to open a side's port.
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

    /// Opens the ports of near and far as this kind (`auto`, `packet`, `xdp`,
    /// `tap`). Frames that they receive from now on are those of programs in
    /// the networks: the kernel itself has nothing more to send. These may raise the
    /// MTU of their devices up to 65,535, except with `xdp`.
    ///
    /// # Errors
    ///
    /// If a namespace cannot be entered, or a port not be opened.
    pub fn open_ports(&self, kind: &str) -> Result<(Port, Port), EnvironmentError> {
        let mut ports = self.open_all_ports(kind)?.into_iter();
        let mut next = || ports.next().unwrap_or_else(|| unreachable!("near and far"));
        Ok((next(), next()))
    }

    /// Opens the ports of all hosts, in their order, as [`Networks::open_ports`] does.
    ///
    /// # Errors
    ///
    /// As [`Networks::open_ports`].
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
                    // The frame memory of AF_XDP has no space for longer frames.
                    let mtu = if kind == "xdp" { self.mtu } else { MTU_MAX };
                    link::set_mtu(place.device, mtu)?;
                }
                Ok::<_, EnvironmentError>(registry::open(&name, &options)?)
            });
            opened?
        };
        let ports: Result<Vec<Port>, _> = (0..self.hosts.len()).map(open).collect();
        let mut ports = ports?;
        self.settle()?;
        for port in &mut ports {
            while port.rx.receive(monotonic_now(), BURST, &mut |_| {})?.frames > 0 {}
        }
        Ok(ports)
    }

    /// Waits until the kernel itself has nothing more to send.
    fn settle(&self) -> Result<(), EnvironmentError> {
        if self.device == Device::Tap {
            // A TAP device has a carrier, and the kernel an IPv6 address on
            // it, once its port is open.
            self.namespaces.iter().try_for_each(network::wait_running)?;
        }
        silence::wait_for_silence(&self.namespaces)?;
        Ok(())
    }
}

/// Makes the networks of near and far, joined by a veth pair and no emulator:
/// what the machine itself can do.
///
/// # Errors
///
/// As of [`Networks::new`].
pub fn direct_networks() -> Result<[NetNamespace; 2], EnvironmentError> {
    let (near, far) = (new_namespace()?, new_namespace()?);
    let config = EnvironmentConfig::default();
    let hosts = Plan::USUAL.hosts(&config);
    network::join_hosts([&hosts[0], &hosts[1]], [&near, &far], &config)?;
    Ok([near, far])
}

/// Makes a namespace. A refusal inside a user namespace has its own reasons,
/// which the error names.
pub(crate) fn new_namespace() -> Result<NetNamespace, EnvironmentError> {
    NetNamespace::new().map_err(|source| EnvironmentError::Forbidden {
        source,
        advice: user::advice(nix::unistd::geteuid()),
    })
}
