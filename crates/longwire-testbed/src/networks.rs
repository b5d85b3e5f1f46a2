//! Two networks with a gap between them, for a link to close.

use longwire_io::RxPort;
use longwire_io::net::NetNamespace;
use longwire_io::port::options::OpenOptions;
use longwire_io::port::registry::{self, Port};
use longwire_runtime::clock::monotonic_now;
use longwire_runtime::stage::BURST;

use crate::config::{Device, EnvironmentConfig, Side};
use crate::error::EnvironmentError;
use crate::network;
use crate::plan::Plan;
use crate::{silence, user};

/// The place in which the emulator opens the port of a side.
#[derive(Clone, Copy, Debug)]
pub struct PortPlace<'a> {
    /// The namespace to be in when opening it.
    pub namespace: &'a NetNamespace,
    /// The device's name there.
    pub device: &'static str,
}

/// The networks of near and far, and the emulator's between them. They live as
/// long as this value, a thread in them, or a process in them.
#[derive(Debug)]
pub struct Networks {
    near: NetNamespace,
    far: NetNamespace,
    hub: NetNamespace,
    plan: Plan,
    device: Device,
    notes: Vec<String>,
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
        let mut side = |side| -> Result<NetNamespace, EnvironmentError> {
            let network = namespace()?;
            notes.extend(network::prepare_side(side, &network, &hub, plan, config)?);
            Ok(network)
        };
        let (near, far) = (side(Side::Near)?, side(Side::Far)?);
        let mut networks = Networks {
            near,
            far,
            hub,
            plan,
            device: config.device,
            notes: Vec::new(),
        };
        networks.add_notes(notes);
        Ok(networks)
    }

    /// The network of a side, for threads that send or receive there. Its
    /// device is [`network::DEVICE`].
    pub fn network(&self, side: Side) -> &NetNamespace {
        match side {
            Side::Near => &self.near,
            Side::Far => &self.far,
        }
    }

    /// The addresses of both sides.
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
        match self.device {
            Device::Veth => PortPlace {
                namespace: &self.hub,
                device: side.name(),
            },
            Device::Tap => PortPlace {
                namespace: self.network(side),
                device: network::DEVICE,
            },
        }
    }

    /// Opens the ports of near and far as this kind (`auto`, `packet`, `xdp`,
    /// `tap`). Frames that they receive from now on are those of programs in
    /// the networks: the kernel itself has nothing more to send.
    ///
    /// # Errors
    ///
    /// If a namespace cannot be entered, or a port not be opened.
    pub fn open_ports(&self, kind: &str) -> Result<(Port, Port), EnvironmentError> {
        let options = OpenOptions::default();
        let open = |side| -> Result<Port, EnvironmentError> {
            let place = self.port(side);
            let name = format!("{kind}:{}", place.device);
            Ok(place.namespace.run(|| registry::open(&name, &options))??)
        };
        let (mut near, mut far) = (open(Side::Near)?, open(Side::Far)?);
        self.settle()?;
        for port in [&mut near, &mut far] {
            while port.rx.receive(monotonic_now(), BURST, &mut |_| {})?.frames > 0 {}
        }
        Ok((near, far))
    }

    /// Waits until the kernel itself has nothing more to send.
    fn settle(&self) -> Result<(), EnvironmentError> {
        if self.device == Device::Tap {
            // A TAP device has a carrier, and the kernel an IPv6 address on
            // it, once its port is open.
            for side in [Side::Near, Side::Far] {
                network::wait_running(self.network(side))?;
            }
        }
        silence::wait_for_silence([&self.near, &self.far])?;
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
    network::join_sides(&near, &far, Plan::USUAL, &EnvironmentConfig::default())?;
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
