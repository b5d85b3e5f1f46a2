//! Attachment errors.

use std::io;

use crate::net::NetError;
use crate::port::PortError;

/// Failure to attach a link to an interface.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum AttachError {
    #[error(
        "this kernel has no TCX links ({source}), which need Linux 6.6. On older kernels, use \
         `longwire exec`, or `longwire run` between the container's veth device and another"
    )]
    OldKernel { source: io::Error },
    #[error("the kernel rejected the BPF programs: {source}{}", rights(.source))]
    Program {
        #[from]
        source: io::Error,
    },
    #[error("{source}; interfaces are {present}")]
    NoInterface { source: NetError, present: String },
    #[error("no default route; choose an interface with --interface: {present}")]
    NoDefaultRoute { present: String },
    #[error("cannot attach to lo; choose another interface")]
    Loopback,
    #[error("'{interface}' has no Ethernet header (it may be a tunnel); choose another interface")]
    NoEthernet { interface: String },
    #[error(
        "'{interface}' already has a link; see `longwire attach list`, change it with `attach \
         set`, remove it with `attach detach`, or attach to part of the traffic with --to or \
         --filter"
    )]
    Taken { interface: String },
    #[error(
        "'{interface}' already belongs to a network's port or to a link of another Longwire version"
    )]
    OtherKind { interface: String },
    #[error(
        "a link for all traffic cannot become a link for part of it, or vice versa; detach it and \
         attach again"
    )]
    OtherPlace,
    #[error(
        "'{interface}' has the maximum of {count} BPF programs in one direction; remove a link \
         (`longwire attach list`) or another program (`bpftool net`)"
    )]
    TooManyPrograms { interface: String, count: usize },
    #[error("the BPF programs on '{interface}' changed concurrently: {source}; try again")]
    Changed {
        interface: String,
        source: io::Error,
    },
    #[error(
        "the kernel cannot evaluate this filter: it has bytes at computed offsets (ether[…]), or \
         is too long"
    )]
    FilterTooComplex,
    #[error("too many prefixes; the maximum is {}", super::PREFIXES_MAX)]
    TooManyPrefixes,
    #[error("fail-closed needs a BPF file system; run: mount -t bpf bpf /sys/fs/bpf")]
    NoBpfFileSystem,
    #[error(
        "/sys/fs/bpf is not the emulator's BPF file system; run this in the emulator's mount \
         namespace"
    )]
    OtherBpfFileSystem,
    #[error("cannot change /sys/fs/bpf: {source}")]
    Pin { source: io::Error },
    #[error(transparent)]
    Net(#[from] NetError),
    #[error(transparent)]
    Port(#[from] PortError),
}

fn rights(error: &io::Error) -> &'static str {
    // EPERM only: EACCES, which has the same kind, comes from the verifier or a security module,
    // even for root.
    if error.raw_os_error() == Some(libc::EPERM) {
        "; attaching needs CAP_BPF, CAP_NET_ADMIN and CAP_SYS_ADMIN; run as root"
    } else {
        ""
    }
}

impl AttachError {
    /// Converts the error of an attachment's first query, which kernels without TCX reject.
    pub(super) fn of_query(source: io::Error) -> AttachError {
        match source.raw_os_error() {
            Some(libc::EINVAL | libc::EOPNOTSUPP) => AttachError::OldKernel { source },
            _ => AttachError::Program { source },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attach::check_kernel;

    /// Makes bpf(2) fail in the calling thread.
    fn refuse_bpf(errno: u32) {
        let statement = |code, value| libc::sock_filter {
            code,
            jt: 0,
            jf: 0,
            k: value,
        };
        let mut filter = [
            // Loads the system call number.
            statement(0x20, 0),
            libc::sock_filter {
                jf: 1,
                ..statement(0x15, libc::SYS_bpf as u32)
            },
            statement(0x06, libc::SECCOMP_RET_ERRNO | errno),
            statement(0x06, libc::SECCOMP_RET_ALLOW),
        ];
        let program = libc::sock_fprog {
            len: filter.len() as u16,
            filter: filter.as_mut_ptr(),
        };
        // SAFETY: the first call takes no address; the second takes a program that lives during the
        // call. Both change only the calling thread.
        let done = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
                | libc::prctl(
                    libc::PR_SET_SECCOMP,
                    libc::SECCOMP_MODE_FILTER,
                    &raw const program,
                )
        };
        assert_eq!(done, 0, "{}", io::Error::last_os_error());
    }

    #[test]
    fn only_missing_rights_ask_for_root() {
        for (errno, asked) in [(libc::EPERM, true), (libc::EACCES, false)] {
            let error = AttachError::from(io::Error::from_raw_os_error(errno));
            assert_eq!(error.to_string().contains("as root"), asked, "{error}");
        }
    }

    #[test]
    fn a_kernel_without_tcx_is_named_with_the_alternative() {
        for (errno, word) in [(libc::EINVAL, "longwire exec"), (libc::EPERM, "CAP_BPF")] {
            let found = std::thread::spawn(move || {
                refuse_bpf(errno.cast_unsigned());
                check_kernel()
            });
            let error = found.join().expect("a result").expect_err("an old kernel");
            assert!(error.to_string().contains(word), "{error}");
        }
    }
}
