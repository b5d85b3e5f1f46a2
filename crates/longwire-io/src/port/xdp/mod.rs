//! `xdp:IF`: a network interface through AF_XDP sockets. Frames pass between the driver and this
//! process's memory, bypassing the kernel's network stack.
//!
//! A small eBPF program stamps and redirects every arriving frame. A BPF link attaches it to the
//! interface, so the kernel removes it however the process ends.

mod bare;
mod program;
mod rings;
mod rx;
mod sender;
mod socket;

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use super::lock::{PortLock, ReadMode};
use super::options::{OpenOptions, XdpMode};
use super::settings::{Frames, Settings};
use super::socket::failure;
use super::{OpenPort, PortError};
use crate::net::ethtool::Ethtool;
use crate::net::interface::Interface;
pub use bare::BareXdp;
use program::{Place, Program};
pub use rx::XdpRx;
pub(crate) use sender::Sender;
use sender::TX_FRAMES;
pub use sender::XdpTx;
use socket::{Queue, SocketFailure, Umem};

/// Default total size of the receive buffers, in bytes.
const RING_BYTES: usize = 4 * 1024 * 1024;
/// Minimum and maximum number of receive buffers per queue.
const RX_FRAMES: std::ops::RangeInclusive<usize> = 64..=16 * 1024;

/// Maximum length of an Ethernet header, with a VLAN tag.
const LINK_HEADER: usize = 14 + 4;

/// Resources shared by both halves.
pub(super) struct AttachedProgram {
    port: String,
    _link: crate::bpf::Link,
    _program: Program,
    /// Restores the interface's settings when both halves are closed.
    _settings: Settings,
}

/// Opens an interface in the calling thread's network namespace. Needs CAP_NET_RAW there, and
/// system-wide CAP_BPF and CAP_NET_ADMIN.
///
/// # Errors
/// The interface does not exist, is down, has no Ethernet header, has too large an MTU, or already
/// has an XDP program; or AF_XDP is not permitted.
pub fn open(name: &str, options: &OpenOptions) -> Result<OpenPort<XdpRx, XdpTx>, PortError> {
    let port = format!("xdp:{name}");
    let interface = super::settings::find_up(&port, name)?;
    let lock = PortLock::acquire(&port, &interface, options.purpose, ReadMode::Frames)?;
    let mut notes = Vec::new();
    let frame_max = interface.mtu as usize + LINK_HEADER;
    let chunk = Umem::chunk_for(frame_max).ok_or_else(|| {
        PortError::unsupported(
            &port,
            format!(
                "MTU {} is too large for AF_XDP; the maximum is {}; or use packet:{name}",
                interface.mtu,
                Umem::FRAME_MAX - LINK_HEADER
            ),
        )
    })?;
    let queues = queue_count(&interface);
    let program =
        Program::load(queues).map_err(|e| failure(&port, "loading the XDP program", e))?;
    let (link, place) = attach(&port, &program, &interface, options.xdp_mode, &mut notes)?;
    let rx_frames = options.ring_bytes.unwrap_or(RING_BYTES) / chunk / queues as usize;
    let plan = Plan {
        port: &port,
        interface: &interface,
        queues,
        rx_frames: floor_power_of_two(rx_frames.clamp(*RX_FRAMES.start(), *RX_FRAMES.end())),
        chunk,
    };
    let (queues, umem, sender) = plan.open(place, &mut notes)?;
    for (number, queue) in queues.iter().enumerate() {
        program
            .enter(number as u32, queue.socket.as_fd())
            .map_err(|e| failure(&port, "adding a socket to the map", e))?;
    }
    // Frames in the driver are not merged yet, and a veth device segments its peer's
    // super-packets itself.
    let frames = match place {
        Place::Native => Frames::AsTheyCome,
        Place::Generic => Frames::WireSize,
    };
    let settings = Settings::apply(&interface, options.quiet, frames, lock, &mut notes);
    let attachment = Arc::new(AttachedProgram {
        port: port.clone(),
        _link: link,
        _program: program,
        _settings: settings,
    });
    Ok(OpenPort {
        rx: XdpRx::new(queues, umem, Arc::clone(&attachment), frame_max)
            .map_err(|e| failure(&port, "watching the queues", e))?,
        tx: XdpTx::new(sender, attachment, frame_max),
        notes,
    })
}

fn floor_power_of_two(number: usize) -> usize {
    1 << number.max(1).ilog2()
}

/// Returns the interface's number of receive queues.
fn queue_count(interface: &Interface) -> u32 {
    Ethtool::open()
        .and_then(|ethtool| ethtool.rx_queues(&interface.name))
        .unwrap_or(interface.rx_queues)
        .clamp(1, interface.rx_queues)
}

/// Attaches the program, in the driver if possible and permitted by `mode`.
fn attach(
    port: &str,
    program: &Program,
    interface: &Interface,
    mode: XdpMode,
    notes: &mut Vec<String>,
) -> Result<(crate::bpf::Link, Place), PortError> {
    let name = &interface.name;
    let attach = |place| -> io::Result<_> { Ok((program.attach(interface.index, place)?, place)) };
    let error = match attach(match mode {
        XdpMode::Generic => Place::Generic,
        XdpMode::Best | XdpMode::Native => Place::Native,
    }) {
        Ok(attached) => return Ok(attached),
        Err(error) => error,
    };
    if matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST)) {
        return Err(PortError::unsupported(
            port,
            format!(
                "{name} has another XDP program; remove it with: ip link set dev {name} xdp off"
            ),
        ));
    }
    if mode == XdpMode::Best
        && error.raw_os_error() != Some(libc::EPERM)
        && let Ok(attached) = attach(Place::Generic)
    {
        notes.push(format!(
            "{name}: the driver does not support XDP ({error}); using generic XDP in the network \
             stack"
        ));
        return Ok(attached);
    }
    Err(failure(port, "attaching the XDP program", error))
}

/// Socket parameters.
struct Plan<'a> {
    port: &'a str,
    interface: &'a Interface,
    queues: u32,
    /// Receive buffers per queue.
    rx_frames: usize,
    chunk: usize,
}

impl Plan<'_> {
    /// Creates the UMEM, binds one socket per queue, and divides the chunks among the queues and
    /// the sending half.
    fn open(
        &self,
        place: Place,
        notes: &mut Vec<String>,
    ) -> Result<(Vec<Queue>, Arc<Umem>, Sender), PortError> {
        let rx_chunks = self.rx_frames * self.queues as usize;
        let umem = Umem::new(self.chunk, rx_chunks + TX_FRAMES)
            .map_err(|e| failure(self.port, "allocating frame memory", e))?;
        let umem = Arc::new(umem);
        let explained = |step| self.explain(step);
        let (first, sending) = Queue::with_memory(&umem, self.rx_frames as u32, TX_FRAMES as u32)
            .map_err(explained)?;
        let zero_copy = self.bind_first(&first, place).map_err(explained)?;
        notes.push(format!(
            "{}: XDP program in the {}, frames {}",
            self.interface.name,
            match place {
                Place::Native => "driver",
                Place::Generic => "network stack",
            },
            if zero_copy {
                "zero-copy"
            } else {
                "copied once by the kernel"
            }
        ));
        let mut queues = vec![first];
        for number in 1..self.queues {
            let next = Queue::sharing(self.rx_frames as u32).map_err(explained)?;
            let shared = Some(queues[0].socket.as_fd());
            next.bind(self.interface.index, number, false, shared)
                .map_err(explained)?;
            queues.push(next);
        }
        let mut chunks = (0..rx_chunks + TX_FRAMES).map(|number| umem.address(number));
        for queue in &mut queues {
            for chunk in chunks.by_ref().take(self.rx_frames) {
                queue.fill.put(chunk);
            }
            queue.fill.submit();
        }
        let free = chunks.collect();
        let socket = Arc::clone(&queues[0].socket);
        let sender = Sender::new(socket, sending, Arc::clone(&umem), free, !zero_copy);
        Ok((queues, umem, sender))
    }

    /// Binds in zero-copy mode if the device supports it, otherwise in copy mode.
    fn bind_first(&self, first: &Queue, place: Place) -> Result<bool, SocketFailure> {
        if place == Place::Native
            && let Ok(zero_copy) = first.bind(self.interface.index, 0, true, None)
        {
            return Ok(zero_copy);
        }
        first.bind(self.interface.index, 0, false, None)
    }

    fn explain(&self, (action, error): SocketFailure) -> PortError {
        let reason = match error.raw_os_error() {
            Some(libc::ENOBUFS) if action == "registering frame memory" => {
                "frame memory exceeds the locked-memory limit; raise it with: ulimit -l unlimited"
                    .to_owned()
            }
            Some(libc::EBUSY) => format!(
                "another AF_XDP socket is bound to a queue of {}",
                self.interface.name
            ),
            _ => return failure(self.port, action, error),
        };
        PortError::unsupported(self.port, reason)
    }
}
