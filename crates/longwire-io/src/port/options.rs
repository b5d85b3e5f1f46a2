//! Options for opening a port.

use longwire_engine::BitRate;

/// Options for opening a port; [`OpenOptions::default`] is right for nearly all uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    /// Frames may carry work left to the hardware (see [`super::Offload`]): buffers of
    /// many wire frames, unfinished checksums. If not, the port switches segmentation
    /// off on the interface where it can, so that every frame has wire size.
    pub offloads: bool,
    /// Bytes of memory for the receive ring; `None` for the port's default.
    pub ring_bytes: Option<usize>,
    /// Bytes of the longest usual frame, for which the receive ring is divided; `None`:
    /// those of the interface's MTU. Longer frames are received too, at a higher cost.
    pub frame_usual: Option<usize>,
    /// Wire-size frames leave by an AF_XDP socket where there is one, which takes 2 MiB.
    pub sends_by_xdp: bool,
    /// No other process finds the interface, and it goes away with this one: it is not
    /// locked, its settings are left as they are, and nothing has to be restored.
    pub private: bool,
    /// The kernel's network stack must not answer on the interface (IPv6 is switched
    /// off on it until the port is closed).
    pub quiet: bool,
    /// Place of an AF_XDP port's program.
    pub xdp_mode: XdpMode,
    /// The wire is kept busy with gap frames, at this rate (see [`super::gap`]);
    /// refused by ports that cannot do that.
    pub gap_frames: Option<BitRate>,
    /// Purpose of the port.
    pub purpose: Purpose,
    /// Holder of frames until their release, so that they can be pushed early (see
    /// [`super::TxPort::launch_lead`]).
    pub launch: LaunchMode,
    /// Whether the port controls the carrier of the interface at its other end; refused
    /// where it cannot (see [`super::TxPort::set_carrier`]).
    pub carrier: CarrierControl,
}

/// The interfaces whose carrier a port may control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CarrierControl {
    /// None.
    #[default]
    Off,
    /// A TAP device.
    Tap,
    /// A TAP device, and the other end of a veth pair that the caller made: the end here
    /// is taken down.
    OwnPair,
}

/// Purpose of a port, which decides which other ports may share its interface: see
/// `port/lock.rs`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// A link carries arriving frames, and sends the frames that it carried.
    #[default]
    Forward,
    /// A link carries arriving frames; the port sends none.
    ForwardIn,
    /// Only sends: `packet:IF` then opens no receiving socket, which leaves the
    /// interface's mode alone and saves the kernel the stamping of all received frames.
    /// Of other ports both halves open.
    Send,
    /// Arriving frames are read; the port sends none.
    Receive,
}

/// Holder of frames until their release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LaunchMode {
    /// None: frames are pushed when they are due.
    #[default]
    Off,
    /// The device, where its queueing discipline `etf` has `offload`.
    Device,
    /// The kernel too: `etf` without `offload`, or `fq`. Refused where there
    /// is none.
    Queue,
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions {
            offloads: true,
            ring_bytes: None,
            frame_usual: None,
            sends_by_xdp: true,
            private: false,
            quiet: true,
            xdp_mode: XdpMode::Best,
            gap_frames: None,
            purpose: Purpose::Forward,
            launch: LaunchMode::Off,
            carrier: CarrierControl::Off,
        }
    }
}

/// Place of an XDP program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum XdpMode {
    /// In the driver where it can, else generic.
    #[default]
    Best,
    /// In the driver only.
    Native,
    /// In the network stack, which works with every device.
    Generic,
}
