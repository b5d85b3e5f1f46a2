//! The eBPF program that stamps every arriving frame and redirects it to its queue's socket.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use crate::bpf::instruction::{
    Assembler, EXIT, Instruction, add_number, call, load_map, load_word, move_number,
    move_register, skip_above, skip_unless, store_double,
};
use crate::bpf::{self, Link, ProgramKind};

/// Bytes before the frame that hold the stamp: nanoseconds of CLOCK_MONOTONIC, in host byte order.
pub(super) const STAMP_LEN: usize = 8;

// Helpers, from linux/bpf.h.
const KTIME_GET_NS: i32 = 5;
const REDIRECT_MAP: i32 = 51;
const XDP_ADJUST_META: i32 = 54;
/// Verdict for a frame whose queue has no socket: pass it to the kernel.
const XDP_PASS: i32 = 2;

// Offsets into `struct xdp_md`.
const DATA: i16 = 0;
const DATA_META: i16 = 8;
const RX_QUEUE_INDEX: i16 = 16;

/// Assembles the program for the map with this descriptor.
fn assemble(map: i32) -> Vec<Instruction> {
    let mut program = Assembler::default();
    let lookup = program.label();
    program.put_all([
        move_register(6, 1),
        // Reserves space before the frame; drivers without such space refuse.
        move_number(2, -(STAMP_LEN as i32)),
        call(XDP_ADJUST_META),
    ]);
    program.jump(skip_unless(0, 0), lookup);
    program.put_all([
        call(KTIME_GET_NS),
        // The verifier requires a check that the stamp fits.
        load_word(2, 6, DATA_META),
        load_word(3, 6, DATA),
        move_register(1, 2),
        add_number(1, STAMP_LEN as i32),
    ]);
    program.jump(skip_above(1, 3), lookup);
    program.put(store_double(2, 0, 0));
    program.place(lookup);
    program.put(load_word(2, 6, RX_QUEUE_INDEX));
    program.put_all(load_map(1, map));
    program.put_all([move_number(3, XDP_PASS), call(REDIRECT_MAP), EXIT]);
    program
        .finish()
        .unwrap_or_else(|| unreachable!("all jumps are short"))
}

/// The loaded program and its socket map.
pub(super) struct Program {
    map: OwnedFd,
    program: OwnedFd,
}

impl Program {
    /// Loads the program for an interface with this number of receive queues.
    pub(super) fn load(queues: u32) -> io::Result<Program> {
        let map = bpf::create_socket_map(queues)?;
        let program = bpf::load_program(ProgramKind::Xdp, "longwire", &assemble(map.as_raw_fd()))?;
        Ok(Program { map, program })
    }

    /// Attaches the program to an interface, in the driver or in the network stack.
    pub(super) fn attach(&self, interface: u32, place: Place) -> io::Result<Link> {
        bpf::attach_xdp(self.program.as_fd(), interface, place.flags())
    }

    /// Redirects a queue's frames to a socket from now on.
    pub(super) fn enter(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        bpf::enter(self.map.as_fd(), queue, socket)
    }
}

/// Attachment place of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the driver, before the kernel builds a packet from the frame.
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
        let program = assemble(3);
        let lookup = program
            .iter()
            .position(|i| *i == load_word(2, 6, RX_QUEUE_INDEX))
            .expect("the lookup is there");
        let mut jumps = 0;
        for (at, instruction) in program.iter().enumerate() {
            if matches!(instruction.code, 0x55 | 0x2d) {
                let target = at as i64 + 1 + i64::from(instruction.offset);
                assert_eq!(target, lookup as i64, "{instruction:?}");
                jumps += 1;
            }
        }
        assert_eq!(jumps, 2);
        assert_eq!(program.last(), Some(&EXIT));
    }
}
