//! How a port is to be opened.

use longwire_engine::BitRate;

/// What may be chosen when a port is opened; [`OpenOptions::default`] is
/// right for nearly all uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    /// Frames may carry work left to the hardware (see [`super::Offload`]):
    /// buffers of many wire frames, unfinished checksums. If not, the port
    /// switches segmentation off on the interface where it can, so that every
    /// frame has wire size.
    pub offloads: bool,
    /// Bytes of memory for the receive ring; `None` for the port's own
    /// choice.
    pub ring_bytes: Option<usize>,
    /// The kernel's own network stack is kept from answering on the
    /// interface (IPv6 is switched off on it until the port is closed).
    pub quiet: bool,
    /// How an AF_XDP port attaches to the interface.
    pub xdp_mode: XdpMode,
    /// The wire is kept busy with gap frames, at this rate (see
    /// [`super::gap`]); refused by ports that cannot do that.
    pub gap_frames: Option<BitRate>,
    /// What the port is opened for.
    pub purpose: Purpose,
    /// Who may hold frames until their release, so that they can be pushed
    /// early (see [`super::TxPort::launch_lead`]).
    pub launch: Launch,
}

/// What a port is opened for, which decides which other ports may be on its
/// interface at the same time: see `port/lock.rs`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// A link carries what arrives, and sends what it carried.
    #[default]
    Forward,
    /// A link carries what arrives; nothing is sent.
    ForwardIn,
    /// Only sending is wanted: `packet:IF` then opens no receiving socket,
    /// which leaves the interface's mode alone and spares the kernel the
    /// stamping of all that it receives. Of other ports both halves open.
    Send,
    /// What arrives is looked at; nothing is sent.
    Receive,
}

/// Who may hold frames until their release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Launch {
    /// Nobody: they are pushed when they are due.
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
            quiet: true,
            xdp_mode: XdpMode::Best,
            gap_frames: None,
            purpose: Purpose::Forward,
            launch: Launch::Off,
        }
    }
}

/// Where an XDP program runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum XdpMode {
    /// In the driver where it can, else generic.
    #[default]
    Best,
    /// In the driver, or not at all.
    Native,
    /// In the network stack, which works with every device.
    Generic,
}
