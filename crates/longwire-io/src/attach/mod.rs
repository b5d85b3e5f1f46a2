//! A pair of ports inserted into an interface in use. The interface's sent and received frames pass
//! through them, while its addresses, routes and connections remain.
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
//! `inner` and `outer` are veth pairs. Four eBPF programs (`taker`) move frames between them and
//! the interface. The programs at the interface run before other programs there, which therefore
//! see each frame once: received frames after the link, sent frames after the link and before the
//! interface's qdisc.
//!
//! The programs are attached by descriptors (TCX links, Linux 6.6). However this process ends, the
//! programs stop taking frames (`alive`), the kernel removes them, and the interface works as
//! before, unless the attachment fails closed (`pins`). The namespace is removed with its last
//! descriptor, and the veth pairs with the namespace.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use crate::bpf::tcx::{self, Hook, Position, Programs};
use crate::bpf::{self, Link, ProgramKind};
use crate::net::grace::ExpeditedGrace;
use crate::net::interface::{self, Interface};
use crate::net::{NetNamespace, address, link};
use crate::port::options::OpenOptions;
use crate::port::registry::Port;

mod alive;
mod devices;
mod error;
mod filter;
mod given;
mod order;
mod pins;
mod port;
mod taker;

pub use alive::closed_at_end;
pub use devices::is_device_of_link;
pub use error::AttachError;
pub use order::Direction;
pub use pins::{AttachClaim, FailMode, Pins};
pub use port::{AttachedPort, PortEngage, prepare_port};
pub use taker::{LoadedSelection, Selection, Selector};

use alive::AliveCall;
use devices::{INNER, OUTER, make_devices, open, quiet};
use given::{GivenFrames, Watch};
use order::{NoPlace, Rank};
use taker::Taker;

/// Maximum number of prefixes per attachment, due to the kernel's program length limit.
pub const PREFIXES_MAX: usize = 512;

/// Name prefix of the programs at attachments' devices.
const PROGRAM: &str = "longwire";
/// Maximum number of attach attempts while other processes change the interface's programs.
const RACES: u32 = 64;
/// Total memory in bytes of a run's receive rings, and its bounds per port.
const RINGS_BYTES: usize = 128 << 20;
const RING_MIN: usize = 512 << 10;
const RING_MAX: usize = 4 << 20;
/// Maximum number of interfaces with AF_XDP sending. Runs with more interfaces send without AF_XDP,
/// to save memory.
const INTERFACES_FEW: usize = 16;
/// An interface's hooks, in order of attachment.
const HOOKS: [Hook; 2] = [Hook::Ingress, Hook::Egress];
/// Length of an Ethernet header with one VLAN tag.
const ETHERNET: usize = 14 + 4;

/// An interface to attach to.
#[derive(Debug)]
pub struct AttachPlace<'a> {
    /// The interface's namespace.
    pub namespace: &'a NetNamespace,
    /// The interface's name; `None` for the default route's interface.
    pub interface: Option<&'a str>,
    /// The frames to take.
    pub selection: Selection,
    /// The directions to take.
    pub direction: Direction,
    /// Precedence among the interface's attachments: attachments with lower values get frames
    /// first, and ties go to the oldest. `None` is 128 with prefixes or a filter, else 255.
    pub priority: Option<u8>,
    /// Fate of the frames after the process is killed.
    pub fail: FailMode,
    /// An earlier process's claims by interface name.
    pub claims: &'a BTreeMap<String, AttachClaim>,
}

/// A run's namespace, with its ends of the veth pairs.
#[derive(Debug)]
pub struct AttachHub {
    namespace: NetNamespace,
    /// Number of interfaces that share the run's memory.
    interfaces: usize,
}

impl AttachHub {
    /// Creates a namespace for the links of `interfaces` interfaces in one namespace.
    ///
    /// # Errors
    /// Missing CAP_SYS_ADMIN.
    pub fn new(interfaces: usize) -> Result<AttachHub, AttachError> {
        let namespace = NetNamespace::new()?;
        namespace.run(quiet)??;
        Ok(AttachHub {
            namespace,
            interfaces: interfaces.max(1),
        })
    }

    fn options(&self, interface: &Interface) -> OpenOptions {
        let ring = RINGS_BYTES / (2 * self.interfaces);
        OpenOptions {
            // From the interface's MTU, because the veth pair has the maximum MTU.
            frame_usual: Some(interface.mtu as usize + ETHERNET),
            ring_bytes: Some(ring.clamp(RING_MIN, RING_MAX)),
            sends_by_xdp: self.interfaces <= INTERFACES_FEW,
            private: true,
            ..OpenOptions::default()
        }
    }
}

/// A link's attachment to an interface. Drop restores the interface.
#[derive(Debug)]
pub struct Attachment {
    interface: String,
    index: u32,
    /// Loads programs for [`Attachment::select`].
    selector: Selector,
    selection: Selection,
    /// Programs at the interface. They are removed first, so that no more frames enter.
    taking: Vec<(Hook, Link)>,
    /// Tail calls of these programs, and of the programs before the last [`Attachment::select`],
    /// which may still run.
    calls: [Vec<AliveCall>; 2],
    giving: Vec<Link>,
    _programs: Vec<OwnedFd>,
    hub: NetNamespace,
    /// Device names, the same at both ends.
    names: [String; 2],
    /// Paths of the pinned links, if the interface stays closed when the process ends.
    pins: Option<Pins>,
    /// Whether an earlier process may have left the interface closed.
    is_claimed: bool,
    watch: Watch,
    /// Frames delivered to the interface's namespace, and frames delivered to its wire.
    given: [Arc<GivenFrames>; 2],
}

/// The two ends of an attachment that takes no frames yet.
pub struct PreparedLink {
    engage: Engage,
    /// Port facing the interface's namespace.
    pub inner: Port,
    /// Port facing the interface's wire.
    pub outer: Port,
}

impl std::fmt::Debug for PreparedLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.engage.fmt(f)
    }
}

/// Creates an attachment's devices and programs and opens its ports. [`engage_all`] makes it take
/// frames.
///
/// # Errors
/// The kernel is too old; the interface does not exist or has no Ethernet header; both this link
/// and an existing one take all frames; or CAP_NET_ADMIN, CAP_BPF or CAP_SYS_ADMIN is missing.
pub fn prepare(place: &AttachPlace<'_>, hub: &AttachHub) -> Result<PreparedLink, AttachError> {
    let _hurry = ExpeditedGrace::begin();
    alive::start()?;
    place.selection.check_size()?;
    let found = place.namespace.run(|| find(place.interface))??;
    let claim = place.claims.get(&found.name);
    let pins = pins::pins(place, claim, found.index)?;
    let rank = place.namespace.run(|| rank_at(place, &found, claim))??;
    let (names, devices) = make_devices(place.namespace, &found, &hub.namespace, [INNER, OUTER])?;
    let mut attachment = Attachment {
        interface: found.name.clone(),
        index: found.index,
        selector: Selector {
            rank,
            mark: mark_of(place.namespace.inode() ^ u64::from(found.index) << 32),
            devices,
            fail: place.fail,
            direction: place.direction,
        },
        selection: place.selection.clone(),
        taking: Vec::new(),
        calls: Default::default(),
        giving: Vec::new(),
        _programs: Vec::new(),
        hub: hub.namespace.try_clone()?,
        names: names.clone(),
        watch: Watch::new(&hub.namespace, &names[0], found.index)?,
        is_claimed: pins.is_some() && claim.is_some(),
        pins,
        given: [
            GivenFrames::shared(Hook::Ingress)?,
            GivenFrames::shared(Hook::Egress)?,
        ],
    };
    // Exclude the interface's earlier drops.
    attachment.note_losses();
    let [received, sent] = &attachment.given;
    let ([inner, outer], options) = (&names, hub.options(&found));
    // At once, because each ring waits for a grace period.
    let (inner, outer) = hub.namespace.run_both(
        || open(inner, &options, received),
        || open(outer, &options, sent),
    )?;
    let (inner, outer) = (inner?, outer?);

    attachment.attach_givers(place.namespace)?;
    let engage = Engage {
        namespace: place.namespace.try_clone()?,
        takers: attachment.selector.takers(&place.selection)?,
        attachment,
    };
    Ok(PreparedLink {
        engage,
        inner,
        outer,
    })
}

/// Returns the attachment's rank at an interface in the calling thread's namespace.
fn rank_at(
    place: &AttachPlace<'_>,
    found: &Interface,
    claim: Option<&AttachClaim>,
) -> Result<Rank, AttachError> {
    let takes_all = place.selection.takes_all();
    let hooks = hooks_of(found.index).map_err(AttachError::of_query)?;
    let serial = claim.map(|claim| claim.serial);
    let rank = Rank::new(place.priority, serial, takes_all, &hooks);
    for (programs, hook) in hooks.iter().zip(HOOKS) {
        // The conflicting program may be the one that the claim describes.
        let taken = rank.position(programs) == Err(NoPlace::Taken);
        if taken && place.direction.has(hook) && !pins::is_left(claim, hook) {
            return Err(self::taken(&found.name, takes_all));
        }
    }
    Ok(rank)
}

impl PreparedLink {
    /// Returns the interface's name.
    pub fn interface(&self) -> &str {
        &self.engage.attachment.interface
    }

    /// Returns the claim for a later process. Its serial number may change until frames are taken.
    pub fn claim(&self) -> AttachClaim {
        self.engage.attachment.claim()
    }

    /// Splits off the ports.
    pub fn into_parts(self) -> (Engage, Port, Port) {
        (self.engage, self.inner, self.outer)
    }
}

/// An attachment that takes no frames yet, without its ports.
#[derive(Debug)]
pub struct Engage {
    attachment: Attachment,
    namespace: NetNamespace,
    takers: Vec<Taker>,
}

/// Starts taking frames at all of these interfaces, or at none. An interface that an earlier
/// process left closed stays closed until its frames are taken, and on failure.
///
/// # Errors
/// An interface is gone; another link that takes all frames was attached since [`prepare`]; or no
/// BPF file system is mounted for an interface that fails closed.
pub fn engage_all(engages: Vec<Engage>) -> Result<Vec<Attachment>, AttachError> {
    let _hurry = ExpeditedGrace::begin();
    let mut attached: Vec<Attachment> = Vec::new();
    for engage in engages {
        match engage.engage() {
            Ok(attachment) => attached.push(attachment),
            Err(error) => {
                let made_now = attached.iter_mut().filter(|one| !one.is_claimed);
                made_now.for_each(Attachment::release);
                return Err(error);
            }
        }
    }
    Ok(attached)
}

impl Engage {
    /// Like [`engage_all`], for one interface.
    fn engage(mut self) -> Result<Attachment, AttachError> {
        let (attachment, namespace) = (&mut self.attachment, &self.namespace);
        let mut attempt = 0;
        attachment.taking = loop {
            match namespace.run(|| attachment.attach_all(&self.takers))? {
                Ok(links) => break links,
                // Another attachment took this serial number in the meantime.
                Err(NotAttached::SerialTaken) if attempt < RACES => {
                    attempt += 1;
                    attachment.selector.rank = namespace.run(|| attachment.next_rank())??;
                    self.takers = attachment.selector.takers(&attachment.selection)?;
                }
                Err(NotAttached::SerialTaken) => {
                    return Err(taken(&attachment.interface, false));
                }
                Err(NotAttached::Failed(error)) => return Err(error),
            }
        };
        attachment.calls[0] = self
            .takers
            .into_iter()
            .filter_map(|taker| taker.call)
            .collect();
        if let Some(pins) = &attachment.pins
            && let Err(error) = pins.pin(&mut attachment.taking)
        {
            attachment.release();
            return Err(error);
        }
        Ok(self.attachment)
    }
}

enum NotAttached {
    SerialTaken,
    Failed(AttachError),
}

impl From<AttachError> for NotAttached {
    fn from(error: AttachError) -> NotAttached {
        NotAttached::Failed(error)
    }
}

impl Attachment {
    /// Returns the interface's name.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// Returns the claim for a later process.
    pub fn claim(&self) -> AttachClaim {
        AttachClaim {
            serial: self.selector.rank.serial,
            pins: self.pins.clone(),
        }
    }

    /// Attaches the programs that deliver frames to the interface.
    fn attach_givers(&mut self, namespace: &NetNamespace) -> Result<(), AttachError> {
        let load = |name: &str, given: &GivenFrames| {
            let program = taker::give_back(self.selector.mark, self.index, given);
            bpf::load_program(ProgramKind::Tcx, &format!("{PROGRAM}_{name}"), &program)
        };
        let [received, sent] = &self.given;
        let programs = [load("arrive", received)?, load("send", sent)?];
        let giving = namespace.run(|| {
            let devices = self.selector.devices.into_iter().zip(&programs);
            devices
                .map(|(device, program)| attach_giver(device, program.as_fd()))
                .collect::<io::Result<_>>()
        })?;
        self.giving = giving?;
        self._programs = programs.into();
        Ok(())
    }

    /// Returns the loader of programs for [`Attachment::select`].
    pub fn selector(&self) -> Selector {
        self.selector
    }

    /// Changes the selection. Frames that match both selections are not lost and do not bypass the
    /// link.
    ///
    /// # Errors
    /// The kernel rejects the programs.
    pub fn select(&mut self, loaded: LoadedSelection) -> Result<(), AttachError> {
        let LoadedSelection { takers, selection } = loaded;
        for ((_, link), taker) in self.taking.iter().zip(&takers) {
            link.replace(taker.program())?;
        }
        let calls = takers.into_iter().filter_map(|taker| taker.call).collect();
        self.calls = [calls, std::mem::take(&mut self.calls[0])];
        self.selection = selection;
        Ok(())
    }

    /// Returns an unused rank at the interface, in the calling thread's namespace.
    fn next_rank(&self) -> Result<Rank, AttachError> {
        let hooks = hooks_of(self.index)?;
        Ok(self.selector.rank.after_others(&hooks))
    }

    /// Attaches all programs at the interface, in the calling thread's namespace.
    fn attach_all(&self, takers: &[Taker]) -> Result<Vec<(Hook, Link)>, NotAttached> {
        let attached = takers.iter().map(|taker| {
            let (hook, program) = (taker.hook, taker.program());
            let left = self.pins.as_ref().filter(|_| self.is_claimed);
            let link = match left.and_then(|pins| pins.left(hook)) {
                Some(link) => {
                    link.replace(program).map_err(AttachError::from)?;
                    link
                }
                None => self.attach(hook, program)?,
            };
            Ok((hook, link))
        });
        attached.collect()
    }

    /// Attaches a program at the interface, in the calling thread's namespace, at its
    /// rank.
    fn attach(&self, hook: Hook, program: BorrowedFd<'_>) -> Result<Link, NotAttached> {
        let rank = self.selector.rank;
        attach_at((&self.interface, self.index), hook, program, |programs| {
            rank.position(programs).map_err(|reason| match reason {
                NoPlace::Taken => taken(&self.interface, rank.takes_all).into(),
                NoPlace::SerialTaken => NotAttached::SerialTaken,
            })
        })
    }

    /// Returns whether the interface is still in its namespace and frames are taken. Also records
    /// losses, as [`Attachment::note_losses`] does.
    pub fn is_attached(&self) -> bool {
        let mut links = self.taking.iter();
        let is_there = self.note_losses();
        links.all(|(_, link)| link.is_attached().unwrap_or(false)) && is_there
    }

    /// Attributes the kernel's drops at the interface to causes, for the ports' counters. Call it
    /// periodically and after the last frame. Returns whether the interface is still in its
    /// namespace.
    pub fn note_losses(&self) -> bool {
        GivenFrames::judge_all(&self.given, &self.watch)
    }

    /// Stops taking frames. Frames on the link are still delivered while the ports are open.
    pub fn release(&mut self) {
        let _hurry = ExpeditedGrace::begin();
        for (_, link) in &mut self.taking {
            // Best effort: the link is detached on drop, even if its path cannot be removed.
            let _ = link.unpin();
        }
        self.taking.clear();
        self.calls = Default::default();
        self.pins = None;
    }

    /// Stops taking frames, removes the devices and waits for their removal. After a mere drop, the
    /// kernel removes them up to 0.1 s later. All ports must be closed.
    pub fn remove(mut self) {
        let _hurry = ExpeditedGrace::begin();
        self.release();
        let removed = self.hub.run(|| {
            for name in &self.names {
                // On failure, the device is gone with its namespace, or is removed with the hub.
                let _ = link::link_delete(name);
            }
        });
        // On failure, the kernel removes them with the hub.
        let _ = removed;
    }

    /// Returns whether the interface stays closed after drop.
    pub fn stays_closed(&self) -> bool {
        self.pins.is_some() && !self.taking.is_empty() && self.is_attached()
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        let _hurry = ExpeditedGrace::begin();
        // An interface that stays closed keeps its programs, unless the interface is gone.
        if !self.stays_closed() {
            self.release();
        }
        self.giving.clear();
    }
}

/// Checks that the kernel and rights suffice.
///
/// # Errors
/// [`AttachError::OldKernel`] before Linux 6.6; [`AttachError::Program`] without the rights.
pub fn check_kernel() -> Result<(), AttachError> {
    // Every namespace has a loopback interface.
    const LO: u32 = 1;
    let found = tcx::programs(LO, Hook::Ingress);
    found.map(drop).map_err(AttachError::of_query)
}

/// Finds the interface in the calling thread's namespace.
fn find(name: Option<&str>) -> Result<Interface, AttachError> {
    let found = match name {
        Some(name) => Interface::find(name).map_err(|source| AttachError::NoInterface {
            source,
            present: interface::names_present(),
        })?,
        None => {
            let index = address::default_interface()?;
            Interface::find_index(index.ok_or_else(|| AttachError::NoDefaultRoute {
                present: interface::names_present(),
            })?)?
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

/// Returns the interface's programs in the order of [`HOOKS`].
fn hooks_of(interface: u32) -> io::Result<[Programs; 2]> {
    let [ingress, egress] = HOOKS.map(|hook| tcx::programs(interface, hook));
    Ok([ingress?, egress?])
}

fn taken(interface: &str, by_all: bool) -> AttachError {
    let interface = interface.to_owned();
    if by_all {
        AttachError::Taken { interface }
    } else {
        AttachError::OtherKind { interface }
    }
}

/// Attaches a program at a hook of an interface (name and index), in the calling thread's
/// namespace; `place` selects its position among the hook's programs.
fn attach_at<E: From<AttachError>>(
    (interface, index): (&str, u32),
    hook: Hook,
    program: BorrowedFd<'_>,
    place: impl Fn(&Programs) -> Result<Position, E>,
) -> Result<Link, E> {
    let mut attempt = 0;
    loop {
        let programs = tcx::programs(index, hook).map_err(AttachError::of_query)?;
        let position = place(&programs)?;
        let (interface, count) = (interface.to_owned(), programs.ids.len());
        if count >= tcx::PROGRAMS_MAX {
            return Err(AttachError::TooManyPrograms { interface, count }.into());
        }
        match tcx::attach(program, index, hook, position, programs.revision) {
            Ok(link) => return Ok(link),
            Err(error) if is_race(&error) && attempt < RACES => attempt += 1,
            Err(source) if is_race(&source) => {
                return Err(AttachError::Changed { interface, source }.into());
            }
            Err(error) => return Err(AttachError::from(error).into()),
        }
    }
}

/// Attaches the program for frames that a device receives from a port, in the calling thread's
/// namespace.
fn attach_giver(device: u32, program: BorrowedFd<'_>) -> io::Result<Link> {
    let revision = tcx::programs(device, Hook::Ingress)?.revision;
    tcx::attach(program, device, Hook::Ingress, Position::First, revision)
}

/// Returns whether a hook's programs changed between query and attachment.
fn is_race(error: &io::Error) -> bool {
    // ENOENT: the reference program is gone.
    matches!(error.raw_os_error(), Some(libc::ESTALE | libc::ENOENT))
}

/// Returns the mark of frames that pass: a constant upper half, unlike the small numbers and bit
/// masks of other programs, and a hash of `seed`, which is unique per interface.
fn mark_of(seed: u64) -> u32 {
    let mixed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    0x4c57_0000 | (mixed >> 48) as u32 | 1
}
