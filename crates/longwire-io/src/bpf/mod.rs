//! eBPF programs: the commands of bpf(2) for the few that Longwire has, and their
//! assembler. The programs are so short that no compiler for eBPF is needed.
//!
//! The layouts are those of `union bpf_attr` in linux/bpf.h, as far as they are used;
//! the kernel takes missing fields as zero.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

pub(crate) mod instruction;
pub(crate) mod tcx;

pub(crate) use instruction::Instruction;

const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE_ELEM: libc::c_int = 2;
const PROG_LOAD: libc::c_int = 5;
const LINK_CREATE: libc::c_int = 28;
const LINK_DETACH: libc::c_int = 34;

const MAP_TYPE_XSKMAP: u32 = 17;
const PROG_TYPE_SCHED_CLS: u32 = 3;
const PROG_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;

#[repr(C)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
}

#[repr(C)]
struct MapUpdate {
    map: u32,
    _padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct ProgLoad {
    prog_type: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    expected_attach_type: u32,
}

#[repr(C)]
struct LinkCreate {
    program: u32,
    target: u32,
    attach_type: u32,
    flags: u32,
}

#[repr(C)]
struct LinkDetach {
    link: u32,
}

/// A program's attachment to an interface, which ends when this is dropped or the
/// process ends.
pub(crate) struct Link(OwnedFd);

impl Drop for Link {
    fn drop(&mut self) {
        let attributes = LinkDetach {
            link: number(self.0.as_fd()),
        };
        // Closing the descriptor is not enough while a child of this process has a copy
        // of it, as every child has until it starts its program. If this fails, closing
        // detaches, too.
        // SAFETY: the attributes of LINK_DETACH, without addresses.
        let _ = unsafe { bpf(LINK_DETACH, &attributes) };
    }
}

/// # Safety
/// `attributes` must be the command's part of `union bpf_attr`, and the
/// addresses in it must be what the command takes them for.
unsafe fn bpf<T>(command: libc::c_int, attributes: &T) -> io::Result<libc::c_int> {
    // SAFETY: the pointer and the length describe `attributes`, which the
    // kernel reads; the rest is the caller's promise.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_ref(attributes),
            size_of::<T>(),
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // A descriptor or zero.
    Ok(result as libc::c_int)
}

fn owned(descriptor: libc::c_int) -> OwnedFd {
    // SAFETY: bpf(2) has just returned this descriptor to us alone.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

fn number(descriptor: BorrowedFd<'_>) -> u32 {
    descriptor.as_raw_fd().cast_unsigned()
}

/// Creates a map from queue numbers to AF_XDP sockets.
pub(crate) fn create_socket_map(queues: u32) -> io::Result<OwnedFd> {
    let attributes = MapCreate {
        map_type: MAP_TYPE_XSKMAP,
        key_size: 4,
        value_size: 4,
        max_entries: queues,
    };
    // SAFETY: the attributes of MAP_CREATE, without addresses.
    unsafe { bpf(MAP_CREATE, &attributes) }.map(owned)
}

/// Enters a socket into the map. The kernel removes it when the socket is closed.
pub(crate) fn enter_socket(
    map: BorrowedFd<'_>,
    queue: u32,
    socket: BorrowedFd<'_>,
) -> io::Result<()> {
    let value = number(socket);
    let attributes = MapUpdate {
        map: number(map),
        _padding: 0,
        key: &raw const queue as u64,
        value: &raw const value as u64,
        flags: 0,
    };
    // SAFETY: the attributes of MAP_UPDATE_ELEM; key and value are four bytes
    // each, as the map was made, and live during the call.
    unsafe { bpf(MAP_UPDATE_ELEM, &attributes) }.map(drop)
}

/// The place that a program is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgramKind {
    /// Before the kernel has built a packet: [`attach_xdp`].
    Xdp,
    /// At the traffic control hook of a device: [`tcx::attach`].
    Tcx,
}

/// Loads a program into the kernel, which verifies it. `name` is shown by tools; it has at
/// most 15 letters, digits and underscores.
pub(crate) fn load_program(
    kind: ProgramKind,
    name: &str,
    instructions: &[Instruction],
) -> io::Result<OwnedFd> {
    let mut padded = [0; 16];
    let length = name.len().min(padded.len() - 1);
    padded[..length].copy_from_slice(&name.as_bytes()[..length]);
    let (prog_type, expected_attach_type) = match kind {
        ProgramKind::Xdp => (PROG_TYPE_XDP, ATTACH_XDP),
        ProgramKind::Tcx => (PROG_TYPE_SCHED_CLS, 0),
    };
    let attributes = ProgLoad {
        prog_type,
        instruction_count: instructions.len() as u32,
        instructions: instructions.as_ptr() as u64,
        // The kernel provides some helpers to programs under the GPL only; this one is
        // available under it as well.
        license: c"Dual MIT/GPL".as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
        name: padded,
        interface: 0,
        expected_attach_type,
    };
    // SAFETY: the attributes of PROG_LOAD; instructions and licence live
    // during the call, and the count is that of the slice.
    unsafe { bpf(PROG_LOAD, &attributes) }.map(owned)
}

/// Attaches an XDP program to an interface.
pub(crate) fn attach_xdp(
    program: BorrowedFd<'_>,
    interface: u32,
    mode_flags: u32,
) -> io::Result<Link> {
    let attributes = LinkCreate {
        program: number(program),
        target: interface,
        attach_type: ATTACH_XDP,
        flags: mode_flags,
    };
    // SAFETY: the attributes of LINK_CREATE, without addresses.
    unsafe { bpf(LINK_CREATE, &attributes) }.map(|link| Link(owned(link)))
}
