//! A pair of ports in the middle of an interface that is in use: frames that it sends and
//! frames that arrive at it pass through them, and its addresses, routes and connections
//! stay as they are.
//!
//! ```text
//!  in the interface's namespace                 in a namespace of this process
//!
//!  stack ─▶ eth0 egress ──(taken)─▶ inner ═══▶ inner port ─▶ link up ──┐
//!  wire  ◀─ eth0 egress ◀─(marked)─ outer ◀═══ outer port ◀────────────┘
//!
//!  wire  ─▶ eth0 ingress ─(taken)─▶ outer ═══▶ outer port ─▶ link down ┐
//!  stack ◀─ eth0 ingress ◀(marked)─ inner ◀═══ inner port ◀────────────┘
//! ```
//!
//! `inner` and `outer` are veth pairs. Four eBPF programs (`program`) move frames
//! between them and the interface. Those at the interface are before the programs of
//! others, so that each frame runs through the others once: what arrives, after the link;
//! what is sent, after the link, before the interface's qdisc.
//!
//! The programs are held by descriptors (TCX links, Linux 6.6). When this process ends,
//! however it ends, the kernel removes them, and the interface works as before; the
//! namespace goes with its last descriptor, and the veth pairs with the namespace.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use crate::bpf::tcx::{self, Hook};
use crate::bpf::{self, Link, ProgramKind};
use crate::net::grace::ExpeditedGrace;
use crate::net::interface::{self, Interface};
use crate::net::veth::{self, End, VethConfig};
use crate::net::{NetError, NetNamespace, address, link, sysctl};
use crate::port::PortError;
use crate::port::options::OpenOptions;
use crate::port::registry::{self, Port};

mod error;
mod filter;
mod pins;
mod port;
mod program;
mod selection;
mod watch;

pub use error::AttachError;
pub use pins::Pins;
pub use port::{AttachedPort, PortEngage, prepare_port};
pub use selection::{PREFIXES_MAX, Selection};

use watch::Watch;

/// Start of the names of programs at interfaces.
const PROGRAM: &str = "longwire";
/// The largest MTU of a veth device: the interface's limits apply, not those of the way
/// through the link.
const MTU: u32 = 65_535;
/// The most names that are tried for the devices.
const ATTEMPTS: u32 = 64;
/// Memory of the receive rings of all ports of a run together, in bytes, and its limits
/// for one port.
const RINGS_BYTES: usize = 128 << 20;
const RING_MIN: usize = 512 << 10;
const RING_MAX: usize = 4 << 20;
/// With more interfaces than this in a run, ports send without AF_XDP, to save memory.
const INTERFACES_FEW: usize = 16;
/// Bytes of an Ethernet header with a VLAN tag.
const ETHERNET: usize = 14 + 4;
/// Patience for a new device to come up, which takes well under a millisecond.
const CARRIER_PATIENCE: Duration = Duration::from_secs(2);

/// An interface to attach to.
#[derive(Debug)]
pub struct AttachPlace<'a> {
    /// Its namespace.
    pub namespace: &'a NetNamespace,
    /// Its name there; `None` for that of the default route.
    pub interface: Option<&'a str>,
    /// The frames to take.
    pub selection: Selection,
}

/// The namespace of a run with its ends of the veth pairs.
#[derive(Debug)]
pub struct AttachHub {
    namespace: NetNamespace,
    /// The number of interfaces, which share the memory of the run.
    interfaces: usize,
}

impl AttachHub {
    /// Makes a namespace for the links in this many interfaces of one namespace.
    ///
    /// # Errors
    /// Without CAP_SYS_ADMIN.
    pub fn new(interfaces: usize) -> Result<AttachHub, AttachError> {
        let namespace = NetNamespace::new()?;
        namespace.run(quiet)??;
        Ok(AttachHub {
            namespace,
            interfaces: interfaces.max(1),
        })
    }

    /// Returns the options of the ports for an interface.
    fn options(&self, interface: &Interface) -> OpenOptions {
        let ring = RINGS_BYTES / (2 * self.interfaces);
        OpenOptions {
            // That of the veth pair is as long as a frame can be.
            frame_usual: Some(interface.mtu as usize + ETHERNET),
            ring_bytes: Some(ring.clamp(RING_MIN, RING_MAX)),
            sends_by_xdp: self.interfaces <= INTERFACES_FEW,
            private: true,
            ..OpenOptions::default()
        }
    }
}

/// A link's place in an interface. When this is dropped, the interface works as before.
pub struct Attachment {
    interface: String,
    index: u32,
    /// The programs at the interface, removed first: later frames no longer enter.
    taking: Vec<Link>,
    giving: Vec<Link>,
    _programs: Vec<OwnedFd>,
    _hub: NetNamespace,
    /// Paths of the links, for an interface that stays closed when the process ends.
    pins: Option<Pins>,
    watch: Watch,
}

impl std::fmt::Debug for Attachment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attachment")
            .field("interface", &self.interface)
            .finish_non_exhaustive()
    }
}

/// The two ends of an attachment, before frames are taken.
pub struct Prepared {
    attachment: Attachment,
    namespace: NetNamespace,
    taking: [(Hook, OwnedFd, u64); 2],
    /// The port of frames that the interface's namespace sends and receives.
    pub inner: Port,
    /// The port of frames that the interface sends and receives on its wire.
    pub outer: Port,
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Prepared").field(&self.attachment).finish()
    }
}

/// Names of the devices for an interface: they say what they are for, and fit.
fn names_of(interface: u32, attempt: u32) -> [String; 2] {
    let number = match attempt {
        0 => interface.to_string(),
        _ => format!("{interface}.{attempt}"),
    };
    [format!("lw-in{number}"), format!("lw-out{number}")]
}

/// Whether an interface has the name of a device of another attachment.
pub fn is_device_of_link(name: &str) -> bool {
    let number = name
        .strip_prefix("lw-in")
        .or_else(|| name.strip_prefix("lw-out"))
        .or_else(|| name.strip_prefix(port::DEVICE));
    number.is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit() || b == b'.')
    })
}

/// Makes the devices and programs of an attachment, and opens its ports. No frame is taken
/// before [`Engage::engage`].
///
/// # Errors
/// If the kernel is too old, the interface does not exist or has no Ethernet header, has a
/// link of Longwire already, or without CAP_NET_ADMIN, CAP_BPF and CAP_SYS_ADMIN.
pub fn prepare(place: &AttachPlace<'_>, hub: &AttachHub) -> Result<Prepared, AttachError> {
    let _hurry = ExpeditedGrace::begin();
    if place.selection.to.len() > PREFIXES_MAX {
        return Err(AttachError::TooManyPrefixes);
    }
    let found = place.namespace.run(|| find(place.interface))??;
    place.namespace.run(|| revisions(&found))??;
    let (names, devices) = make_devices(place.namespace, &found, &hub.namespace)?;
    // Another link may have been attached meanwhile.
    let seen = place.namespace.run(|| revisions(&found))??;
    let mut attachment = Attachment {
        interface: found.name.clone(),
        index: found.index,
        taking: Vec::new(),
        giving: Vec::new(),
        _programs: Vec::new(),
        _hub: hub.namespace.try_clone()?,
        watch: Watch::new(&hub.namespace, &names[0], found.index)?,
        pins: None,
    };
    let ports = hub.namespace.run(|| {
        let ([inner, outer], options) = (&names, hub.options(&found));
        Ok::<_, AttachError>((open(inner, &options)?, open(outer, &options)?))
    })?;
    let (inner, outer) = ports?;

    let mark = mark_of(hub.namespace.inode() ^ u64::from(found.index) << 32);
    let load = |name: &str, instructions: &[_]| {
        let name = format!("{PROGRAM}_{name}");
        bpf::load_program(ProgramKind::Tcx, &name, instructions).map_err(AttachError::program)
    };
    let [inside, outside] = devices;
    let arriving = program::give_back(mark, found.index, program::ARRIVE);
    let sending = program::give_back(mark, found.index, program::SEND);
    let givers = [
        (inside, load("arrive", &arriving)?),
        (outside, load("send", &sending)?),
    ];
    let giving = place.namespace.run(|| {
        let attached = givers.iter().map(|(device, program)| {
            let programs = tcx::programs(*device, Hook::Ingress)?;
            tcx::attach(program.as_fd(), *device, Hook::Ingress, programs.revision)
        });
        attached.collect::<io::Result<Vec<Link>>>()
    })?;
    attachment.giving = giving.map_err(AttachError::program)?;
    attachment._programs = givers.into_iter().map(|(_, program)| program).collect();
    let [egress, ingress] = seen;
    let take = |sending, device| {
        let selected = place.selection.node(sending);
        program::take(mark, selected.as_ref(), device).ok_or(AttachError::FilterTooComplex)
    };
    let (out, back) = (take(true, inside)?, take(false, outside)?);
    Ok(Prepared {
        namespace: place.namespace.try_clone()?,
        taking: [
            (Hook::Ingress, load("in", &back)?, ingress),
            (Hook::Egress, load("out", &out)?, egress),
        ],
        attachment,
        inner,
        outer,
    })
}

impl Prepared {
    /// Returns the name of the interface.
    pub fn interface(&self) -> &str {
        &self.attachment.interface
    }

    /// Takes the ports apart from the rest.
    pub fn into_parts(self) -> (Engage, Port, Port) {
        let engage = Engage {
            attachment: self.attachment,
            namespace: self.namespace,
            taking: self.taking,
        };
        (engage, self.inner, self.outer)
    }
}

/// An attachment whose ports are in use, and which takes no frames yet.
pub struct Engage {
    attachment: Attachment,
    namespace: NetNamespace,
    taking: [(Hook, OwnedFd, u64); 2],
}

impl std::fmt::Debug for Engage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Engage").field(&self.attachment).finish()
    }
}

impl Engage {
    /// Takes frames from now on.
    ///
    /// # Errors
    /// If the interface is gone, or the programs at it have changed since
    /// [`prepare`]: then another may have attached a link.
    pub fn engage(self) -> Result<Attachment, AttachError> {
        self.engage_links(false)
    }

    /// As [`Engage::engage`], and the interface stays closed if this process ends, or the
    /// attachment is dropped, before [`Attachment::release`].
    ///
    /// # Errors
    /// As those of [`Engage::engage`], and if no BPF file system is mounted.
    pub fn engage_closed(self) -> Result<Attachment, AttachError> {
        self.engage_links(true)
    }

    /// Returns the paths of [`Engage::engage_closed`].
    pub fn pins(&self) -> Pins {
        Pins::of_interface(self.namespace.inode(), self.attachment.index)
    }

    fn engage_links(self, closed: bool) -> Result<Attachment, AttachError> {
        let pins = closed.then(|| self.pins());
        let _hurry = ExpeditedGrace::begin();
        let index = self.attachment.index;
        let attached = self.namespace.run(|| {
            let attached = self.taking.iter().map(|(hook, program, revision)| {
                tcx::attach(program.as_fd(), index, *hook, *revision)
            });
            attached.collect::<io::Result<Vec<Link>>>()
        })?;
        let mut attachment = self.attachment;
        attachment.taking = attached.map_err(|source| match source.raw_os_error() {
            Some(libc::ESTALE) => AttachError::Changed {
                interface: attachment.interface.clone(),
                source,
            },
            _ => AttachError::program(source),
        })?;
        let programs = self.taking.into_iter().map(|(_, program, _)| program);
        attachment._programs.extend(programs);
        if let Some(pins) = pins {
            let pinned = pins.pin(&mut attachment.taking);
            attachment.pins = Some(pins);
            if let Err(error) = pinned {
                attachment.release();
                return Err(error);
            }
        }
        Ok(attachment)
    }
}

impl Attachment {
    /// Returns the name of the interface.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// Whether the interface is still where it was, and frames are taken.
    pub fn is_attached(&self) -> bool {
        let mut links = self.taking.iter();
        links.all(|link| link.is_attached().unwrap_or(false)) && self.watch.is_there()
    }

    /// Stops taking frames. Those that are on the link are still delivered while the ports
    /// are open.
    pub fn release(&mut self) {
        let _hurry = ExpeditedGrace::begin();
        for link in &mut self.taking {
            // If its path cannot be removed, a link of no interface stays there, which the
            // next attachment replaces.
            if link.unpin().is_err() {
                link.detach();
            }
        }
        self.taking.clear();
        self.pins = None;
    }

    /// Whether its interface stays closed when this is dropped.
    pub fn stays_closed(&self) -> bool {
        self.pins.is_some() && self.is_attached()
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        let _hurry = ExpeditedGrace::begin();
        // Of an interface that is gone, nothing is to stay; one that is to stay closed keeps
        // its programs.
        if !self.stays_closed() {
            self.release();
        }
        self.giving.clear();
    }
}

/// Checks that this kernel has the links of attachments, and that this process may make
/// them.
///
/// # Errors
/// [`AttachError::OldKernel`] before Linux 6.6; [`AttachError::Program`] without the rights.
pub fn check_kernel() -> Result<(), AttachError> {
    // Each namespace has it.
    const LO: u32 = 1;
    let found = tcx::programs(LO, Hook::Ingress);
    found.map(drop).map_err(AttachError::of_query)
}

/// Finds the interface in the calling thread's namespace.
fn find(name: Option<&str>) -> Result<Interface, AttachError> {
    let found = match name {
        Some(name) => Interface::find(name).map_err(|error| AttachError::NoInterface {
            source: error,
            present: interface::names_present(),
        })?,
        None => {
            let index =
                address::default_interface()?.ok_or_else(|| AttachError::NoDefaultRoute {
                    present: interface::names_present(),
                })?;
            Interface::find_index(index)?
        }
    };
    if found.name == "lo" {
        return Err(AttachError::Loopback);
    }
    if !found.is_ethernet() {
        return Err(AttachError::NoEthernet {
            interface: found.name,
        });
    }
    Ok(found)
}

/// Returns the revisions of the interface's lists of programs, egress first, unless a link
/// of Longwire is in them.
fn revisions(interface: &Interface) -> Result<[u64; 2], AttachError> {
    let mut revisions = [0; 2];
    for (revision, hook) in revisions.iter_mut().zip([Hook::Egress, Hook::Ingress]) {
        let programs = tcx::programs(interface.index, hook).map_err(AttachError::of_query)?;
        if programs.names.iter().any(|name| name.starts_with(PROGRAM)) {
            return Err(AttachError::Taken {
                interface: interface.name.clone(),
            });
        }
        *revision = programs.revision;
    }
    Ok(revisions)
}

/// Makes the calling thread's namespace one whose devices send nothing by themselves.
fn quiet() -> Result<(), NetError> {
    match sysctl::set("ipv6/conf/default/disable_ipv6", "1") {
        // A kernel without IPv6.
        Err(error)
            if error
                .io()
                .is_some_and(|e| e.kind() == io::ErrorKind::NotFound) =>
        {
            Ok(())
        }
        result => result,
    }
}

/// Makes the veth pairs between a namespace and the hub. Returns the names, and the numbers
/// of the devices in the namespace.
fn make_devices(
    namespace: &NetNamespace,
    interface: &Interface,
    hub: &NetNamespace,
) -> Result<([String; 2], [u32; 2]), AttachError> {
    let mut attempt = 0;
    loop {
        let names = names_of(interface.index, attempt);
        let place = u64::from(interface.index) << 32 | u64::from(attempt);
        let indices = indices_of(hub.inode() ^ place);
        match namespace.run(|| make_pairs(&names, indices, hub))? {
            Ok(numbers) => return Ok((names, numbers)),
            // The kernel removes the devices of an attachment that has ended after a moment.
            Err(AttachError::Net(error)) if exists(&error) && attempt < ATTEMPTS => attempt += 1,
            Err(error) => return Err(error),
        }
    }
}

fn exists(error: &NetError) -> bool {
    error.io().map(io::Error::kind) == Some(io::ErrorKind::AlreadyExists)
}

/// Makes the veth pairs between the calling thread's namespace and the hub. Returns the
/// numbers of the devices here.
fn make_pairs(
    names: &[String; 2],
    indices: [u32; 2],
    hub: &NetNamespace,
) -> Result<[u32; 2], AttachError> {
    let [inner, outer] = names;
    let first = make_pair(inner, indices[0], hub)?;
    let second = make_pair(outer, indices[1], hub).inspect_err(|_| {
        // For another attempt with other names.
        let _ = link::link_delete(inner);
    })?;
    Ok([first, second])
}

fn make_pair(name: &str, index: u32, hub: &NetNamespace) -> Result<u32, AttachError> {
    let end = |namespace, index| End {
        name,
        namespace,
        mtu: Some(MTU),
        index,
        ..End::default()
    };
    veth::create(&VethConfig {
        a: end(None, Some(index)),
        b: end(Some(hub), None),
    })?;
    // Its link-local address would show in the container and send multicast reports.
    let _ = sysctl::set(&format!("ipv6/conf/{name}/disable_ipv6"), "1");
    hub.run(|| link::link_up(name))??;
    link::link_up(name)?;
    link::wait_running(name, CARRIER_PATIENCE)?;
    Ok(link::link_index(name)?)
}

fn open(device: &str, options: &OpenOptions) -> Result<Port, PortError> {
    registry::open(&format!("packet:{device}"), options)
}

/// Returns numbers for the two devices in the interface's namespace. The kernel counts from
/// one, so that other devices have small numbers. The programs redirect by number: when the
/// interface is moved to another namespace, or stays closed, they find no device there.
fn indices_of(seed: u64) -> [u32; 2] {
    let mixed = seed.wrapping_mul(0xd6e8_feb8_6659_fd93) >> 34;
    let even = 0x4000_0000 | mixed as u32 & !1;
    [even, even | 1]
}

/// Returns a mark for frames that pass. Marks of others are small numbers and bit masks;
/// this one has bits in every byte, and is another for each attachment.
fn mark_of(seed: u64) -> u32 {
    let mixed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    0x4c57_0000 | (mixed >> 48) as u32 | 1
}
