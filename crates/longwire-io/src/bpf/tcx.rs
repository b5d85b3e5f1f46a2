//! Programs at a device's traffic control hook (TCX, Linux 6.6). They are attached by links, which
//! end with their process. A hook runs the programs of several owners in a defined order.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use super::{LINK_CREATE, Link, LinkCreate, bpf, number, owned};
use crate::net::netlink_message::text_of;

const PROG_GET_FD_BY_ID: libc::c_int = 13;
const OBJ_GET_INFO_BY_FD: libc::c_int = 15;
const PROG_QUERY: libc::c_int = 16;

/// BPF_F_BEFORE: without a reference program, before all.
const BEFORE: u32 = 1 << 3;
/// BPF_F_AFTER.
const AFTER: u32 = 1 << 4;
/// BPF_F_ID: the reference program is given by id.
const BY_NUMBER: u32 = 1 << 5;
/// Maximum number of programs per hook (BPF_MPROG_MAX).
pub(crate) const PROGRAMS_MAX: usize = 64;

/// A hook's direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// Received frames (BPF_TCX_INGRESS).
    Ingress = 46,
    /// Outgoing frames (BPF_TCX_EGRESS).
    Egress = 47,
}

/// A position among a hook's programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// Before all programs.
    First,
    /// Before the program with this id.
    Before(u32),
    /// After the program with this id.
    After(u32),
}

/// Attaches a program at a hook if the hook's programs are unchanged since `revision`
/// ([`programs`]). The interface is in the calling thread's namespace.
///
/// # Errors
/// ESTALE if the programs have changed; ENODEV without the interface; EPERM without CAP_BPF and
/// CAP_NET_ADMIN; EINVAL before Linux 6.6.
pub fn attach(
    program: BorrowedFd<'_>,
    interface: u32,
    hook: Hook,
    position: Position,
    revision: u64,
) -> io::Result<Link> {
    let (flags, relative) = match position {
        Position::First => (BEFORE, 0),
        Position::Before(id) => (BEFORE | BY_NUMBER, id),
        Position::After(id) => (AFTER | BY_NUMBER, id),
    };
    let mut attributes = LinkCreate {
        program: number(program),
        target: interface,
        attach_type: hook as u32,
        flags,
        relative,
        expected_revision: revision,
        ..LinkCreate::default()
    };
    // SAFETY: LINK_CREATE attributes, which contain no addresses.
    unsafe { bpf(LINK_CREATE, &mut attributes) }.map(Link::new)
}

#[repr(C)]
#[derive(Default)]
struct ProgQuery {
    target: u32,
    attach_type: u32,
    query_flags: u32,
    attach_flags: u32,
    ids: u64,
    count: u32,
    _padding: u32,
    flags_of_programs: u64,
    links: u64,
    flags_of_links: u64,
    revision: u64,
}

/// A hook's programs.
#[derive(Debug)]
pub struct Programs {
    /// Names in execution order.
    pub names: Vec<String>,
    /// Program ids, in the same order.
    pub ids: Vec<u32>,
    /// Revision of the list. Every change increments it.
    pub revision: u64,
}

/// Returns a hook's programs, in the calling thread's namespace.
///
/// # Errors
/// ENODEV without the interface; EPERM without CAP_NET_ADMIN; EINVAL before Linux 6.6.
pub fn programs(interface: u32, hook: Hook) -> io::Result<Programs> {
    let mut ids = [0_u32; PROGRAMS_MAX];
    let mut query = ProgQuery {
        target: interface,
        attach_type: hook as u32,
        ids: ids.as_mut_ptr() as u64,
        count: PROGRAMS_MAX as u32,
        ..ProgQuery::default()
    };
    // SAFETY: PROG_QUERY attributes, which the kernel fills in; `ids` has room for the count and
    // lives during the call.
    unsafe { bpf(PROG_QUERY, &mut query) }?;
    let count = (query.count as usize).min(PROGRAMS_MAX);
    Ok(Programs {
        names: ids[..count].iter().map(|id| name_of(*id)).collect(),
        ids: ids[..count].to_vec(),
        revision: query.revision,
    })
}

#[repr(C)]
struct GetInfo {
    descriptor: u32,
    length: u32,
    info: u64,
}

/// The first fields of `struct bpf_prog_info`, up to the counters.
#[repr(C)]
#[derive(Default)]
struct ProgInfo {
    kind: u32,
    id: u32,
    tag: [u8; 8],
    jited_len: u32,
    xlated_len: u32,
    jited: u64,
    xlated: u64,
    load_time: u64,
    created_by: u32,
    map_count: u32,
    maps: u64,
    name: [u8; 16],
    /// The fields from the interface to the program tags.
    _more: [u64; 14],
    run_time_ns: u64,
    run_count: u64,
}

/// Returns the number of times a program ran while counting was enabled ([`super::enable_stats`]).
///
/// # Errors
/// The process may not query the program.
pub fn run_count(program: BorrowedFd<'_>) -> io::Result<u64> {
    let info: ProgInfo = info_of(program)?;
    Ok(info.run_count)
}

/// Returns a program's name, or its id if it cannot be queried.
fn name_of(id: u32) -> String {
    let open = || -> io::Result<String> {
        // SAFETY: PROG_GET_FD_BY_ID attributes: a number and two zeros.
        let program = unsafe { bpf(PROG_GET_FD_BY_ID, &mut [id, 0, 0]) }.map(owned)?;
        let info: ProgInfo = info_of(program.as_fd())?;
        Ok(text_of(&info.name))
    };
    open().unwrap_or_else(|_| format!("program {id}"))
}

/// First fields of `struct bpf_link_info` for a TCX link.
#[repr(C)]
#[derive(Default)]
struct LinkInfo {
    kind: u32,
    id: u32,
    program: u32,
    _padding: u32,
    interface: u32,
    attach_type: u32,
}

impl Link {
    /// Returns whether the link still has its interface. The link loses it on detachment or when
    /// the interface is deleted.
    pub(crate) fn is_attached(&self) -> io::Result<bool> {
        let info: LinkInfo = info_of(self.descriptor.as_fd())?;
        Ok(info.interface != 0)
    }
}

/// Returns the kernel's information on a program or link. `T` must consist of the first fields of
/// the information's structure, all integers.
fn info_of<T: Default>(descriptor: BorrowedFd<'_>) -> io::Result<T> {
    let mut info = T::default();
    let mut attributes = GetInfo {
        descriptor: number(descriptor),
        length: size_of::<T>() as u32,
        info: (&raw mut info) as u64,
    };
    // SAFETY: OBJ_GET_INFO_BY_FD attributes; the kernel writes at most `length` bytes to `info`,
    // which lives during the call and is valid with any bytes.
    unsafe { bpf(OBJ_GET_INFO_BY_FD, &mut attributes) }?;
    Ok(info)
}
