//! The two sides, and the configuration of their networks.

use longwire_io::net::address::Prefix;

/// An end of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The command's end.
    Near,
    /// The peer command's end.
    Far,
}

impl Side {
    /// Returns the side's name, which is also the name of the emulator's device facing it.
    pub const fn name(self) -> &'static str {
        match self {
            Side::Near => "near",
            Side::Far => "far",
        }
    }

    /// Returns the side's index among the hosts.
    pub(crate) const fn index(self) -> usize {
        match self {
            Side::Near => 0,
            Side::Far => 1,
        }
    }

    /// Returns the last octet of the side's addresses.
    pub(crate) const fn number(self) -> u8 {
        self.index() as u8 + 1
    }
}

/// Maximum number of hosts, limited by the last octet of the default addresses.
pub const HOSTS_MAX: usize = 254;

/// A host at an emulator port: a network with a single device `eth0`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostConfig {
    /// Host name, which commands in all networks can resolve.
    pub name: String,
    /// Addresses of the device. If empty, the Nth host has 10.77.0.N/24 and
    /// fd77:4c57::N/64.
    pub addresses: Vec<Prefix>,
    /// Whether the port controls the carrier of the device.
    pub carrier: bool,
}

/// Kind of each side's `eth0` device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// One end of a veth pair. The other end, named after the side, is in the emulator's namespace,
    /// where the emulator opens it.
    #[default]
    Veth,
    /// A TAP device, which the emulator opens by name in the side's namespace. The user needs
    /// access to `/dev/net/tun`.
    Tap,
}

/// Configuration of an environment.
#[derive(Clone, Debug)]
pub struct EnvironmentConfig {
    /// Device kind of the hosts.
    pub device: Device,
    /// Maximum packet size in bytes, without the Ethernet header.
    pub mtu: u32,
    /// Number of receive queues, and of transmit queues, of each veth device. With one queue, a
    /// single AF_XDP socket receives all frames.
    pub queues: u32,
    /// Whether far is connected to the network of this machine; root only.
    pub uplink: bool,
    /// Hosts, at most [`HOSTS_MAX`]. The first two are also known as near and far, which are added
    /// if missing.
    pub hosts: Vec<HostConfig>,
}

impl EnvironmentConfig {
    /// Returns the default configuration with device MTUs large enough for links with these MTUs
    /// (bytes, without the Ethernet header), so that only the links limit a path.
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
