//! The port registry. Each kind of port is one line in the table below.

use std::io;

use longwire_capture::same_file;
use longwire_engine::Nanos;
use nix::time::ClockId;

pub use super::any::{AnyRx, AnyTx};
use super::carrier::{Carrier, SwitchCarrier};
use super::one_way::{DiscardTx, SilentRx};
use super::options::{CarrierControl, OpenOptions};
use super::pcap::{PcapRx, PcapTx};
use super::{PortError, RxFrame, RxPort, packet, tap, xdp};
use crate::clock::{monotonic_now, read_clock};
use crate::net::interface::Interface;
use crate::net::netlink::Netlink;
use crate::net::{NetError, link};

/// An open port.
pub struct Port {
    /// The port's notation with its actual kind: `packet:eth0` if that is the choice for `eth0`.
    pub name: String,
    /// Receiving half.
    pub rx: AnyRx,
    /// Sending half.
    pub tx: AnyTx,
    /// Choices and changes with their reasons, in sentences.
    pub notes: Vec<String>,
}

/// Frames discarded per call, and maximum number of calls. A flood must not block the caller.
const DISCARDS_AT_ONCE: usize = 64;
const DISCARDS_MAX: usize = 4096;

/// One kind of port.
#[derive(Debug)]
pub struct PortKind {
    /// The word before the colon.
    pub name: &'static str,
    /// The argument after the colon; empty for kinds without one.
    pub argument: &'static str,
    /// One line of help.
    pub summary: &'static str,
    /// An example of the notation.
    pub example: &'static str,
    /// The reason why the kind has no gap frames; `None` if it has them.
    no_gaps: Option<&'static str>,
    open: fn(&str, &OpenOptions) -> Result<Port, PortError>,
}

/// The kind of port whose argument is files.
const PCAP: &str = "pcap";

/// All kinds of ports.
pub static PORTS: &[PortKind] = &[
    PortKind {
        name: "auto",
        argument: "IF",
        summary: "network interface, by the fastest available method; same as IF alone",
        example: "auto:eth1",
        no_gaps: None,
        open: open_auto,
    },
    PortKind {
        name: "packet",
        argument: "IF",
        summary: "network interface through AF_PACKET, on any Linux",
        example: "packet:eth1",
        no_gaps: None,
        open: |name, options| {
            let port = packet::open(name, options)?;
            let rx = port.rx.map_or(AnyRx::Silent(SilentRx), AnyRx::Packet);
            let tx = match options.gap_frames {
                Some(rate) => AnyTx::Gap(Box::new(packet::open_gap(name, rate)?)),
                None => AnyTx::Packet(port.tx),
            };
            Ok(Port::new(format!("packet:{name}"), rx, tx, port.notes))
        },
    },
    PortKind {
        name: "xdp",
        argument: "IF",
        summary: "network interface through AF_XDP, which bypasses the network stack",
        example: "xdp:eth1",
        no_gaps: Some("AF_XDP cannot send a wrong frame check sequence; try packet:IF"),
        open: |name, options| {
            let port = xdp::open(name, options)?;
            let (rx, tx) = (AnyRx::Xdp(port.rx), AnyTx::Xdp(port.tx));
            Ok(Port::new(format!("xdp:{name}"), rx, tx, port.notes))
        },
    },
    PortKind {
        name: "tap",
        argument: "NAME",
        summary: "TAP device, created if missing; its other end is this machine's network stack",
        example: "tap:lw0",
        no_gaps: Some("a TAP device has no wire"),
        open: |name, options| {
            let port = tap::open(name, options)?;
            let (rx, tx) = (AnyRx::Tap(port.rx), AnyTx::Tap(port.tx));
            Ok(Port::new(format!("tap:{name}"), rx, tx, port.notes))
        },
    },
    PortKind {
        name: PCAP,
        argument: "FILE",
        summary: "capture, read at its recorded times; pcap:in=FILE,out=FILE also writes one",
        example: "pcap:in=before.pcapng,out=after.pcap",
        no_gaps: Some("a capture has no wire"),
        open: |files, _| open_captures(files),
    },
    PortKind {
        name: "null",
        argument: "",
        summary: "null port: counts and discards frames; receives none",
        example: "null",
        no_gaps: Some("the null port has no wire"),
        open: |_, _| {
            let tx = AnyTx::Discard(DiscardTx::default());
            Ok(Port::with_halves("null", AnyRx::Silent(SilentRx), tx))
        },
    },
];

impl PortKind {
    /// Returns the notation of this kind, with a placeholder for the argument.
    pub fn written(&self) -> String {
        match self.argument {
            "" => self.name.to_owned(),
            argument => format!("{}:{argument}", self.name),
        }
    }
}

impl Port {
    /// Discards frames that wait at a device and returns their number. Ports whose frames start
    /// with the first call, such as files, keep theirs.
    pub fn discard_waiting(&mut self, now: Nanos) -> u64 {
        if !matches!(self.rx, AnyRx::Packet(_) | AnyRx::Xdp(_) | AnyRx::Tap(_)) {
            return 0;
        }
        let mut discarded = 0;
        for _ in 0..DISCARDS_MAX {
            let mut count = |_: RxFrame<'_>| discarded += 1;
            let received = self.rx.receive(now, DISCARDS_AT_ONCE, &mut count);
            // Ignore an error: it persists and will end the run.
            if !received.is_ok_and(|received| received.frames > 0) {
                break;
            }
        }
        discarded
    }

    /// Creates a port from its halves, without notes.
    pub fn with_halves(name: &str, rx: AnyRx, tx: AnyTx) -> Port {
        Port::new(name.to_owned(), rx, tx, Vec::new())
    }

    fn new(name: String, rx: AnyRx, tx: AnyTx, notes: Vec<String>) -> Port {
        Port {
            name,
            rx,
            tx,
            notes,
        }
    }
}

/// Opens the port that `text` names: `packet:eth1`, `pcap:a.pcap`, `null`, or a bare interface
/// name, which means `auto:`.
///
/// # Errors
/// The kind does not exist, or the port cannot be opened.
pub fn open(text: &str, options: &OpenOptions) -> Result<Port, PortError> {
    let mut port = open_kind(text, options)?;
    control_carrier(&mut port, options.carrier)?;
    Ok(port)
}

pub(super) fn open_kind(text: &str, options: &OpenOptions) -> Result<Port, PortError> {
    let is_bare = !text.contains(':');
    let (name, argument) = text.split_once(':').unwrap_or((text, ""));
    match PORTS.iter().find(|kind| kind.name == name) {
        Some(kind) if kind.argument.is_empty() == is_bare && argument.is_empty() == is_bare => {
            match kind.no_gaps {
                Some(why) if options.gap_frames.is_some() => Err(PortError::unsupported(
                    text,
                    format!("no gap frames: {why}"),
                )),
                _ => (kind.open)(argument, options),
            }
        }
        // The name of a kind without its argument is not an interface name.
        None if is_bare && !text.is_empty() => open_auto(text, options),
        _ => Err(unknown(text)),
    }
}

fn unknown(text: &str) -> PortError {
    let known: Vec<_> = PORTS.iter().map(PortKind::written).collect();
    PortError::Unknown {
        text: text.to_owned(),
        known: known.join(", "),
    }
}

/// Returns the files that a port reads or writes.
pub fn files(text: &str) -> impl Iterator<Item = &str> {
    let files = text.split_once(':').filter(|(kind, _)| *kind == PCAP);
    // Text that cannot be parsed counts as one file name.
    let files = files.map(|(_, files)| captures(files).unwrap_or([Some(files), None]));
    files.into_iter().flatten().flatten()
}

/// Returns the file to read and the file to write, from `FILE` or from `in=` and `out=`.
fn captures(files: &str) -> Result<[Option<&str>; 2], PortError> {
    let (mut input, mut output) = (None, None);
    for part in files.split(',') {
        let slot = match part.split_once('=') {
            Some(("in", file)) => input.replace(file),
            Some(("out", file)) => output.replace(file),
            // A name with a comma or another '=' is taken literally.
            _ => {
                (input, output) = (Some(files), None);
                break;
            }
        };
        if slot.is_some() {
            return Err(PortError::unsupported(
                format!("pcap:{files}"),
                "at most one input and one output file",
            ));
        }
    }
    Ok([input, output])
}

/// Opens `FILE` for reading, or the files of `in=` and `out=`.
fn open_captures(files: &str) -> Result<Port, PortError> {
    let name = format!("pcap:{files}");
    let [input, output] = captures(files)?;
    if let (Some(input), Some(output)) = (input, output)
        && same_file(input, output)
    {
        return Err(PortError::unsupported(
            name,
            "input and output are the same file",
        ));
    }
    let mut notes = Vec::new();
    let rx = match input {
        Some(file) => AnyRx::Pcap(Box::new(PcapRx::open(file)?)),
        None => AnyRx::Silent(SilentRx),
    };
    let tx = match output {
        Some(file) => AnyTx::Pcap(PcapTx::create(file, epoch())?),
        None => {
            notes.push(format!("frames to {name} are discarded"));
            AnyTx::Discard(DiscardTx::default())
        }
    };
    Ok(Port::new(name, rx, tx, notes))
}

/// Returns the Unix time at which the run's clock was zero.
fn epoch() -> Nanos {
    let monotonic = monotonic_now();
    Nanos::from_nanos(read_clock(ClockId::CLOCK_REALTIME)).saturating_sub(monotonic)
}

/// Opens the interface `name` with AF_XDP if it is hardware, and with AF_PACKET if it is virtual or
/// AF_XDP fails.
///
/// Virtual interfaces deliver super-packets of 64 KiB, which only AF_PACKET passes whole. Hardware
/// segments them, and AF_XDP is then cheaper per frame.
fn open_auto(name: &str, options: &OpenOptions) -> Result<Port, PortError> {
    let found = Interface::find(name).ok();
    let (kind, why) = match found.as_ref().and_then(|found| found.kind.virtual_name()) {
        _ if options.gap_frames.is_some() => (
            "packet",
            format!("{name}: using AF_PACKET, the only port type with gap frames"),
        ),
        Some(kind) if options.offloads => (
            "packet",
            format!(
                "{name}: using AF_PACKET, which keeps super-packets of virtual devices \
                 ({kind}) whole"
            ),
        ),
        // The port reports a missing interface and lists the existing ones.
        _ => ("xdp", format!("{name}: using AF_XDP")),
    };
    let opened = open_kind(&format!("{kind}:{name}"), options);
    let (result, why) = match opened {
        Err(error) if kind == "xdp" && may_work_otherwise(&error) => (
            open_kind(&format!("packet:{name}"), options),
            format!("{name}: using AF_PACKET, because AF_XDP failed: {error}"),
        ),
        other => (other, why),
    };
    result.map(|mut port| {
        port.notes.insert(0, why);
        port
    })
}

fn may_work_otherwise(error: &PortError) -> bool {
    match error {
        PortError::NoInterface { .. } | PortError::Down { .. } => false,
        PortError::InUse { only_by_xdp, .. } => *only_by_xdp,
        _ => true,
    }
}

/// Lets a port control the carrier of the interface at its other end.
///
/// # Errors
/// The interface does not exist or does not belong to Longwire.
fn control_carrier(port: &mut Port, control: CarrierControl) -> Result<(), PortError> {
    let name = &port.name;
    let refused = |reason: &str| PortError::unsupported(name, reason);
    if control == CarrierControl::Off {
        return Ok(());
    }
    let failed = |error: io::Error| match error.raw_os_error() {
        Some(libc::EINVAL | libc::ENOTTY) => {
            refused("controlling the carrier of a TAP device needs Linux 5.0")
        }
        _ => PortError::of(name.to_owned(), "controlling the carrier", error),
    };
    let start = |switch| Carrier::start(switch).map_err(failed);
    let own_pair = |interface: &str| {
        if control == CarrierControl::OwnPair {
            start(switch_of_pair(interface).map_err(failed)?)
        } else {
            Err(refused(
                "carrier: cannot control the carrier of an existing interface; use tap:NAME, or \
                 `longwire exec`",
            ))
        }
    };
    match (&mut port.rx, &mut port.tx) {
        (AnyRx::Tap(_), AnyTx::Tap(tx)) => {
            let switch = tx.carrier_switch().map_err(failed)?;
            tx.carrier = Some(start(switch)?);
        }
        (AnyRx::Packet(rx), AnyTx::Packet(tx)) => {
            let carrier = own_pair(tx.interface())?;
            rx.carrier = Some(carrier.state());
            tx.carrier = Some(carrier);
        }
        (AnyRx::Xdp(_), AnyTx::Xdp(tx)) => tx.carrier = Some(own_pair(tx.interface())?),
        _ => return Err(refused("carrier: no interface at the other end")),
    }
    Ok(())
}

/// Returns the carrier switch of a veth pair whose end `interface` is in the calling thread's
/// namespace.
fn switch_of_pair(interface: &str) -> io::Result<SwitchCarrier> {
    let mut netlink = Netlink::route().map_err(|error| error.source)?;
    let interface = interface.to_owned();
    Ok(Box::new(move |up| {
        link::set_up_by(&mut netlink, &interface, up).map_err(NetError::into_io)
    }))
}
