//! eBPF programs: bpf(2) commands and an assembler. The programs are too short to need an eBPF
//! compiler.
//!
//! Structures are prefixes of `union bpf_attr` in linux/bpf.h; the kernel treats missing fields as
//! zero.

pub mod instruction;
pub mod tcx;
pub use instruction::Instruction;

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use nix::errno::Errno;

use self::instruction::load_value;
use crate::mapping::Mapping;
use crate::net::netlink_message::text_of;

const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE_ELEM: libc::c_int = 2;
const PROG_LOAD: libc::c_int = 5;
const OBJ_PIN: libc::c_int = 6;
const OBJ_GET: libc::c_int = 7;
const LINK_CREATE: libc::c_int = 28;
const LINK_UPDATE: libc::c_int = 29;
const LINK_DETACH: libc::c_int = 34;
const ENABLE_STATS: libc::c_int = 32;

const MAP_TYPE_ARRAY: u32 = 2;
const MAP_TYPE_PROG_ARRAY: u32 = 3;
const MAP_TYPE_XSKMAP: u32 = 17;
const PROG_TYPE_SCHED_CLS: u32 = 3;
const PROG_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;

#[repr(C)]
struct MapUpdate {
    map: u32,
    _padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
#[derive(Default)]
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
#[derive(Default)]
struct LinkCreate {
    program: u32,
    target: u32,
    attach_type: u32,
    flags: u32,
    /// The reference program and the revision of the hook's programs, for TCX only.
    relative: u32,
    _padding: u32,
    expected_revision: u64,
}

/// `union bpf_attr` of OBJ_PIN and OBJ_GET.
#[repr(C)]
struct PathAndObject {
    path: u64,
    object: u32,
    flags: u32,
}

/// A program's attachment to an interface. It ends on drop or with the process, unless pinned
/// (`Link::pin`).
#[derive(Debug)]
pub struct Link {
    descriptor: OwnedFd,
    path: Option<PathBuf>,
}

impl Link {
    fn new(descriptor: libc::c_int) -> Link {
        Link {
            descriptor: owned(descriptor),
            path: None,
        }
    }

    /// Pins the link in a BPF file system. The link then outlives this value and the process.
    pub(crate) fn pin(&mut self, path: &Path) -> io::Result<()> {
        at_path(OBJ_PIN, path, number(self.descriptor.as_fd()))?;
        self.path = Some(path.to_owned());
        Ok(())
    }

    /// Opens a pinned link.
    pub(crate) fn pinned(path: &Path) -> io::Result<Link> {
        Ok(Link {
            descriptor: owned(at_path(OBJ_GET, path, 0)?),
            path: Some(path.to_owned()),
        })
    }

    pub(crate) fn has_path(&self) -> bool {
        self.path.is_some()
    }

    /// Unpins the link; it then ends on drop. A no-op for unpinned links.
    pub(crate) fn unpin(&mut self) -> io::Result<()> {
        match self.path.take().map(std::fs::remove_file) {
            Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Replaces the program between two frames. Works from any namespace.
    pub(crate) fn replace(&self, program: BorrowedFd<'_>) -> io::Result<()> {
        let mut attributes = [number(self.descriptor.as_fd()), number(program)];
        // SAFETY: LINK_UPDATE attributes, which contain no addresses.
        unsafe { bpf(LINK_UPDATE, &mut attributes) }.map(drop)
    }

    /// Detaches the program from its interface.
    pub(crate) fn detach(&self) {
        let mut link = number(self.descriptor.as_fd());
        // Closing the descriptor is not enough while a child of this process has a copy, which
        // every child has until it executes its program. Best effort: closing detaches the program
        // too.
        // SAFETY: LINK_DETACH attributes: one number.
        let _ = unsafe { bpf(LINK_DETACH, &mut link) };
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if self.path.is_none() {
            self.detach();
        }
    }
}

/// Pins or opens an object at a path in a BPF file system.
fn at_path(command: libc::c_int, path: &Path, object: u32) -> io::Result<libc::c_int> {
    let text = CString::new(path.as_os_str().as_bytes())?;
    let mut attributes = PathAndObject {
        path: text.as_ptr() as u64,
        object,
        flags: 0,
    };
    // SAFETY: OBJ_PIN and OBJ_GET attributes; the path is a string that lives during the call.
    unsafe { bpf(command, &mut attributes) }
}

/// # Safety
/// `attributes` must match the command's part of `union bpf_attr`, and its addresses must be valid
/// for the command.
unsafe fn bpf<T>(command: libc::c_int, attributes: &mut T) -> io::Result<libc::c_int> {
    let address: *mut T = attributes;
    // SAFETY: pointer and length describe `attributes`; the caller guarantees the rest.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, address, size_of::<T>()) };
    // The result is a descriptor or zero.
    Ok(Errno::result(result)? as libc::c_int)
}

fn owned(descriptor: libc::c_int) -> OwnedFd {
    // SAFETY: bpf(2) has just returned this descriptor, which has no other owner.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

fn number(descriptor: BorrowedFd<'_>) -> u32 {
    descriptor.as_raw_fd().cast_unsigned()
}

/// Creates a map from queue numbers to AF_XDP sockets. The kernel removes closed sockets
/// from it.
pub(crate) fn create_socket_map(queues: u32) -> io::Result<OwnedFd> {
    create_map(MAP_TYPE_XSKMAP, 4, queues, 0)
}

/// Creates a program array with one entry, for tail calls with index 0. The kernel empties it when
/// its last descriptor closes, even if programs still use it.
pub(crate) fn create_program_array() -> io::Result<OwnedFd> {
    create_map(MAP_TYPE_PROG_ARRAY, 4, 1, 0)
}

/// Creates a mappable map that holds one value.
fn create_value_map(value_size: u32) -> io::Result<OwnedFd> {
    /// BPF_F_MMAPABLE.
    const MAPPED: u32 = 1 << 10;
    create_map(MAP_TYPE_ARRAY, value_size, 1, MAPPED)
}

fn create_map(map_type: u32, value_size: u32, max_entries: u32, flags: u32) -> io::Result<OwnedFd> {
    const KEY_SIZE: u32 = 4;
    let mut attributes = [map_type, KEY_SIZE, value_size, max_entries, flags];
    // SAFETY: MAP_CREATE attributes, which contain no addresses.
    unsafe { bpf(MAP_CREATE, &mut attributes) }.map(owned)
}

/// Stores a socket or program in a map.
pub(crate) fn enter(map: BorrowedFd<'_>, index: u32, entry: BorrowedFd<'_>) -> io::Result<()> {
    let value = number(entry);
    let mut attributes = MapUpdate {
        map: number(map),
        _padding: 0,
        key: &raw const index as u64,
        value: &raw const value as u64,
        flags: 0,
    };
    // SAFETY: MAP_UPDATE_ELEM attributes; key and value are four bytes each, the sizes with which
    // the map was created, and live during the call.
    unsafe { bpf(MAP_UPDATE_ELEM, &mut attributes) }.map(drop)
}

/// A program's attachment point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramKind {
    /// Before the kernel builds a packet: `attach_xdp`.
    Xdp,
    /// At a device's traffic control hook: [`tcx::attach`].
    Tcx,
}

/// Loads and verifies a program. Tools show `name`: at most 15 letters, digits and underscores.
///
/// # Errors
/// EPERM without CAP_BPF and CAP_NET_ADMIN. If the verifier rejects the program, an error without a
/// number, with the end of the verifier's log.
pub fn load_program(
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
    let mut attributes = ProgLoad {
        prog_type,
        instruction_count: instructions.len() as u32,
        instructions: instructions.as_ptr() as u64,
        // Some helpers require the GPL, under which this program is also available.
        license: c"Dual MIT/GPL".as_ptr() as u64,
        name: padded,
        expected_attach_type,
        ..ProgLoad::default()
    };
    // SAFETY: PROG_LOAD attributes; instructions and licence live during the call, and the count is
    // the slice's length.
    let error = match unsafe { bpf(PROG_LOAD, &mut attributes) } {
        Ok(loaded) => return Ok(owned(loaded)),
        Err(error) => error,
    };
    if !matches!(error.raw_os_error(), Some(libc::EACCES | libc::EINVAL)) {
        return Err(error);
    }
    // Retry with a log only on failure, because a log takes time and memory. The kernel drops the
    // log's start.
    let mut log = vec![0_u8; VERIFIER_LOG];
    attributes.log_level = 1;
    attributes.log_size = log.len() as u32;
    attributes.log = log.as_mut_ptr() as u64;
    // SAFETY: as before; the log is writable memory of the given size.
    match unsafe { bpf(PROG_LOAD, &mut attributes) } {
        Ok(loaded) => Ok(owned(loaded)),
        Err(_) => Err(refused(error, &log)),
    }
}

/// Size of the verifier log buffer in bytes.
const VERIFIER_LOG: usize = 64 << 10;
/// Number of log lines in an error. The last line is the instruction count.
const VERIFIER_LINES: usize = 4;

/// Returns a rejected program's error with the end of the verifier's log, which is empty if a
/// security module rejected the program.
fn refused(error: io::Error, log: &[u8]) -> io::Error {
    let log = text_of(log);
    let lines: Vec<&str> = log.lines().filter(|line| !line.is_empty()).collect();
    if lines.is_empty() {
        return error;
    }
    let last = lines[lines.len().saturating_sub(VERIFIER_LINES)..].join("; ");
    io::Error::new(
        error.kind(),
        format!("{error}: the verifier reports: {last}"),
    )
}

/// Makes the kernel count program runs while the returned descriptor is open ([`tcx::run_count`]).
///
/// # Errors
/// Missing CAP_SYS_ADMIN.
pub fn enable_stats() -> io::Result<OwnedFd> {
    // BPF_STATS_RUN_TIME.
    let mut run_time = 0_u32;
    // SAFETY: ENABLE_STATS attributes: one number.
    unsafe { bpf(ENABLE_STATS, &mut run_time) }.map(owned)
}

#[cfg(test)]
#[repr(C)]
#[derive(Default)]
struct ProgTestRun {
    program: u32,
    result: u32,
    input_len: u32,
    output_len: u32,
    input: u64,
    output: u64,
    repeat: u32,
    duration: u32,
    context_len: u32,
    context_output_len: u32,
    context: u64,
}

/// Runs a program once on a frame, or a super-packet with this segment size, and returns its
/// result.
#[cfg(test)]
pub(crate) fn run_program(program: BorrowedFd<'_>, frame: &[u8], gso_size: u32) -> io::Result<u32> {
    const PROG_TEST_RUN: libc::c_int = 10;
    /// Words of `struct __sk_buff`, and the index of its `gso_size`.
    const CONTEXT: usize = 48;
    const GSO_SIZE: usize = 44;
    let mut context = [0_u32; CONTEXT];
    context[GSO_SIZE] = gso_size;
    let mut attributes = ProgTestRun {
        program: number(program),
        input_len: frame.len() as u32,
        input: frame.as_ptr() as u64,
        repeat: 1,
        context_len: size_of_val(&context) as u32,
        context: context.as_ptr() as u64,
        ..ProgTestRun::default()
    };
    // SAFETY: PROG_TEST_RUN attributes, which the kernel fills in; frame and context live during
    // the call, and there is no output buffer.
    unsafe { bpf(PROG_TEST_RUN, &mut attributes) }?;
    Ok(attributes.result)
}

/// Attaches an XDP program to an interface.
pub(crate) fn attach_xdp(
    program: BorrowedFd<'_>,
    interface: u32,
    mode_flags: u32,
) -> io::Result<Link> {
    let mut attributes = LinkCreate {
        program: number(program),
        target: interface,
        attach_type: ATTACH_XDP,
        flags: mode_flags,
        ..LinkCreate::default()
    };
    // SAFETY: LINK_CREATE attributes, which contain no addresses.
    unsafe { bpf(LINK_CREATE, &mut attributes) }.map(Link::new)
}

/// Counters that programs increment. They are mapped into this process, so reading them takes no
/// system call and no rights.
#[derive(Debug)]
pub(crate) struct CounterMap<const N: usize> {
    map: OwnedFd,
    memory: Mapping,
}

impl<const N: usize> CounterMap<N> {
    /// Creates zeroed counters.
    ///
    /// # Errors
    /// Missing CAP_BPF.
    pub fn new() -> io::Result<CounterMap<N>> {
        let bytes = size_of::<[AtomicU64; N]>();
        let map = create_value_map(bytes as u32)?;
        let memory = Mapping::shared(map.as_fd(), 0, bytes, 0)?;
        Ok(CounterMap { map, memory })
    }

    /// Returns instructions that load a counter's address.
    pub fn load(&self, to: u8, index: usize) -> [Instruction; 2] {
        let offset = index * size_of::<AtomicU64>();
        load_value(to, self.map.as_raw_fd(), offset as i32)
    }

    /// Returns the counts.
    pub fn get(&self) -> [u64; N] {
        // SAFETY: the mapping has this many aligned words, lives as long as this value, and all
        // accesses are atomic.
        let counters = unsafe { self.memory.start().cast::<[AtomicU64; N]>().as_ref() };
        counters
            .each_ref()
            .map(|counter| counter.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::instruction::{EXIT, load_word, move_number};
    use super::*;

    #[test]
    fn the_error_of_a_refused_program_has_the_end_of_the_verifiers_log() {
        // Register 5 is uninitialised.
        let program = [load_word(0, 5, 0), EXIT];
        match load_program(ProgramKind::Tcx, "refused", &program) {
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
                eprintln!("not run: {error}");
            }
            Err(error) => {
                assert_eq!(error.raw_os_error(), None, "{error}");
                assert!(error.to_string().contains("R5 !read_ok"), "{error}");
            }
            Ok(_) => panic!("loaded a program that reads an uninitialised register"),
        }
        let program = [move_number(0, 0), EXIT];
        if let Err(error) = load_program(ProgramKind::Tcx, "accepted", &program) {
            assert_eq!(error.raw_os_error(), Some(libc::EPERM), "{error}");
        }
    }

    #[test]
    fn an_empty_log_leaves_the_error() {
        let error = refused(io::Error::from_raw_os_error(libc::EACCES), &[0; 8]);
        assert_eq!(error.raw_os_error(), Some(libc::EACCES));
    }
}
