//! The eBPF programs of an attachment.
//!
//! | where | program |
//! |---|---|
//! | egress of the interface | marked: remove the mark, note it, go on; noted: go on; selected: to the inner device, while this process lives (`alive`) |
//! | ingress of the interface | the same, with the outer device |
//! | ingress of the inner device | mark, then to the interface's ingress; counted if the kernel drops it there (`given`) |
//! | ingress of the outer device | mark, then to the interface's egress; the same |
//!
//! The attachments of an interface share a mark. The first program removes it, to hide it
//! from other programs, and leaves a note in the frame's control block for the next
//! attachments at that hook.

use std::os::fd::{AsRawFd, BorrowedFd};

use longwire_packet::filter::tree::Node;

use super::filter::facts::CONTEXT;
use super::filter::select;
use super::given::GivenFrames;
use crate::bpf::assembler::Assembler;
use crate::bpf::instruction::{
    Alu, Compare, EXIT, Instruction, call, compute_number, load_map, load_word, move_number,
    move_register, skip_if_number, store_word,
};
use crate::bpf::tcx::Hook;

/// The helper `bpf_tail_call`, from linux/bpf.h.
const TAIL_CALL: i32 = 12;
/// The helper `bpf_redirect`.
const REDIRECT: i32 = 23;
/// The flag of [`REDIRECT`] that makes the device receive a frame.
pub(super) const ARRIVE: i32 = 1;
/// The flag of [`REDIRECT`] that makes the device send a frame.
pub(super) const SEND: i32 = 0;
/// TCX_NEXT: the next program of the hook decides.
pub(super) const NEXT: i32 = -1;
/// Offset of the frame length in `struct __sk_buff`.
pub(super) const LENGTH: i16 = 0;
/// Offset of the mark in `struct __sk_buff`.
const MARK: i16 = 8;
/// Offset of the control block's last word in `struct __sk_buff`, which few programs use.
const NOTE: i16 = 64;

/// The destination of taken frames.
#[derive(Clone, Copy, Debug)]
pub(super) enum Destination<'a> {
    /// This device, even after the process has ended.
    Device(u32),
    /// The device of a program array, until the array is empty; then frames pass.
    WhileAlive(BorrowedFd<'a>),
}

impl Destination<'_> {
    /// Returns the instructions; they fall through if the frame is to pass.
    pub fn instructions(self) -> Vec<Instruction> {
        match self {
            Destination::Device(device) => redirect(device, SEND).to_vec(),
            Destination::WhileAlive(array) => {
                let mut program = vec![move_register(1, CONTEXT)];
                program.extend(load_map(2, array.as_raw_fd()));
                // Always 0, but unknown to the verifier: a known index becomes a direct
                // jump, and arrays with direct jumps are emptied only after a grace
                // period.
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

/// Returns the program that takes selected frames, or all frames without a test, but passes
/// those with the mark of their attachment. `None` if the test is too complex.
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

/// Returns the note for frames with this mark, whose lowest bit is set. It differs per
/// hook: a forwarded frame keeps the note of its reception until it is sent.
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
        .unwrap_or_else(|| unreachable!("it is short"))
}

pub(super) fn redirect(device: u32, flags: i32) -> [Instruction; 4] {
    [
        move_number(1, device.cast_signed()),
        move_number(2, flags),
        call(REDIRECT),
        EXIT,
    ]
}
