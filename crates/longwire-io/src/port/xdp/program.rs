//! The eBPF program for every arriving frame: it stamps the frame and redirects it to
//! the socket of its queue.
//!
//! A dozen instructions, assembled here, so that no compiler for eBPF is needed.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use super::bpf::{self, Instruction, Link};

/// Bytes before the frame that hold the stamp: nanoseconds of CLOCK_MONOTONIC, in host
/// byte order.
pub(super) const STAMP_LEN: usize = 8;

// Helpers, from linux/bpf.h.
const KTIME_GET_NS: i32 = 5;
const REDIRECT_MAP: i32 = 51;
const XDP_ADJUST_META: i32 = 54;
/// The verdict for a frame whose queue has no socket: pass it to the kernel.
const XDP_PASS: i32 = 2;

// Offsets into `struct xdp_md`.
const DATA: i16 = 0;
const DATA_META: i16 = 8;
const RX_QUEUE_INDEX: i16 = 16;

/// BPF_PSEUDO_MAP_FD: the immediate is a map's descriptor.
const MAP_DESCRIPTOR: u8 = 1;

const fn op(code: u8, to: u8, from: u8, offset: i16, immediate: i32) -> Instruction {
    Instruction {
        code,
        registers: to | from << 4,
        offset,
        immediate,
    }
}

const fn move_register(to: u8, from: u8) -> Instruction {
    op(0xbf, to, from, 0, 0)
}

const fn move_number(to: u8, value: i32) -> Instruction {
    op(0xb7, to, 0, 0, value)
}

const fn add_number(to: u8, value: i32) -> Instruction {
    op(0x07, to, 0, 0, value)
}

const fn load_word(to: u8, from: u8, offset: i16) -> Instruction {
    op(0x61, to, from, offset, 0)
}

const fn store_double(to: u8, from: u8, offset: i16) -> Instruction {
    op(0x7b, to, from, offset, 0)
}

const fn call(helper: i32) -> Instruction {
    op(0x85, 0, 0, 0, helper)
}

/// Skips `distance` instructions if the register does not have that value.
const fn skip_unless(register: u8, value: i32, distance: i16) -> Instruction {
    op(0x55, register, 0, distance, value)
}

/// Skips `distance` instructions if `register` is above `other`.
const fn skip_above(register: u8, other: u8, distance: i16) -> Instruction {
    op(0x2d, register, other, distance, 0)
}

const EXIT: Instruction = op(0x95, 0, 0, 0, 0);

/// Assembles the instructions, for the map with this descriptor.
fn assemble(map: i32, stamp: bool) -> Vec<Instruction> {
    let mut program = vec![move_register(6, 1)];
    if stamp {
        program.extend([
            // Space before the frame; a driver without any refuses.
            move_number(2, -(STAMP_LEN as i32)),
            call(XDP_ADJUST_META),
            skip_unless(0, 0, 7),
            call(KTIME_GET_NS),
            // The verifier requires a check that the stamp fits.
            load_word(2, 6, DATA_META),
            load_word(3, 6, DATA),
            move_register(1, 2),
            add_number(1, STAMP_LEN as i32),
            skip_above(1, 3, 1),
            store_double(2, 0, 0),
        ]);
    }
    program.extend([
        load_word(2, 6, RX_QUEUE_INDEX),
        // A load of 64 bits takes two instruction slots.
        op(0x18, 1, MAP_DESCRIPTOR, 0, map),
        op(0, 0, 0, 0, 0),
        move_number(3, XDP_PASS),
        call(REDIRECT_MAP),
        EXIT,
    ]);
    program
}

/// The program in the kernel, with its map of sockets.
pub(super) struct Program {
    map: OwnedFd,
    program: OwnedFd,
}

impl Program {
    /// Loads the program for an interface with this number of receive queues.
    pub(super) fn load(queues: u32, stamp: bool) -> io::Result<Program> {
        let map = bpf::create_socket_map(queues)?;
        let program = bpf::load_program(&assemble(map.as_raw_fd(), stamp))?;
        Ok(Program { map, program })
    }

    /// Attaches it to an interface, in the driver or in the network stack.
    pub(super) fn attach(&self, interface: u32, place: Place) -> io::Result<Link> {
        bpf::attach(self.program.as_fd(), interface, place.flags())
    }

    /// Redirects the frames of a queue to a socket from now on.
    pub(super) fn enter(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        bpf::enter_socket(self.map.as_fd(), queue, socket)
    }
}

/// Place of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the driver, before the kernel has built a packet from the frame.
    Native,
    /// In the network stack.
    Generic,
}

impl Place {
    fn flags(self) -> u32 {
        // XDP_FLAGS_DRV_MODE and XDP_FLAGS_SKB_MODE of linux/if_link.h.
        match self {
            Place::Native => 1 << 2,
            Place::Generic => 1 << 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_land_on_the_lookup() {
        let program = assemble(3, true);
        let lookup = program
            .iter()
            .position(|i| *i == load_word(2, 6, RX_QUEUE_INDEX))
            .expect("the lookup is there");
        for (at, instruction) in program.iter().enumerate() {
            if matches!(instruction.code, 0x55 | 0x2d) {
                let target = at as i64 + 1 + i64::from(instruction.offset);
                assert_eq!(target, lookup as i64, "{instruction:?}");
            }
        }
        assert_eq!(program.last(), Some(&EXIT));
    }

    #[test]
    fn an_instruction_is_eight_bytes() {
        assert_eq!(size_of::<Instruction>(), 8);
    }
}
