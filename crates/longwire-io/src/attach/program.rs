//! The eBPF programs of an attachment.
//!
//! | where | program |
//! |---|---|
//! | egress of the interface | marked: remove the mark, go on; selected: to the inner device |
//! | ingress of the interface | marked: remove the mark, go on; selected: to the outer device |
//! | ingress of the inner device | mark, then to the interface's ingress |
//! | ingress of the outer device | mark, then to the interface's egress |

use crate::bpf::instruction::{
    EXIT, Instruction, call, load_word, move_number, move_register, skip, skip_unless_word,
    store_word,
};

use super::selection::Selection;

/// The helper `bpf_redirect`, from linux/bpf.h.
const REDIRECT: i32 = 23;
/// The flag of [`REDIRECT`] that makes a frame arrive at the device.
pub(super) const ARRIVE: i32 = 1;
/// The flag of [`REDIRECT`] that has the device send the frame.
pub(super) const SEND: i32 = 0;
/// TCX_NEXT: the next program of the hook decides.
const NEXT: i32 = -1;
/// Offset of the mark in `struct __sk_buff`.
const MARK: i16 = 8;

/// Returns the program that takes selected frames off the interface to a device.
pub(super) fn take(
    mark: u32,
    selection: &Selection,
    sending: bool,
    device: u32,
) -> Vec<Instruction> {
    let mut program = vec![
        move_register(6, 1),
        load_word(2, 6, MARK),
        skip_unless_word(2, mark, 4),
        move_number(2, 0),
        store_word(6, 2, MARK),
        move_number(0, NEXT),
        EXIT,
    ];
    let selecting = selection.instructions(sending);
    if !selecting.is_empty() {
        program.extend(selecting);
        // Not selected: register 0 is 0.
        program.extend([skip_unless_word(0, 0, 2), move_number(0, NEXT), EXIT]);
    }
    program.extend(redirect(device, SEND));
    program
}

/// Returns the program that gives frames back to the interface, marked.
pub(super) fn give_back(mark: u32, interface: u32, flags: i32) -> Vec<Instruction> {
    let mut program = vec![move_number(2, mark.cast_signed()), store_word(1, 2, MARK)];
    program.extend(redirect(interface, flags));
    program
}

fn redirect(device: u32, flags: i32) -> [Instruction; 4] {
    [
        move_number(1, device.cast_signed()),
        move_number(2, flags),
        call(REDIRECT),
        EXIT,
    ]
}

/// Skips over the rest of a list of instructions that is appended.
pub(super) fn skip_over(rest: usize) -> Instruction {
    skip(i16::try_from(rest).unwrap_or(i16::MAX))
}
