//! Options for opening a port.

use longwire_engine::BitRate;

/// Options for opening a port. [`OpenOptions::default`] suits most uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    /// Whether frames may carry offloads (see [`super::Offload`]): super-packets and partial
    /// checksums. If not, the port disables segmentation on the interface where possible, so that
    /// every frame is wire-size.
    pub offloads: bool,
    /// Receive ring size in bytes; `None` for the port's default.
    pub ring_bytes: Option<usize>,
    /// Usual maximum frame length in bytes, which sizes the slots and chunks of rings. `None`
    /// derives it from the interface's MTU. Longer frames cost more to receive and to send.
    pub frame_usual: Option<usize>,
    /// Whether to send wire-size frames through AF_XDP, if available; this takes up to 2 MiB of
    /// memory.
    pub sends_by_xdp: bool,
    /// Whether the interface is invisible to other processes and disappears with this one. The port
    /// then takes no lock and restores no settings.
    pub private: bool,
    /// Whether to silence the kernel's network stack on the interface. IPv6 is disabled until the
    /// port is closed, unless the interface would lose addresses.
    pub quiet: bool,
    /// Attachment point of an AF_XDP port's program.
    pub xdp_mode: XdpMode,
    /// Rate of a wire to be kept busy with gap frames (see [`super::gap`]). Ports without support
    /// refuse it.
    pub gap_frames: Option<BitRate>,
    /// Purpose of the port.
    pub purpose: Purpose,
    /// Holder of frames until their release. With a holder, frames can be pushed early (see
    /// [`super::TxPort::launch_lead`]).
    pub launch: LaunchMode,
    /// Control of the carrier of the interface at the port's other end (see
    /// [`super::TxPort::set_carrier`]). Opening fails if the port cannot control it.
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
    /// A TAP device, or a veth pair created by the caller, whose near end is taken down.
    OwnPair,
}

/// Purpose of a port. It decides which other ports may share its interface (see `port/lock.rs`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// Arriving frames enter a link, and the port sends frames that leave a link.
    #[default]
    Forward,
    /// Arriving frames enter a link. The port does not send.
    ForwardIn,
    /// The port only sends. `packet:IF` then opens no receiving socket, so the interface's mode
    /// stays unchanged and the kernel need not stamp received frames. Other ports open both halves.
    Send,
    /// The port reads arriving frames and does not send.
    Receive,
}

/// The holder of frames until their release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LaunchMode {
    /// Neither device nor kernel: frames are pushed when due.
    #[default]
    Off,
    /// The device, if its `etf` discipline has `offload`.
    Device,
    /// The device or the kernel, with `etf` without `offload` or with `fq`. Refused if neither is
    /// available.
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

/// Attachment point of an XDP program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum XdpMode {
    /// In the driver if supported, else generic.
    #[default]
    Best,
    /// In the driver only.
    Native,
    /// In the network stack, which every device supports.
    Generic,
}
