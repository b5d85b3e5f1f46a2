//! The two sides, and the configuration of their networks.

use longwire_io::net::address::Prefix;

/// One of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The end of the command.
    Near,
    /// The end of the peer's command.
    Far,
}

impl Side {
    /// Its name, which is also that of the emulator's device for it.
    pub const fn name(self) -> &'static str {
        match self {
            Side::Near => "near",
            Side::Far => "far",
        }
    }

    /// Its place among the hosts.
    pub(crate) const fn index(self) -> usize {
        match self {
            Side::Near => 0,
            Side::Far => 1,
        }
    }

    /// The last byte of its addresses.
    pub(crate) const fn number(self) -> u8 {
        self.index() as u8 + 1
    }
}

/// The largest number of hosts: each has its own last byte of the usual addresses.
pub const HOSTS_MAX: usize = 254;

/// A host at a port of the emulator: a network with the one device `eth0`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostConfig {
    /// A name that commands in the networks resolve.
    pub name: String,
    /// The addresses of the device. If there are none, the Nth host has 10.77.0.N/24 and
    /// fd77:4c57::N/64.
    pub addresses: Vec<Prefix>,
    /// Whether the port controls the carrier of the device.
    pub carrier: bool,
}

/// The kind of the device `eth0` of each side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// One end of a veth pair; the emulator opens the other, named after the
    /// side, in the emulator's namespace.
    #[default]
    Veth,
    /// A TAP device; the emulator opens it by name, in the side's namespace.
    /// Needs `/dev/net/tun` to be open to the user.
    Tap,
}

/// The configuration of an environment.
#[derive(Clone, Debug)]
pub struct EnvironmentConfig {
    /// The kind of the devices.
    pub device: Device,
    /// The longest packet, in bytes without the Ethernet header.
    pub mtu: u32,
    /// Queues each way of every veth device. With one, all frames are where
    /// a single AF_XDP socket finds them.
    pub queues: u32,
    /// Connect far to the host's network. For root only.
    pub uplink: bool,
    /// The hosts, at most [`HOSTS_MAX`]: the first is near and the second far, in addition
    /// to their own names. With fewer than two, near and far are added.
    pub hosts: Vec<HostConfig>,
}

impl EnvironmentConfig {
    /// The default, with room for packets of these MTUs of links, in bytes without the
    /// Ethernet header. A smaller MTU of a link applies on the path.
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
