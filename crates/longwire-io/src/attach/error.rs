//! Errors of attaching.

use std::io;

use crate::net::NetError;
use crate::port::PortError;

/// An error of attaching a link to an interface.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum AttachError {
    #[error(
        "this kernel has no TCX links, which Linux has from 6.6 on ({source}); they let traffic \
         pass when the emulator ends. On older kernels give the container a link from the start: \
         `longwire exec`, or `longwire run` between its veth device and another"
    )]
    OldKernel { source: io::Error },
    #[error("the kernel refuses the programs of an attachment: {source}{}", rights(.source))]
    Program { source: io::Error },
    #[error("{source}; the interfaces there are {present}")]
    NoInterface { source: NetError, present: String },
    #[error(
        "there is no default route to choose an interface by: name one with --interface; the \
         interfaces there are {present}"
    )]
    NoDefaultRoute { present: String },
    #[error("lo carries what a namespace sends to itself: no link can be between: name another")]
    Loopback,
    #[error("'{interface}' has no Ethernet header, as tunnels have none: attach to another device")]
    NoEthernet { interface: String },
    #[error(
        "'{interface}' has a link of Longwire already: `longwire attach list` shows it, \
         `longwire attach set` changes it, `longwire attach detach` removes it; links of parts of \
         the traffic can be next to it: --to, --filter"
    )]
    Taken { interface: String },
    #[error(
        "'{interface}' has a port of a network, or a link of another version of Longwire: no link \
         can be next to it"
    )]
    OtherKind { interface: String },
    #[error("a link of all traffic cannot become one of a part, nor the other way round")]
    OtherPlace,
    #[error(
        "'{interface}' has as many programs as the kernel allows, {count} in one direction: remove \
         a link (`longwire attach list`), or a program of others (`bpftool net`)"
    )]
    TooManyPrograms { interface: String, count: usize },
    #[error("the programs at '{interface}' changed while the link was being attached: {source}")]
    Changed {
        interface: String,
        source: io::Error,
    },
    #[error(
        "the filter cannot be evaluated in the kernel: bytes at computed places of the frame \
         (ether[…]), and very long filters, are too much for it"
    )]
    FilterTooComplex,
    #[error("at most {} prefixes can be selected", super::PREFIXES_MAX)]
    TooManyPrefixes,
    #[error(
        "fail-closed keeps its programs in the BPF file system, and none is mounted at \
         /sys/fs/bpf: mount -t bpf bpf /sys/fs/bpf"
    )]
    NoBpfFileSystem,
    #[error(
        "the programs are kept in another BPF file system than the one that is mounted here at \
         /sys/fs/bpf: run this in the mount namespace of the emulator"
    )]
    OtherBpfFileSystem,
    #[error("the programs cannot be kept in, or removed from, /sys/fs/bpf: {source}")]
    Pin { source: io::Error },
    #[error(transparent)]
    Net(#[from] NetError),
    #[error(transparent)]
    Port(#[from] PortError),
}

fn rights(error: &io::Error) -> &'static str {
    // EACCES has the same kind, but comes from the verifier or a security module, even
    // for root.
    if error.raw_os_error() == Some(libc::EPERM) {
        "; attaching takes CAP_BPF, CAP_NET_ADMIN and CAP_SYS_ADMIN: run it as root"
    } else {
        ""
    }
}

impl AttachError {
    pub(super) fn program(source: io::Error) -> AttachError {
        AttachError::Program { source }
    }

    /// Converts the error of an attachment's first query, which kernels without TCX
    /// reject.
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
        // SAFETY: the first takes no address; the second a program that lives during the
        // call. Both change the calling thread alone.
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
            let error = AttachError::program(io::Error::from_raw_os_error(errno));
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
