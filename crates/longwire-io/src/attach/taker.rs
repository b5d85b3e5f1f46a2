//! An attachment's eBPF programs, and the frames they take.
//!
//! | where | program |
//! |---|---|
//! | egress of the interface | marked frames: replace the mark by a note and pass; noted frames: pass; selected frames: redirect to the inner device while this process lives (`alive`) |
//! | ingress of the interface | the same, with the outer device |
//! | ingress of the inner device | mark, then deliver to the interface's ingress; counts frames that the kernel drops there (`given`) |
//! | ingress of the outer device | the same, to the interface's egress |
//!
//! All attachments of an interface share one mark. The first program removes it, to hide it from
//! other programs, and leaves a note in the frame's control block for the next attachments at that
//! hook.

use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use longwire_packet::filter::Filter;
use longwire_packet::filter::tree::{Carrier, Net, Node, Side, Test};
use longwire_packet::header::IpVersion;

use super::alive::AliveCall;
use super::filter::facts::CONTEXT;
use super::filter::select;
use super::given::{GivenFrames, LENGTH, SEND};
use super::order::Rank;
use super::{AttachError, Direction, FailMode, HOOKS, PREFIXES_MAX};
use crate::bpf::instruction::{
    Alu, Assembler, Compare, EXIT, Instruction, call, compute_number, load_map, load_word,
    move_number, move_register, skip_if_number, store_word,
};
use crate::bpf::tcx::Hook;
use crate::bpf::{self, ProgramKind};
use crate::net::address::Prefix;
use crate::net::grace::ExpeditedGrace;

/// A program that takes frames at one hook.
#[derive(Debug)]
pub(super) struct Taker {
    pub hook: Hook,
    program: OwnedFd,
    /// The tail call of the redirecting program; `None` if the program takes frames even after the
    /// process has ended.
    pub call: Option<AliveCall>,
}

impl Taker {
    pub fn program(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }
}

/// Loads programs for other selections. Loading takes milliseconds, so it is separate from
/// [`Attachment::select`](super::Attachment::select).
#[derive(Clone, Copy, Debug)]
pub struct Selector {
    pub(super) rank: Rank,
    pub(super) mark: u32,
    /// Indices of the inner and outer devices.
    pub(super) devices: [u32; 2],
    pub(super) fail: FailMode,
    pub(super) direction: Direction,
}

/// Programs loaded for a selection.
#[derive(Debug)]
pub struct LoadedSelection {
    pub(super) takers: Vec<Taker>,
    pub(super) selection: Selection,
}

impl Selector {
    /// Loads a selection's programs.
    ///
    /// # Errors
    /// The kernel rejects the programs, or only one of the old and new selections takes all frames,
    /// which would change the rank.
    pub fn load(&self, selection: &Selection) -> Result<LoadedSelection, AttachError> {
        selection.check_size()?;
        if selection.takes_all() != self.rank.takes_all {
            return Err(AttachError::OtherPlace);
        }
        let _hurry = ExpeditedGrace::begin();
        Ok(LoadedSelection {
            takers: self.takers(selection)?,
            selection: selection.clone(),
        })
    }

    pub(super) fn takers(&self, selection: &Selection) -> Result<Vec<Taker>, AttachError> {
        let hooks = HOOKS.into_iter().filter(|hook| self.direction.has(*hook));
        hooks.map(|hook| self.taker(hook, selection)).collect()
    }

    fn taker(&self, hook: Hook, selection: &Selection) -> Result<Taker, AttachError> {
        let [inside, outside] = self.devices;
        let (sending, device) = match hook {
            Hook::Egress => (true, inside),
            Hook::Ingress => (false, outside),
        };
        let call = match self.fail {
            FailMode::Open => Some(AliveCall::to(device)?),
            FailMode::Closed => None,
        };
        let destination = match &call {
            None => Destination::Device(device),
            Some((_, array)) => Destination::WhileAlive(array.as_fd()),
        };
        let selected = selection.node(sending);
        let marked = Some((self.mark, hook));
        let instructions = take(marked, selected.as_ref(), destination);
        let instructions = instructions.ok_or(AttachError::FilterTooComplex)?;
        let name = self.rank.name(hook);
        let program = bpf::load_program(ProgramKind::Tcx, &name, &instructions);
        Ok(Taker {
            hook,
            program: program?,
            call: call.map(|(call, _)| call),
        })
    }
}

/// The frames to take. The kernel selects them; other frames never reach the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Prefixes of remote addresses; empty for all. Frames without IP, such as ARP, never
    /// match a prefix.
    pub to: Vec<Prefix>,
    /// A filter on frames that the interface's namespace sends; `None` for all. Received frames
    /// must match with source and destination swapped ([`Filter::mirrored`]).
    pub filter: Option<Filter>,
}

impl Selection {
    /// Returns whether every frame is taken.
    pub fn takes_all(&self) -> bool {
        self.to.is_empty() && self.filter.is_none()
    }

    /// Checks that the kernel can evaluate the selection, without querying the kernel.
    ///
    /// # Errors
    /// There are too many prefixes, or the filter is too complex.
    pub fn check(&self) -> Result<(), AttachError> {
        self.check_size()?;
        let is_possible = [true, false].iter().all(|sending| {
            let mut program = Assembler::default();
            let [taken, passing] = [(); 2].map(|()| program.label());
            let node = self.node(*sending);
            node.is_none_or(|node| select(&mut program, &node, taken, passing).is_some())
        });
        is_possible
            .then_some(())
            .ok_or(AttachError::FilterTooComplex)
    }

    pub(super) fn check_size(&self) -> Result<(), AttachError> {
        if self.to.len() > PREFIXES_MAX {
            return Err(AttachError::TooManyPrefixes);
        }
        Ok(())
    }

    /// Returns the test for sent or received frames; `None` if all are taken.
    pub(super) fn node(&self, sending: bool) -> Option<Node> {
        let side = [Side::Source, Side::Destination][usize::from(sending)];
        let prefixes = self.to.iter().map(|prefix| {
            Node::Test(Test::Net {
                side,
                net: net(prefix),
                of: Carrier::Ip,
            })
        });
        let to = (!self.to.is_empty()).then(|| Node::Any(prefixes.collect()));
        let filter = self.filter.as_ref().map(|filter| {
            if sending {
                filter.root().clone()
            } else {
                filter.mirrored().root().clone()
            }
        });
        match (to, filter) {
            (Some(to), Some(filter)) => Some(Node::All(vec![to, filter])),
            (to, filter) => to.or(filter),
        }
    }
}

fn net(prefix: &Prefix) -> Net {
    let mut address = [0; 16];
    let version = match prefix.address {
        IpAddr::V4(of) => {
            address[..4].copy_from_slice(&of.octets());
            IpVersion::V4
        }
        IpAddr::V6(of) => {
            address = of.octets();
            IpVersion::V6
        }
    };
    Net {
        version,
        address,
        prefix: prefix.length,
    }
}

/// The helper `bpf_tail_call`, from linux/bpf.h.
const TAIL_CALL: i32 = 12;
/// The helper `bpf_redirect`.
const REDIRECT: i32 = 23;

/// TCX_NEXT: the hook's next program decides.
pub(super) const NEXT: i32 = -1;

/// Offset of the mark in `struct __sk_buff`.
const MARK: i16 = 8;
/// Offset of the control block's last word in `struct __sk_buff`. Few programs use this word.
const NOTE: i16 = 64;

/// The destination of taken frames.
#[derive(Clone, Copy, Debug)]
pub(super) enum Destination<'a> {
    /// This device, even after the process has ended.
    Device(u32),
    /// The program array's device until the array is empty; then frames pass.
    WhileAlive(BorrowedFd<'a>),
}

impl Destination<'_> {
    /// Returns the instructions that redirect the frame. They fall through if the frame passes.
    pub fn instructions(self) -> Vec<Instruction> {
        match self {
            Destination::Device(device) => redirect(device, SEND).to_vec(),
            Destination::WhileAlive(array) => {
                let mut program = vec![move_register(1, CONTEXT)];
                program.extend(load_map(2, array.as_raw_fd()));
                // The index is always 0, but unknown to the verifier. With a known index, the call
                // becomes a direct jump, and the kernel empties arrays with direct jumps only after
                // a grace period.
                program.extend([
                    load_word(3, CONTEXT, LENGTH),
                    compute_number(Alu::Right, 3, 31),
                    call(TAIL_CALL),
                ]);
                program
            }
        }
    }
}

/// Returns a program that takes selected frames, or all frames if there is no test, and passes
/// frames with the mark in `marked`. `None` if the test is too complex.
pub(super) fn take(
    marked: Option<(u32, Hook)>,
    selected: Option<&Node>,
    destination: Destination<'_>,
) -> Option<Vec<Instruction>> {
    let mut program = Assembler::default();
    let [unmarked, taken, passing] = [(); 3].map(|()| program.label());
    program.put(move_register(CONTEXT, 1));
    if let Some((mark, hook)) = marked {
        program.put(load_word(2, CONTEXT, MARK));
        program.jump(skip_if_number(Compare::Unequal, 2, mark), unmarked);
        let note = note_of(mark, hook);
        program.put_all([
            move_number(2, note.cast_signed()),
            store_word(CONTEXT, 2, NOTE),
            move_number(2, 0),
            store_word(CONTEXT, 2, MARK),
        ]);
        program.go(passing);
        program.place(unmarked);
        program.put(load_word(2, CONTEXT, NOTE));
        program.jump(skip_if_number(Compare::Equal, 2, note), passing);
    }
    if let Some(node) = selected {
        select(&mut program, node, taken, passing)?;
    }
    program.place(taken);
    program.put_all(destination.instructions());
    program.place(passing);
    program.put_all([move_number(0, NEXT), EXIT]);
    program.finish()
}

/// Returns the note for frames with this mark, whose lowest bit is set. The ingress note clears
/// that bit, because a forwarded frame keeps its ingress note until it is sent.
fn note_of(mark: u32, hook: Hook) -> u32 {
    match hook {
        Hook::Egress => mark,
        Hook::Ingress => mark & !1,
    }
}

/// Returns the program that marks frames and returns them to the interface.
pub(super) fn give_back(mark: u32, interface: u32, given: &GivenFrames) -> Vec<Instruction> {
    let mut program = Assembler::default();
    program.put_all([
        move_register(CONTEXT, 1),
        move_number(2, mark.cast_signed()),
        store_word(CONTEXT, 2, MARK),
    ]);
    given.give(&mut program, interface);
    program
        .finish()
        .unwrap_or_else(|| unreachable!("all jumps are short"))
}

pub(super) fn redirect(device: u32, flags: i32) -> [Instruction; 4] {
    [
        move_number(1, device.cast_signed()),
        move_number(2, flags),
        call(REDIRECT),
        EXIT,
    ]
}
