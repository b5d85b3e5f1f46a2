//! Errors of a test link.

use std::io;

use longwire_io::net::NetError;
use longwire_runtime::StartError;

use crate::error::EnvironmentError;
use crate::link_text::LinkTextError;

/// Failure to create, use or end a testbed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum TestbedError {
    #[error(transparent)]
    Text(#[from] LinkTextError),
    #[error(
        "network namespaces need root privileges (CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_NET_RAW, \
         CAP_SYS_CHROOT): run as root, or through `unshare --map-root-user`"
    )]
    Unprivileged,
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    #[error("the link ended early: {0}")]
    Ended(String),
}

impl TestbedError {
    /// Returns whether the process lacks the privileges to create networks. Tests may then be
    /// skipped.
    pub fn is_unprivileged(&self) -> bool {
        match self {
            TestbedError::Unprivileged => true,
            TestbedError::Environment(EnvironmentError::Forbidden { source, .. }) => source
                .io()
                .is_some_and(|error| error.kind() == io::ErrorKind::PermissionDenied),
            _ => false,
        }
    }
}

impl From<NetError> for TestbedError {
    fn from(error: NetError) -> TestbedError {
        TestbedError::Environment(error.into())
    }
}
