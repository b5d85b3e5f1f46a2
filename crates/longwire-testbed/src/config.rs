//! The two sides and the configuration of their networks.

use longwire_io::net::address::Prefix;

/// One of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The command's end.
    Near,
    /// The peer command's end.
    Far,
}

impl Side {
    /// Returns the name, also the name of the emulator's device for this side.
    pub const fn name(self) -> &'static str {
        match self {
            Side::Near => "near",
            Side::Far => "far",
        }
    }

    /// Returns the index among the hosts.
    pub(crate) const fn index(self) -> usize {
        match self {
            Side::Near => 0,
            Side::Far => 1,
        }
    }

    /// Returns the last byte of the addresses.
    pub(crate) const fn number(self) -> u8 {
        self.index() as u8 + 1
    }
}

/// Maximum hosts: each has a separate last byte in the default addresses.
pub const HOSTS_MAX: usize = 254;

/// A host at a port of the emulator: a network with a single device `eth0`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostConfig {
    /// Name that commands in the networks can resolve.
    pub name: String,
    /// Addresses of the device. If empty, the Nth host has 10.77.0.N/24 and
    /// fd77:4c57::N/64.
    pub addresses: Vec<Prefix>,
    /// Whether the port controls the carrier of the device.
    pub carrier: bool,
}

/// Kind of the device `eth0` of each side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// One end of a veth pair. The emulator opens the other end, named after the side, in
    /// the emulator's namespace.
    #[default]
    Veth,
    /// A TAP device. The emulator opens it by name in the side's namespace. The user needs
    /// access to `/dev/net/tun`.
    Tap,
}

/// Configuration of an environment.
#[derive(Clone, Debug)]
pub struct EnvironmentConfig {
    /// Kind of the devices.
    pub device: Device,
    /// Maximum packet size in bytes, without the Ethernet header.
    pub mtu: u32,
    /// Queues per direction of every veth device. With one, a single AF_XDP socket receives
    /// all frames.
    pub queues: u32,
    /// Connect far to the host's network; root only.
    pub uplink: bool,
    /// Hosts, at most [`HOSTS_MAX`]: the first is near and the second far, in addition to
    /// their names. With fewer than two, near and far are added.
    pub hosts: Vec<HostConfig>,
}

impl EnvironmentConfig {
    /// Returns the default with an MTU sufficient for links with these MTUs, in bytes
    /// without the Ethernet header. A smaller MTU of a link applies on the path.
    pub fn with_room_for(mtus: impl IntoIterator<Item = u32>) -> EnvironmentConfig {
        let default = EnvironmentConfig::default();
        EnvironmentConfig {
            mtu: mtus.into_iter().fold(default.mtu, u32::max),
            ..default
        }
    }
}

impl Default for EnvironmentConfig {
    fn default() -> EnvironmentConfig {
        EnvironmentConfig {
            device: Device::Veth,
            mtu: 1500,
            queues: 1,
            uplink: false,
            hosts: Vec::new(),
        }
    }
}
