//! `packet:IF`: a network interface through AF_PACKET sockets, available on every Linux.
//!
//! Receiving reads a ring shared with the kernel, without a system call while frames are waiting.
//! The kernel's receive stamp is the arrival. Both halves use virtio-net headers, so that partial
//! checksums and super-packets of up to 64 KiB pass unchanged. Longer super-packets (BIG TCP) are
//! received in pieces.

mod batch;
mod checked;
mod launch;
#[cfg(test)]
mod launch_tests;
mod ring;
mod rx;
mod sent;
mod stamp;
mod tx;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use super::closing::SlowSocket;
use super::lock::{PortLock, ReadMode};
use super::options::{LaunchMode, OpenOptions, Purpose};
use super::settings::{Frames, Settings};
use super::socket::{Buffer, enlarge, failure, set_option};
use super::xdp::Sender;
use super::{OpenPort, PortError};
use crate::net::interface::Interface;
use crate::net::qdisc::qdiscs;
pub(super) use batch::message;
pub use checked::{CheckedLine, open_gap};
use launch::{FrameHolder, SocketTimestamps};
use ring::{Layout, ReceiveRing};
pub use rx::PacketRx;
pub use tx::PacketTx;
use tx::Sockets;

/// Maximum frame length: a super-packet of 64 KiB with Ethernet and VLAN headers. Longer
/// super-packets are received in pieces.
const SUPER_MAX: usize = 65_536 + 14 + 4;
/// The kernel's maximum super-packet (`GSO_MAX_SIZE` in include/linux/netdevice.h: eight times
/// 65,535), with Ethernet and two VLAN headers.
const OVERSIZED_MAX: usize = 8 * 65_535 + 14 + 2 * 4;
/// Default receive ring size: about 2,500 Ethernet frames, or 4 ms at a packet socket's maximum
/// rate.
const RING_BYTES: usize = 4 * 1024 * 1024;
/// Maximum bytes of super-packets that the kernel queues in addition to the ring.
const RECEIVE_BUFFER: usize = 16 * 1024 * 1024;
/// Bytes of an Ethernet header with a VLAN tag.
const ETHERNET: usize = 14 + 4;
/// Bytes of frames in transit to the driver. With gap frames, this holds the wire's next 200 us at
/// 100 Gbit/s.
const SEND_BUFFER: usize = 8 * 1024 * 1024;
/// Receive buffer size below which a note is reported, because a TCP sender's window of
/// super-packets would not fit.
const RECEIVE_BUFFER_LOW: usize = 2 * 1024 * 1024;

/// Opens an interface in the calling thread's network namespace. Requires CAP_NET_RAW there; a user
/// namespace's suffices. A port that only sends has no receiving half.
///
/// # Errors
/// The interface does not exist, is down or has no Ethernet header, or packet sockets are not
/// permitted.
pub fn open(
    name: &str,
    options: &OpenOptions,
) -> Result<OpenPort<Option<PacketRx>, PacketTx>, PortError> {
    let port = format!("packet:{name}");
    let interface = super::settings::find_up(&port, name)?;
    let receives = options.purpose != Purpose::Send || options.gap_frames.is_some();
    let lock = if options.private {
        PortLock::none()
    } else {
        let reads = if receives {
            ReadMode::Copies
        } else {
            ReadMode::Nothing
        };
        PortLock::acquire(&port, &interface, options.purpose, reads)?
    };
    let mut notes = Vec::new();
    let receiving = receives
        .then(|| open_rx(&port, &interface, options, &mut notes))
        .transpose()?;
    let launches = find_launch(&port, &interface, options.launch, &mut notes)?;
    let usual = options.frame_usual;
    let usual = usual.unwrap_or(interface.mtu as usize + ETHERNET);
    let sends = (launches, options.sends_by_xdp.then_some(usual));
    let sockets = open_sockets(&port, &interface, sends, &mut notes)?;
    if !interface.running {
        notes.push(format!("{}: no carrier yet", interface.name));
    }
    let settings = Arc::new(if options.private {
        Settings::untouched(lock)
    } else {
        // With virtio-net headers, super-packets pass unchanged.
        let frames = if options.offloads {
            Frames::Reversible
        } else {
            Frames::WireSize
        };
        Settings::apply(&interface, options.quiet, frames, lock, &mut notes)
    });
    let tx = PacketTx::new(sockets, &port, &interface, Arc::clone(&settings));
    Ok(OpenPort {
        rx: receiving.map(|(socket, ring)| PacketRx::new(socket, ring, port, settings)),
        tx,
        notes,
    })
}

/// Opens the sockets, with or without a frame holder; `fast` is the usual maximum length of frames
/// for a fast path.
fn open_sockets(
    port: &str,
    interface: &Interface,
    (launches, fast): (Option<FrameHolder>, Option<usize>),
    notes: &mut Vec<String>,
) -> Result<Sockets, PortError> {
    let direct = match launches {
        None => sending_socket(port, interface, &[VNET, BYPASS])?,
        Some(_) => sending_socket(port, interface, &[VNET])?,
    };
    let queued = sending_socket(port, interface, &[VNET])?;
    let mut timestamps = Box::new(SocketTimestamps::new());
    if let Some(holder) = launches {
        let launched = timestamps.launch(direct.as_fd(), holder);
        launched.map_err(|e| failure(port, "requesting launch times", e))?;
    }
    Ok(Sockets {
        fast: fast
            .filter(|_| launches.is_none())
            .and_then(|usual| open_fast(interface, usual, notes)),
        direct,
        queued,
        timestamps,
    })
}

/// Opens the receiving socket and its ring.
fn open_rx(
    port: &str,
    interface: &Interface,
    options: &OpenOptions,
    notes: &mut Vec<String>,
) -> Result<(SlowSocket, ReceiveRing), PortError> {
    let socket = raw_socket(port)?;
    let fd = socket.as_fd();
    let set = |name, value: libc::c_int, action| {
        set_option(fd, libc::SOL_PACKET, name, &value).map_err(|e| failure(port, action, e))
    };
    let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
    set(libc::PACKET_VERSION, version, "setting the ring version")?;
    set(libc::PACKET_VNET_HDR, 1, "requesting offload headers")?;
    set(libc::PACKET_COPY_THRESH, 1, "requesting long frames")?;
    set(libc::PACKET_IGNORE_OUTGOING, 1, "ignoring outgoing frames")?;
    // Request stamps on entry into the receive path, before queueing. Otherwise, the ring stamps a
    // frame when copying it.
    let on: libc::c_int = 1;
    set_option(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &on)
        .map_err(|e| failure(port, "requesting receive stamps", e))?;
    let buffer = enlarge(fd, Buffer::Receive, RECEIVE_BUFFER)
        .map_err(|e| failure(port, "enlarging the receive buffer", e))?;
    if buffer < RECEIVE_BUFFER_LOW {
        notes.push(format!(
            "{}: receive buffer of only {} KiB for super-packets; raise it with: sysctl -w \
             net.core.rmem_max={RECEIVE_BUFFER_LOW}",
            interface.name,
            buffer / 1024
        ));
    }
    let usual = options
        .frame_usual
        .unwrap_or(interface.mtu as usize + ETHERNET);
    let layout = Layout::new(usual, options.ring_bytes.unwrap_or(RING_BYTES));
    let ring =
        ReceiveRing::new(fd, layout).map_err(|e| failure(port, "creating the receive ring", e))?;
    promiscuous(fd, interface).map_err(|e| failure(port, "entering promiscuous mode", e))?;
    bind(fd, interface, libc::ETH_P_ALL as u16)
        .map_err(|e| failure(port, "binding the socket", e))?;
    Ok((socket, ring))
}

/// A socket option to set to 1, and the action for error messages.
pub(super) type SwitchedOption = ((libc::c_int, libc::c_int), &'static str);

/// Passes frames directly to the driver.
pub(super) const BYPASS: SwitchedOption = (
    (libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS),
    "bypassing the queueing discipline",
);
/// Puts a virtio-net header before each frame.
const VNET: SwitchedOption = (
    (libc::SOL_PACKET, libc::PACKET_VNET_HDR),
    "offering offload headers",
);

/// Opens a sending socket, which is bound to no protocol so that it never receives.
pub(super) fn sending_socket(
    port: &str,
    interface: &Interface,
    options: &[SwitchedOption],
) -> Result<SlowSocket, PortError> {
    let socket = raw_socket(port)?;
    let fd = socket.as_fd();
    let on: libc::c_int = 1;
    for ((level, name), action) in options {
        set_option(fd, *level, *name, &on).map_err(|e| failure(port, action, e))?;
    }
    enlarge(fd, Buffer::Send, SEND_BUFFER)
        .map_err(|e| failure(port, "enlarging the send buffer", e))?;
    bind(fd, interface, 0).map_err(|e| failure(port, "binding the socket", e))?;
    Ok(socket)
}

/// Returns the holder of frames until their release, if any.
fn find_launch(
    port: &str,
    interface: &Interface,
    mode: LaunchMode,
    notes: &mut Vec<String>,
) -> Result<Option<FrameHolder>, PortError> {
    if mode == LaunchMode::Off {
        return Ok(None);
    }
    let name = &interface.name;
    let holder = qdiscs(interface.index)
        .ok()
        .and_then(|qdiscs| FrameHolder::of(&qdiscs))
        .filter(|holder| holder.is_permitted(mode));
    match holder {
        Some(holder) => notes.push(format!(
            "{name}: {} holds frames until they are due",
            if holder.device {
                "the device"
            } else {
                "the kernel's queueing discipline"
            }
        )),
        None if mode == LaunchMode::Queue => {
            return Err(PortError::unsupported(
                port,
                format!(
                    "no queueing discipline holds frames until due; add one with: tc qdisc replace \
                     dev {name} root fq"
                ),
            ));
        }
        None => {}
    }
    Ok(holder)
}

/// Opens the fast path for wire-size frames, if available.
fn open_fast(interface: &Interface, usual: usize, notes: &mut Vec<String>) -> Option<Sender> {
    match Sender::open(interface, usual) {
        Ok(sender) => Some(sender),
        Err((action, error)) => {
            notes.push(format!(
                "{}: sending through a packet socket, because AF_XDP is unavailable: {action}: \
                 {error}",
                interface.name
            ));
            None
        }
    }
}

fn raw_socket(port: &str) -> Result<SlowSocket, PortError> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let opened = socket(AddressFamily::Packet, SockType::Raw, flags, None);
    let socket = opened.map_err(|e| failure(port, "opening a packet socket", e.into()))?;
    Ok(socket.into())
}

/// Binds to the interface, receiving frames of `protocol`; 0 for none.
fn bind(socket: BorrowedFd<'_>, interface: &Interface, protocol: u16) -> io::Result<()> {
    // SAFETY: `sockaddr_ll` is a C structure of integers, for which zeros are
    // valid.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = interface.index.cast_signed();
    // SAFETY: pointer and length describe `address`, which the kernel reads during the call.
    let result = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of_val(&address) as libc::socklen_t,
        )
    };
    Errno::result(result)?;
    Ok(())
}

/// Enables promiscuous mode until the socket is closed.
fn promiscuous(socket: BorrowedFd<'_>, interface: &Interface) -> io::Result<()> {
    let membership = libc::packet_mreq {
        mr_ifindex: interface.index.cast_signed(),
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set_option(
        socket,
        libc::SOL_PACKET,
        libc::PACKET_ADD_MEMBERSHIP,
        &membership,
    )
}
