//! Errors of attaching.

use std::io;

use crate::net::NetError;
use crate::port::PortError;

/// Why a link cannot be attached to an interface.
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
    #[error("'{interface}' has no Ethernet header, as tunnels have none: attach to another device")]
    NoEthernet { interface: String },
    #[error(
        "'{interface}' has a link of Longwire already: `longwire attach list` shows it, \
         `longwire attach set` changes it, `longwire attach detach` removes it"
    )]
    Taken { interface: String },
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
    if error.kind() == io::ErrorKind::PermissionDenied {
        "; attaching takes CAP_BPF, CAP_NET_ADMIN and CAP_SYS_ADMIN: run it as root"
    } else {
        ""
    }
}

impl AttachError {
    pub(super) fn program(source: io::Error) -> AttachError {
        AttachError::Program { source }
    }

    /// The first question of an attachment to the kernel: one without TCX does not know it.
    pub(super) fn of_query(source: io::Error) -> AttachError {
        match source.raw_os_error() {
            Some(libc::EINVAL | libc::EOPNOTSUPP) => AttachError::OldKernel { source },
            _ => AttachError::Program { source },
        }
    }
}
