//! A port at an interface in use. Packets sent to selected addresses enter a network, and packets
//! from the network arrive at the interface.
//!
//! ```text
//!  stack ─▶ eth0 egress ──(selected)─▶ device ═══▶ port ─▶ network
//!  stack ◀─ eth0 ingress ◀──────────── device ◀═══ port ◀─ network
//! ```
//!
//! Other packets, including ARP and received frames, are unaffected. The network may connect
//! interfaces in different subnets. Frames between these are addressed to a router, so the program
//! replaces the router's MAC address with the interface's; otherwise, the kernel would not accept
//! the frames.
//!
//! As with attachments, the program at the interface ends with this process.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use super::alive::{self, AliveCall};
use super::devices::{DEVICE, make_devices, open};
use super::filter::facts::{CONTEXT, STACK, load};
use super::given::{GivenFrames, Watch};
use super::taker::{Destination, NEXT, take};
use super::{AttachError, AttachHub, PROGRAM, Selection, attach_at, attach_giver, find};
use crate::bpf::instruction::{
    Alu, Assembler, Compare, EXIT, Instruction, add_number, call, compute_number, load_byte,
    move_number, move_register, skip_if_number, store_word,
};
use crate::bpf::tcx::{self, Hook, Position, Programs};
use crate::bpf::{self, Link, ProgramKind};
use crate::net::NetNamespace;
use crate::net::grace::ExpeditedGrace;
use crate::port::registry::Port;

/// Name of programs that take packets for a port. An interface may have several of them.
const PORT_PROGRAM: &str = "longwire_port";
/// Length of a MAC address.
const MAC_LEN: i32 = 6;
/// The helper `bpf_skb_store_bytes`.
const STORE_BYTES: i32 = 9;
const SCRATCH: i16 = -8;

/// A port at an interface that takes no packets yet.
#[derive(Debug)]
pub struct PortEngage {
    namespace: NetNamespace,
    port: AttachedPort,
}

/// Creates a port's device and programs at an interface, by default the default route's, and opens
/// the port. [`PortEngage::engage`] makes it take packets.
///
/// # Errors
/// See [`prepare`](super::prepare).
pub fn prepare_port(
    namespace: &NetNamespace,
    interface: Option<&str>,
    selection: &Selection,
    hub: &AttachHub,
) -> Result<(PortEngage, Port), AttachError> {
    let _hurry = ExpeditedGrace::begin();
    alive::start()?;
    selection.check_size()?;
    let found = namespace.run(|| find(interface))??;
    namespace.run(|| {
        let programs = tcx::programs(found.index, Hook::Egress).map_err(AttachError::of_query)?;
        check_free(&found.name, &programs)
    })??;
    let ([name], [device]) = make_devices(namespace, &found, &hub.namespace, [DEVICE])?;
    let given = GivenFrames::shared(Hook::Ingress)?;
    let port = hub
        .namespace
        .run(|| open(&name, &hub.options(&found), &given).map_err(AttachError::from))??;
    let load = |name, instructions: &[_]| bpf::load_program(ProgramKind::Tcx, name, instructions);
    let selected = selection.node(true);
    let (call, array) = AliveCall::to(device)?;
    let destination = Destination::WhileAlive(array.as_fd());
    let taking = take(None, selected.as_ref(), destination).ok_or(AttachError::FilterTooComplex)?;
    let delivering = deliver(found.index, found.mac.unwrap_or_default(), &given);
    let delivering = delivering.unwrap_or_else(|| unreachable!("all jumps are short"));
    let delivering = load("longwire_deliver", &delivering)?;
    let giving = namespace.run(|| attach_giver(device, delivering.as_fd()))?;
    let passing = [move_number(0, NEXT), EXIT];
    let attached = AttachedPort {
        watch: Watch::new(&hub.namespace, &name, found.index)?,
        interface: found.name,
        index: found.index,
        taking: None,
        programs: [load(PORT_PROGRAM, &taking)?, load(PORT_PROGRAM, &passing)?],
        _call: call,
        giving: Some(giving?),
        _delivering: delivering,
        given: [given],
        _hub: hub.namespace.try_clone()?,
        takes: true,
    };
    let engage = PortEngage {
        namespace: namespace.try_clone()?,
        port: attached,
    };
    Ok((engage, port))
}

impl PortEngage {
    /// Starts taking packets.
    ///
    /// # Errors
    /// The interface is gone, or a Longwire link is attached to it.
    pub fn engage(self) -> Result<AttachedPort, AttachError> {
        let _hurry = ExpeditedGrace::begin();
        let mut port = self.port;
        let taking = self.namespace.run(|| {
            let place = (port.interface.as_str(), port.index);
            attach_at(place, Hook::Egress, port.programs[0].as_fd(), |programs| {
                check_free(&port.interface, programs).map(|()| Position::First)
            })
        })??;
        port.taking = Some(taking);
        Ok(port)
    }
}

/// A port at an interface. Drop restores the interface.
#[derive(Debug)]
pub struct AttachedPort {
    interface: String,
    index: u32,
    /// Attachment of the taking program. Removed first, so that no more packets enter.
    taking: Option<Link>,
    /// The program that takes packets, and the one that lets them pass.
    programs: [OwnedFd; 2],
    _call: AliveCall,
    giving: Option<Link>,
    _delivering: OwnedFd,
    given: [Arc<GivenFrames>; 1],
    _hub: NetNamespace,
    watch: Watch,
    takes: bool,
}

impl AttachedPort {
    /// Returns the interface's name.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// Returns whether the interface is still in its namespace and has this port's program. Also
    /// records losses, as [`AttachedPort::note_losses`] does.
    pub fn is_attached(&self) -> bool {
        let is_there = self.note_losses();
        let link = self.taking.as_ref();
        link.is_some_and(|link| link.is_attached().unwrap_or(false)) && is_there
    }

    /// Attributes the kernel's drops at the interface to causes, for the port's counters. Call it
    /// periodically and after the last packet. Returns whether the interface is still in its
    /// namespace.
    pub fn note_losses(&self) -> bool {
        GivenFrames::judge_all(&self.given, &self.watch)
    }

    /// Sets whether packets enter the network or bypass it, starting with the next one. Packets
    /// from the network are delivered in both cases.
    ///
    /// # Errors
    /// The kernel refuses, for example because the interface is gone.
    pub fn set_taking(&mut self, takes: bool) -> Result<(), AttachError> {
        if let Some(link) = self.taking.as_ref().filter(|_| takes != self.takes) {
            let program = &self.programs[usize::from(!takes)];
            link.replace(program.as_fd())?;
            self.takes = takes;
        }
        Ok(())
    }

    /// Returns whether packets are taken.
    pub fn takes(&self) -> bool {
        self.takes
    }

    /// Stops taking packets. Packets in the network are still delivered while the port is open.
    pub fn release(&mut self) {
        let _hurry = ExpeditedGrace::begin();
        self.taking = None;
    }
}

impl Drop for AttachedPort {
    fn drop(&mut self) {
        let _hurry = ExpeditedGrace::begin();
        self.taking = None;
        self.giving = None;
    }
}

/// Checks that an interface's egress programs include no Longwire link.
fn check_free(interface: &str, programs: &Programs) -> Result<(), AttachError> {
    let is_link = |name: &String| name.starts_with(PROGRAM) && name != PORT_PROGRAM;
    if programs.names.iter().any(is_link) {
        return Err(AttachError::Taken {
            interface: interface.to_owned(),
        });
    }
    Ok(())
}

/// Returns the program that delivers frames to the interface. It rewrites unicast destinations to
/// the interface's address.
fn deliver(interface: u32, mac: [u8; 6], given: &GivenFrames) -> Option<Vec<Instruction>> {
    /// The group bit in the first byte of a MAC address.
    const GROUP: u32 = 1;
    let [a, b, c, d, e, f] = mac;
    let mut program = Assembler::default();
    let ready = program.label();
    program.put_all([move_register(CONTEXT, 1), move_number(2, 0)]);
    load(&mut program, SCRATCH, 1, ready);
    program.put_all([
        load_byte(2, STACK, SCRATCH),
        compute_number(Alu::And, 2, GROUP),
    ]);
    program.jump(skip_if_number(Compare::Unequal, 2, 0), ready);
    program.put_all([
        move_number(2, i32::from_ne_bytes([a, b, c, d])),
        store_word(STACK, 2, SCRATCH),
        move_number(2, i32::from_ne_bytes([e, f, 0, 0])),
        store_word(STACK, 2, SCRATCH + 4),
        move_register(1, CONTEXT),
        move_number(2, 0),
        move_register(3, STACK),
        add_number(3, SCRATCH.into()),
        move_number(4, MAC_LEN),
        move_number(5, 0),
        call(STORE_BYTES),
    ]);
    program.place(ready);
    given.give(&mut program, interface);
    program.finish()
}
